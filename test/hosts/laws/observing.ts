import assert from "node:assert/strict";
import type { EngineEvent } from "../../../src/engine/events.ts";
import { OncekeyError } from "../../../src/errors.ts";
import { until } from "../../support/processes.ts";
import type { HostLaw, HostSubject, PlainRoute, Route, Served } from "../law.ts";
import { call, send, type WireAnswer } from "../wire.ts";
import { echo } from "./comparing.ts";
import { assertFirst, json, type keyed, problemOf } from "./said.ts";

/** A route that is only observed: it runs as if nothing stood before it. */
export const observingLaws: readonly HostLaw[] = [
  {
    id: "OBS counts",
    promise:
      "an observed route runs every request as it was, and tells what would have been replayed or refused",
    check: counts,
  },
  {
    id: "OBS running",
    promise: "a copy that comes while the first one runs is told of, and runs",
    check: running,
  },
  {
    id: "OBS ends",
    promise: "what an observed handler answered decides what its copies would have met",
    check: ends,
  },
  {
    id: "OBS refused",
    promise: "what protection would refuse runs, and the listeners hear why it would have been",
    check: refused,
  },
  {
    id: "OBS outage",
    promise: "an answer of an observed route waits for no store, and knows nothing of its failures",
    check: outages,
  },
  {
    id: "OBS hang-up",
    promise: "an observed request whose client is gone leaves no record running",
    check: hangUps,
  },
  {
    id: "OBS switched",
    promise: "once the route is protected, a retry of an observed request does not run again",
    check: switched,
  },
];

const observing = echo({ observe: true });

type Observed = Extract<EngineEvent, { readonly type: "request" }>;

function heardBy({ events }: Served): readonly string[] {
  const requests = events.filter((event): event is Observed => event.type === "request");
  return requests.map(({ outcome, observed }) => (observed === true ? outcome : `${outcome}, not observed`));
}

/** Waits for the records of what has been answered: nothing holds an answer back for them. */
async function settledAs(served: Served, key: string, ...states: readonly string[]): Promise<void> {
  await until(async () => states.includes(String((await served.record(key))?.state)));
}

/** The handler's own answer, with nothing of ours on it. */
function assertBare(answer: WireAnswer, status: number): void {
  assertFirst(answer, status);
  assert.deepEqual(
    answer.headers.filter(([name]) => name.startsWith("idempot")),
    [],
  );
}

async function counts(subject: HostSubject): Promise<void> {
  const served = await subject.serve({ routes: [observing] });
  const key = subject.newKey();
  const sent = (body: unknown) => send(served.port, { target: "/charges", ...json(key, body) });
  const answers = [await sent({ a: 1, b: 1 })];
  await settledAs(served, key, "completed");
  const { fingerprint } = (await served.record(key)) ?? {};
  // Nobody waits for what an observed request claims: one after the other, so that they are heard in their order.
  answers.push(await sent({ b: 1, a: 1.0 }));
  await until(() => heardBy(served).length === 2);
  answers.push(await sent({ b: 1, a: 1, c: 1 }));
  for (const answer of answers) assertBare(answer, 201);
  assert.equal(new Set(answers.map(({ body }) => body.toString())).size, 3, "each has its own answer");
  await until(() => heardBy(served).length === 3);
  assert.deepEqual(heardBy(served), ["claimed", "replayed", "fingerprint_mismatch"]);
  const mismatch = served.events.find((event) => event.type === "mismatch");
  assert.deepEqual(mismatch?.type === "mismatch" && [mismatch.members, mismatch.observed], [["c"], true]);
  assert.equal(subject.runs(key), 3);
  const record = await served.record(key);
  assert.deepEqual(record?.fingerprint, fingerprint, "nothing has changed");
  assert.equal(record?.state === "completed" && record.answer.body, null, "no answer is kept");
}

async function running(subject: HostSubject): Promise<void> {
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const route: PlainRoute = {
    path: "/charges",
    settings: { observe: true },
    handle: async ({ effect }) => {
      effect();
      await held;
      return new Response("done", { status: 201 });
    },
  };
  const served = await subject.serve({ routes: [route] });
  const key = subject.newKey();
  const sent = () => send(served.port, { target: "/charges", ...json(key, { a: 1 }) });
  const copies = [sent()];
  await settledAs(served, key, "in_progress");
  copies.push(sent(), sent());
  await until(() => heardBy(served).length === 3 && subject.runs(key) === 3);
  letGo();
  for (const answer of await Promise.all(copies)) assertBare(answer, 201);
  assert.deepEqual(heardBy(served), ["claimed", "in_progress_conflict", "in_progress_conflict"]);
  await settledAs(served, key, "completed");
  assert.equal(await subject.effects(key), 3);
}

async function ends(subject: HostSubject): Promise<void> {
  const answering = (status: number): PlainRoute => ({
    path: `/${status}`,
    settings: { observe: true },
    handle: () => new Response("said", { status }),
  });
  const throwing: PlainRoute = {
    path: "/throws",
    settings: { observe: true },
    handle: () => {
      throw new Error("no");
    },
  };
  const served = await subject.serve({
    routes: [...[201, 422, 503, 500].map(answering), throwing],
  });
  for (const [path, status, state, outcome] of [
    ["/201", 201, "completed", "replayed"],
    ["/422", 422, "completed", "replayed"],
    ["/503", 503, "released", "claimed"],
    ["/500", 500, "unknown", "outcome_unknown"],
    ["/throws", 500, "unknown", "outcome_unknown"],
  ] as const) {
    const key = subject.newKey();
    const before = heardBy(served).length;
    const sent = () => send(served.port, { target: path, ...json(key, { a: 1 }) });
    assertBare(await sent(), status);
    await settledAs(served, key, state);
    assertBare(await sent(), status);
    await until(() => heardBy(served).length === before + 2);
    assert.deepEqual(heardBy(served).slice(before), ["claimed", outcome], path);
    await settledAs(served, key, state);
    assert.equal(subject.runs(key), 2);
  }
}

async function refused(subject: HostSubject): Promise<void> {
  const limited = echo({ observe: true, maxRequestBytes: 20 });
  const nobody = { ...echo({ observe: true }, "/nobody"), principal: () => "" };
  const failing: Route = {
    ...echo({ observe: true }, "/failing"),
    principal: () => {
      throw new Error("The directory is away.");
    },
  };
  const served = await subject.serve({ routes: [limited, nobody, failing] });
  const sent = (target: string, headers: Parameters<typeof keyed>[1], body: string) =>
    send(served.port, { target, headers: headers ?? [], body });
  assertBare(await sent("/charges", [], "no key"), 201);
  assertBare(await sent("/charges", [["Idempotency-Key", "a,b"]], "two keys"), 201);
  assert.deepEqual(heardBy(served), ["key_missing", "key_invalid"]);
  const key = (): [string, string] => ["Idempotency-Key", subject.newKey()];
  const long = "x".repeat(100);
  const answer = await sent("/charges", [key()], long);
  assertBare(answer, 201);
  assert.ok(answer.body.toString().startsWith(long), "the handler reads it whole");
  assertBare(await sent("/charges", [key(), ["Content-Type", "multipart/form-data"]], "form"), 201);
  assertBare(await sent("/nobody", [key()], ""), 201);
  assertBare(await sent("/failing", [key()], ""), 201);
  const told = served.events.flatMap((event) => (event.type === "failure" ? [event.error] : []));
  assert.deepEqual(
    told.map((error) => (error instanceof OncekeyError ? error.code : String(error))),
    ["request_too_large", "configuration", "principal_unresolved", "Error: The directory is away."],
  );
  assert.deepEqual([heardBy(served).length, served.storeCalls.length], [2, 0]);
}

async function outages(subject: HostSubject): Promise<void> {
  const served = await subject.serve({ routes: [observing] });
  const key = subject.newKey();
  const sent = ({ port }: Served, own = key) => send(port, { target: "/charges", ...json(own, { a: 1 }) });
  served.cutOff(true);
  assertBare(await sent(served), 201);
  await until(() => heardBy(served).length === 1);
  served.cutOff(false);
  assertBare(await sent(served), 201);
  await settledAs(served, key, "completed");
  assert.deepEqual(heardBy(served), ["store_unavailable", "claimed"]);
  const waiting = await subject.serve({ routes: [observing], store: "silent" });
  assertBare(await sent(waiting, subject.newKey()), 201);
  assert.deepEqual(heardBy(waiting), [], "the store has not been given up yet");
  await until(() => heardBy(waiting).length === 1);
  assert.deepEqual(heardBy(waiting), ["store_unavailable"]);
  assert.equal(subject.runs(key), 2);
}

async function hangUps(subject: HostSubject): Promise<void> {
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const route: PlainRoute = {
    path: "/charges",
    settings: { observe: true },
    handle: async () => {
      await held;
      return new Response("done", { status: 201 });
    },
  };
  const served = await subject.serve({ routes: [route] });
  const key = subject.newKey();
  const calling = call(served.port, { target: "/charges", ...json(key, { a: 1 }) });
  await settledAs(served, key, "in_progress");
  calling.hangUp();
  await calling.answer;
  letGo();
  await settledAs(served, key, "completed", "unknown");
}

async function switched(subject: HostSubject): Promise<void> {
  const before = await subject.serve({ routes: [observing] });
  const after = await subject.serve({ routes: [echo()] });
  const key = subject.newKey();
  const sent = ({ port }: Served) => send(port, { target: "/charges", ...json(key, { a: 1 }) });
  assertBare(await sent(before), 201);
  await settledAs(before, key, "completed");
  const { originalStatus } = problemOf(await sent(after), "response_not_stored");
  assert.equal(originalStatus, 201);
  assert.equal(subject.runs(key), 1);
}
