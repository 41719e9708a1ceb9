import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { NotPerformed, OutcomeUnknown, PermanentFailure } from "../../../src/errors.ts";
import { until } from "../../support/processes.ts";
import type { HostLaw, HostSubject, Route, Served, Work } from "../law.ts";
import { linesOf, send, type WireAnswer } from "../wire.ts";
import { assertFirst, assertReplay, json, problemOf } from "./said.ts";

/** What a handler's end means, where it said nothing of its effects. */
export const endingLaws: readonly HostLaw[] = [
  { id: "HS-10", promise: "what a handler answered decides: kept, released or unknown", check: statuses },
  {
    id: "CL-17",
    promise: "a handler that throws leaves an unknown outcome, and no word of its error",
    check: throws,
  },
  {
    id: "CL-17 said",
    promise: "the first answer to a handler's throw says that the outcome is unknown",
    needs: "error page",
    check: throwsSaid,
  },
  {
    id: "CL-17 word",
    promise: "a handler's own word counts: not performed, refused for good, unknown",
    check: words,
  },
  {
    id: "CL-17 nothing",
    promise: "a handler that returns no answer has thrown",
    needs: "returned answers",
    check: returnsNothing,
  },
  {
    id: "G6 limit",
    promise: "work that never ends is 504 at its time limit, and its outcome is unknown",
    check: endless,
  },
  { id: "G6 rerun", promise: "where the programmer says so, an unknown outcome runs again", check: rerun },
  { id: "HS-09", promise: "running, misused, unknown and unkept are told apart", check: toldApart },
];

const SECRET = "select * from cards where pan=4111";

const doing = (
  handle: (work: Work) => Promise<Response> | Response,
  settings: Route["settings"] = {},
): Route => ({
  path: "/charges",
  settings,
  handle: (work) => {
    work.effect();
    return handle(work);
  },
});

/** Serves one handler and asks it for one thing, twice. */
async function asked(
  subject: HostSubject,
  route: Route,
  policy = {},
): Promise<{
  readonly key: string;
  readonly first: WireAnswer;
  readonly copy: WireAnswer;
  readonly state: string | undefined;
  readonly served: Served;
}> {
  const served = await subject.serve({ routes: [route], policy });
  const key = subject.newKey();
  const request = { target: "/charges", ...json(key, {}) };
  const first = await send(served.port, request);
  const state = (await served.record(key))?.state;
  const copy = await send(served.port, request);
  for (const { headers, body } of [first, copy]) {
    assert.ok(!JSON.stringify(headers).includes("4111") && !body.includes("4111"), "no internal text leaves");
  }
  return { key, first, copy, state, served };
}

async function statuses(subject: HostSubject): Promise<void> {
  const kept = [200, 201, 202, 303, 400, 402, 404, 406, 409, 410, 418, 422];
  const released = [401, 403, 425, 429, 503];
  const unknown = [408, 500, 501, 502, 504];
  for (const status of [...kept, ...released, ...unknown]) {
    const { key, first, copy, state } = await asked(
      subject,
      doing(() => new Response(`said ${status}`, { status })),
    );
    assertFirst(first, status);
    assert.equal(first.body.toString(), `said ${status}`);
    const runs = subject.runs(key);
    if (kept.includes(status)) {
      assert.deepEqual([state, runs], ["completed", 1], String(status));
      assertReplay(first, copy);
      assert.equal(linesOf(first, "idempotency-expires").length, 1);
    } else if (released.includes(status)) {
      assert.deepEqual([state, runs], ["released", 2], String(status));
      assertFirst(copy, status);
    } else {
      assert.deepEqual([state, runs], ["unknown", 1], String(status));
      assert.deepEqual(linesOf(first, "idempotency-status"), ["unknown"]);
      problemOf(copy, "outcome_unknown", { retry: "never" });
    }
    if (!kept.includes(status)) assert.deepEqual(linesOf(first, "idempotency-expires"), []);
  }
}

async function throws(subject: HostSubject): Promise<void> {
  const throwers: readonly (() => never)[] = [
    () => {
      throw new Error(SECRET);
    },
    () => {
      throw new TypeError(SECRET, { cause: new Error(SECRET) });
    },
  ];
  for (const thrower of throwers) {
    const sync = doing(thrower);
    const late = doing(async () => {
      await sleep(5);
      return thrower();
    });
    for (const route of [sync, late]) {
      const { key, first, copy, state } = await asked(subject, route);
      assert.equal(first.status, 500);
      assert.equal(state, "unknown");
      problemOf(copy, "outcome_unknown", { retry: "never" });
      assert.equal(await subject.effects(key), 1);
    }
  }
}

async function throwsSaid(subject: HostSubject): Promise<void> {
  const route = doing(() => {
    throw new Error(SECRET);
  });
  const { first, served } = await asked(subject, route);
  assert.deepEqual([first.status, linesOf(first, "idempotency-status")], [500, ["unknown"]]);
  assert.equal(served.errors.length, 1, "the host's error handler hears of it");
}

async function words(subject: HostSubject): Promise<void> {
  const saying = (error: Error) =>
    doing(() => {
      throw error;
    });
  const undone = await asked(subject, saying(new NotPerformed(`refused: ${SECRET}`)));
  for (const answer of [undone.first, undone.copy]) problemOf(answer, "not_performed", { retryAfter: true });
  assert.deepEqual([undone.state, subject.runs(undone.key)], ["released", 2]);
  assert.ok(
    undone.served.events.some(({ type }) => type === "failure"),
    "operators hear why",
  );

  const answer = { status: 402, headers: { "x-own": "1", "set-cookie": "a=1" }, json: { declined: true } };
  const refused = await asked(subject, saying(new PermanentFailure(answer)));
  assertFirst(refused.first, 402);
  assert.equal(refused.first.body.toString(), '{"declined":true}');
  assert.equal(refused.state, "failed_permanent");
  assert.equal(refused.copy.body.toString(), '{"declined":true}');
  assert.deepEqual(linesOf(refused.copy, "x-own"), ["1"]);
  assert.deepEqual(linesOf(refused.copy, "set-cookie"), []);
  assert.deepEqual(linesOf(refused.first, "set-cookie"), ["a=1"]);

  const domain = await asked(subject, saying(new PermanentFailure({ status: "declined", reason: "funds" })));
  assertFirst(domain.first, 422);
  assert.equal(domain.first.body.toString(), '{"status":"declined","reason":"funds"}');
  assertReplay(domain.first, domain.copy);

  const unsendable = await asked(
    subject,
    saying(new PermanentFailure({ status: 402, headers: { a: "b\nc" } })),
  );
  assert.equal(unsendable.first.status, 500);
  assert.equal(unsendable.state, "unknown");

  const unknown = await asked(subject, saying(new OutcomeUnknown(SECRET)));
  problemOf(unknown.first, "outcome_unknown", { status: 504, retry: "never" });
  problemOf(unknown.copy, "outcome_unknown", { retry: "never" });
  assert.equal(unknown.state, "unknown");
}

async function returnsNothing(subject: HostSubject): Promise<void> {
  const spent = new Response("spent");
  await spent.text();
  const locked = new Response("locked");
  locked.body?.getReader();
  for (const value of [undefined, null, "text", {}, spent, locked]) {
    const untyped: { readonly handle: (work: Work) => unknown } = { handle: () => value };
    const route: Route = { path: "/charges", ...JSON.parse("{}"), ...untyped };
    const { first, copy, state } = await asked(subject, route);
    assert.equal(first.status, 500);
    assert.equal(state, "unknown");
    problemOf(copy, "outcome_unknown", { retry: "never" });
  }
}

async function endless(subject: HostSubject): Promise<void> {
  let reason: unknown = null;
  const never = new Promise<Response>(() => {});
  const route = doing(async ({ signal }) => {
    signal.addEventListener("abort", () => {
      reason = signal.reason;
    });
    return await never;
  });
  const policy = { requestTimeout: "300ms", lease: "2s" };
  const { first, copy, state, key } = await asked(subject, route, policy);
  problemOf(first, "outcome_unknown", { status: 504, retry: "never" });
  problemOf(copy, "outcome_unknown", { retry: "never" });
  assert.equal(state, "unknown");
  assert.equal(subject.runs(key), 1);
  assert.ok(reason instanceof OutcomeUnknown);

  const endlessBody = new ReadableStream({ pull: () => new Promise<void>(() => {}) });
  const stuck = await asked(
    subject,
    doing(() => new Response(endlessBody)),
    policy,
  );
  // A host that sends no head before its body has not begun.
  assert.ok(!stuck.first.complete || stuck.first.status === 504, "what has begun is cut off");
  assert.equal(stuck.state, "unknown");
}

async function rerun(subject: HostSubject): Promise<void> {
  let failing = true;
  const route = doing(
    () => {
      const status = failing ? 500 : 201;
      failing = false;
      return new Response("said", { status });
    },
    { onAmbiguous: "rerun" },
  );
  const { first, copy, key } = await asked(subject, route);
  assertFirst(first, 500);
  assertFirst(copy, 201);
  assert.equal(subject.runs(key), 2);
}

async function toldApart(subject: HostSubject): Promise<void> {
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const routes: readonly Route[] = [
    {
      path: "/slow",
      handle: async () => {
        await held;
        return new Response("made");
      },
    },
    { path: "/fails", handle: () => new Response("broken", { status: 500 }) },
    { path: "/long", settings: { maxResponseBytes: 1 }, handle: () => new Response("long", { status: 202 }) },
  ];
  const { port, record } = await subject.serve({ routes });
  const key = subject.newKey();
  const ask = (target: string, body: unknown, one = key) => send(port, { target, ...json(one, body) });
  const slow = ask("/slow", {});
  await until(async () => (await record(key)) !== null);
  problemOf(await ask("/slow", {}), "in_progress", { retryAfter: true, effect: "maybe" });
  problemOf(await ask("/slow", { other: 1 }), "key_reused", { effect: "maybe" });
  letGo();
  assertFirst(await slow, 200);
  const failed = subject.newKey();
  await ask("/fails", {}, failed);
  problemOf(await ask("/fails", {}, failed), "outcome_unknown", { retry: "never", effect: "maybe" });
  const long = subject.newKey();
  assertFirst(await ask("/long", {}, long), 202);
  const problem = problemOf(await ask("/long", {}, long), "response_not_stored", { effect: "done" });
  assert.equal(problem["originalStatus"], 202);
  assert.match(String(problem["firstRequestAt"]), /^\d{4}-/);
}
