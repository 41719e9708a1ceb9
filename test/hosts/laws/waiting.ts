import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../support/processes.ts";
import type { HostLaw, HostSubject, LawSettings, OperationRoute, PlainRoute, Served } from "../law.ts";
import { call, send } from "../wire.ts";
import { assertFirst, assertReplay, isReplay, json, problemOf } from "./said.ts";

/** Copies that wait for the answer, because their route says so. */
export const waitingLaws: readonly HostLaw[] = [
  {
    id: "G9 wait",
    promise: "sixty-four copies wait for one answer with few looks, and disturb no other key",
    check: many,
  },
  {
    id: "G9 elsewhere",
    promise: "a copy at another server waits for the answer as well",
    check: elsewhere,
  },
  {
    id: "G9 bounds",
    promise: "a copy waits no longer than its route says, and not at all for another request's answer",
    check: bounds,
  },
  {
    id: "G9 next",
    promise: "where nothing was done one of those that wait runs next, under a claim of its own",
    check: next,
  },
  {
    id: "G9 gone",
    promise: "a copy whose client is gone waits no longer, and never runs",
    check: gone,
  },
  { id: "G9 drain", promise: "a draining server lets nobody wait", check: draining },
  {
    id: "G9 operation",
    promise: "a copy of an operation waits for its answer, too",
    needs: "transactions",
    check: operations,
  },
  {
    id: "G9 outage",
    promise: "a look that the store does not answer is not the end of the waiting",
    check: outage,
  },
];

/** A route whose handlers end when a law lets them. */
function held(settings: LawSettings, statusOf = (_run: number) => 201) {
  const letGo: (() => void)[] = [];
  const route: PlainRoute = {
    path: "/charges",
    settings,
    handle: async ({ effect }) => {
      const run = letGo.length;
      await new Promise<void>((resolve) => letGo.push(resolve));
      effect();
      return Response.json({ made: Math.random() }, { status: statusOf(run) });
    },
  };
  return { route, letGo: (run: number) => letGo[run]?.(), isRunning: (run: number) => letGo.length > run };
}

const asking = ({ port }: Served, key: string, body: unknown = {}) =>
  call(port, { target: "/charges", ...json(key, body) });

const outcomesOf = ({ events }: Served): readonly string[] =>
  events.flatMap((event) => (event.type === "request" ? [event.outcome] : []));

async function many(subject: HostSubject): Promise<void> {
  const { route, letGo, isRunning } = held({ waitMs: "20s" });
  const quick: PlainRoute = { path: "/quick", handle: () => new Response("made", { status: 201 }) };
  const served = await subject.serve({ routes: [route, quick] });
  const key = subject.newKey();
  const first = asking(served, key);
  await until(() => isRunning(0));
  const copies = Array.from({ length: 64 }, () => asking(served, key));
  const inserts = () => served.storeCalls.filter((verb) => verb === "insert").length;
  await until(() => inserts() === 65);
  const before = served.storeCalls.length;
  await sleep(1_000);
  const looks = served.storeCalls.length - before;
  assert.ok(looks >= 1 && looks <= 10, `looks are shared, and not often: ${looks}`);
  assertFirst(await send(served.port, { target: "/quick", ...json(subject.newKey(), {}) }), 201);
  letGo(0);
  const answer = await first.answer;
  assertFirst(answer, 201);
  for (const copy of copies) assertReplay(answer, await copy.answer);
  assert.equal(subject.runs(key), 1);
  const counted = outcomesOf(served);
  assert.equal(counted.filter((outcome) => outcome === "replayed").length, 64, "each request counts once");
  assert.equal(counted.length, 66);
}

async function elsewhere(subject: HostSubject): Promise<void> {
  const { route, letGo, isRunning } = held({ waitMs: "20s" });
  const [here, there] = [await subject.serve({ routes: [route] }), await subject.serve({ routes: [route] })];
  const key = subject.newKey();
  const first = asking(here, key);
  await until(() => isRunning(0));
  const copy = asking(there, key);
  await until(() => there.storeCalls.length >= 2);
  letGo(0);
  const answer = await first.answer;
  assertFirst(answer, 201);
  assertReplay(answer, await copy.answer);
  assert.equal(subject.runs(key), 1);
}

async function bounds(subject: HostSubject): Promise<void> {
  const { route, letGo, isRunning } = held({ waitMs: 600 });
  const served = await subject.serve({ routes: [route] });
  const key = subject.newKey();
  const first = asking(served, key);
  await until(() => isRunning(0));
  const startedMs = performance.now();
  problemOf(await asking(served, key, { other: 1 }).answer, "key_reused", { effect: "maybe" });
  problemOf(await asking(served, key).answer, "in_progress", { retryAfter: true });
  assert.ok(performance.now() - startedMs >= 590, "it has waited");
  assert.deepEqual(outcomesOf(served).slice(1), ["fingerprint_mismatch", "in_progress_conflict"]);
  letGo(0);
  assertFirst(await first.answer, 201);
}

async function next(subject: HostSubject): Promise<void> {
  const { route, letGo, isRunning } = held({ waitMs: "20s" }, (run) => (run === 0 ? 503 : 201));
  const served = await subject.serve({ routes: [route] });
  const key = subject.newKey();
  const first = asking(served, key);
  await until(() => isRunning(0));
  const copies = Array.from({ length: 8 }, () => asking(served, key));
  const inserts = () => served.storeCalls.filter((verb) => verb === "insert").length;
  await until(() => inserts() === 9);
  letGo(0);
  assertFirst(await first.answer, 503);
  await until(() => isRunning(1));
  await sleep(300);
  assert.ok(!isRunning(2), "one runs, the others go on waiting");
  assert.ok(inserts() <= 12, "and have not all tried to claim");
  letGo(1);
  const answers = await Promise.all(copies.map(({ answer }) => answer));
  const firsts = answers.filter((answer) => !isReplay(answer));
  assert.equal(firsts.length, 1);
  for (const answer of answers) {
    if (isReplay(answer) && firsts[0] !== undefined) assertReplay(firsts[0], answer);
    else assertFirst(answer, 201);
  }
  assert.equal(subject.runs(key), 2);
}

async function gone(subject: HostSubject): Promise<void> {
  const { route, letGo, isRunning } = held({ waitMs: "20s" }, () => 503);
  const served = await subject.serve({ routes: [route] });
  const key = subject.newKey();
  const first = asking(served, key);
  await until(() => isRunning(0));
  const copy = asking(served, key);
  await until(() => served.storeCalls.includes("read"));
  copy.hangUp();
  await until(() => outcomesOf(served).includes("in_progress_conflict"));
  const looks = served.storeCalls.length;
  letGo(0);
  assertFirst(await first.answer, 503);
  await sleep(800);
  assert.ok(served.storeCalls.length <= looks + 2, "nobody looks any more");
  assert.equal(subject.runs(key), 1);
}

async function draining(subject: HostSubject): Promise<void> {
  const { route, letGo, isRunning } = held({ waitMs: "20s" });
  const served = await subject.serve({ routes: [route] });
  const key = subject.newKey();
  const first = asking(served, key);
  await until(() => isRunning(0));
  const copy = asking(served, key);
  await until(() => served.storeCalls.includes("read"));
  const drained = served.drain();
  problemOf(await copy.answer, "in_progress", { retryAfter: true });
  letGo(0);
  assertFirst(await first.answer, 201);
  await drained;
}

async function operations(subject: HostSubject): Promise<void> {
  let letGo = (_: string) => {};
  const held = new Promise<string>((resolve) => {
    letGo = resolve;
  });
  const route: OperationRoute = {
    path: "/charges",
    effects: "operation",
    settings: { waitMs: "20s" },
    perform: async () => await held,
    finish: (result) => ({ status: 201, json: { result } }),
  };
  const served = await subject.serve({ routes: [route] });
  const key = subject.newKey();
  const first = asking(served, key);
  await until(async () => (await served.record(key)) !== null);
  const copy = asking(served, key);
  await sleep(200);
  letGo("paid");
  const answer = await first.answer;
  assertFirst(answer, 201);
  assertReplay(answer, await copy.answer);
  assert.equal(await subject.effects(key), 1);
}

async function outage(subject: HostSubject): Promise<void> {
  const { route, letGo, isRunning } = held({ waitMs: "20s" });
  const served = await subject.serve({ routes: [route] });
  const key = subject.newKey();
  const first = asking(served, key);
  await until(() => isRunning(0));
  const copies = [asking(served, key), asking(served, key)];
  await until(() => served.storeCalls.includes("read"));
  served.cutOff(true);
  const failed = () =>
    served.events.filter((event) => event.type === "failure" && /^waiting/.test(event.what)).length;
  await until(() => failed() > 0);
  served.cutOff(false);
  letGo(0);
  const answer = await first.answer;
  assertFirst(answer, 201);
  for (const copy of copies) assertReplay(answer, await copy.answer);
}
