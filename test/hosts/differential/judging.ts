import assert from "node:assert/strict";
import { seed } from "../../support/seed.ts";
import { json } from "../laws/said.ts";
import { assertAsBare, assertCopyOf, assertPassed, assertProblem, explained } from "./comparing.ts";
import { type Outcome, outcomeOf, valuesOf } from "./model.ts";
import { ask, type RawAnswer } from "./raw.ts";
import { type Act, described, type Failure, failureOf, type Script } from "./script.ts";
import type { DifferentialHost } from "./site.ts";

/** One handler on a host that serves it. */
export interface Trial {
  readonly host: DifferentialHost;
  readonly script: Script;
  /** Its number among the handlers of its host. */
  readonly n: number;
  readonly port: number;
  readonly runs: () => number;
}

interface Asked {
  /** `null` where the bare host has no answer to compare with: its handler broke off half way. */
  readonly bare: RawAnswer | null;
  readonly first: RawAnswer;
  readonly copy: RawAnswer;
  readonly runsAtFirst: number;
  /** A safe request, bare and behind `protect`. */
  readonly passed: readonly [bare: RawAnswer, kept: RawAnswer] | null;
}

/** Sends a handler's request bare, kept, and kept again; holds the answers to each other and to what is owed. */
export async function judged(trial: Trial): Promise<Outcome> {
  const asked = await askedOf(trial);
  const outcome = outcomeOf(trial.script, asked.bare, trial.host);
  const about = [
    `Handler ${trial.n} of ${trial.host.name}, SEED=${seed()}; owed: ${outcome}`,
    described(trial.script),
  ];
  const { bare, first, copy, passed } = asked;
  const dumps = { bare, first, copy, "passed, bare": passed?.[0], "passed, behind protect": passed?.[1] };
  explained(about, dumps, () => {
    assert.equal(asked.runsAtFirst, 1, "the first request runs the handler once");
    checkFirst(trial, outcome, asked);
    checkCopy(trial, outcome, asked);
    const runs = outcome === "released" ? 2 : 1;
    assert.equal(trial.runs(), runs, "how often two requests run the handler");
    if (passed !== null) assertPassed(passed[1], passed[0]);
  });
  return outcome;
}

async function askedOf({ script, n, port, runs }: Trial): Promise<Asked> {
  const request = async (side: "bare" | "kept", method = "POST") =>
    await ask(port, { method, target: `/${side}/${n}`, ...json(`k${n}`, {}) });
  const compares = failureOf(script)?.begun !== true;
  const bare = compares ? await request("bare") : null;
  const first = await request("kept");
  const runsAtFirst = runs();
  const copy = await request("kept");
  const method = n % 2 === 0 ? "GET" : "HEAD";
  const passed = compares ? ([await request("bare", method), await request("kept", method)] as const) : null;
  return { bare, first, copy, runsAtFirst, passed };
}

function checkFirst({ host, script }: Trial, outcome: Outcome, { first, bare }: Asked): void {
  const failed = failureOf(script);
  // Some hosts tell an error's own text to clients, and then so they do here.
  if (bare !== null && !bare.bytes.includes("secret")) assert.ok(!first.bytes.includes("secret"));
  if (bare === null) return void checkBroken(first);
  if (failed !== null && host.hearsThrows && checkWord(failed.failure, first)) return;
  assertAsBare(first, bare, { ...host, ownPage: failed !== null });
  const inOnePiece = isInOnePiece(script);
  const status = valuesOf(first, "idempotency-status");
  assert.deepEqual(status, outcome === "unknown" && (inOnePiece || status.length > 0) ? ["unknown"] : []);
  const expires = valuesOf(first, "idempotency-expires").length;
  if (inOnePiece) assert.equal(expires, ["released", "unknown"].includes(outcome) ? 0 : 1);
}

/** Whether nothing can have left of an answer before what became of it was known. */
function isInOnePiece(script: Script): boolean {
  return script.kind === "native" && !script.acts.some(({ act }) => IN_PIECES.has(act));
}

const IN_PIECES: ReadonlySet<Act["act"]> = new Set(["flush", "write", "late", "pipe"]);

/** What had begun is cut off; where nothing of it had left, the host's error page says what is known. */
function checkBroken(first: RawAnswer): void {
  const said = valuesOf(first, "idempotency-status").includes("unknown") || first.status === 500;
  assert.ok(!first.complete || said, "what broke off is no answer");
}

/** Whether a handler has spoken in the library's words, in which case a bare host says nothing of use. */
function checkWord({ kind }: Failure, first: RawAnswer): boolean {
  switch (kind) {
    case "status":
    case "none":
      return false;
    case "not_performed":
      assertProblem(first, "not_performed", 503);
      return true;
    case "outcome_unknown":
      assertProblem(first, "outcome_unknown", 504);
      return true;
    case "permanent":
      assert.equal(first.status, 402);
      assert.equal(first.body.toString(), '{"refused":true}');
      return true;
  }
}

function checkCopy(trial: Trial, outcome: Outcome, asked: Asked): void {
  const { host, script } = trial;
  const { first, copy, bare } = asked;
  switch (outcome) {
    case "kept":
      return void assertCopyOf(first, copy, host);
    case "not stored":
      return void assert.equal(
        assertProblem(copy, "response_not_stored", 409).get("originalStatus"),
        first.status,
      );
    case "kept or not stored":
      if (valuesOf(copy, "idempotent-replayed").length > 0) return void assertCopyOf(first, copy, host);
      return void checkCopy(trial, "not stored", asked);
    case "unknown":
      // Where nobody hears of the failure, and the host has cut the connection, the attempt runs on to its time limit.
      if (bare === null && !host.hearsThrows) return void assert.equal(copy.status, 409);
      return void assertProblem(copy, "outcome_unknown", 409);
    case "released":
      if (host.hearsThrows && failureOf(script)?.failure.kind === "not_performed")
        assertProblem(copy, "not_performed", 503);
      else if (bare !== null) assertAsBare(copy, bare, { ...host, ownPage: failureOf(script) !== null });
      return;
  }
}
