import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { nodeRuntime } from "../../../src/engine/runtime.ts";
import { until } from "../../support/processes.ts";
import type { HostLaw, HostSubject, Route, Served } from "../law.ts";
import { call, linesOf, send, type WireAnswer } from "../wire.ts";
import { assertFirst, assertReplay, isReplay, json, problemOf } from "./said.ts";

/** Who runs, who waits for whom, and what a death or a hang-up leaves behind. */
export const claimingLaws: readonly HostLaw[] = [
  {
    id: "CR-01",
    promise:
      "of fifty requests at once through two servers one runs, the others get its answer or are told to wait",
    check: (subject) => raced(subject, slowPlain),
  },
  {
    id: "CR-01 transaction",
    promise: "of fifty requests at once through two servers one commits, the others get its answer or wait",
    needs: "transactions",
    check: (subject) => raced(subject, slowTransaction),
  },
  {
    id: "CR-02",
    promise: "whoever loses the race is told so in peace: no server error, no failure, no stray rejection",
    check: losersInPeace,
  },
  {
    id: "CL-01",
    promise:
      "a dead attempt holds its key until its lease lapses and no longer; retention counts from the end",
    needs: "transactions",
    check: deadAttempt,
  },
  {
    id: "CL-10",
    promise: "a client that hangs up neither stops the work nor its recording",
    check: hungUp,
  },
];

const slowPlain: Route = {
  path: "/charges",
  handle: async ({ effect }) => {
    await sleep(200);
    effect();
    return Response.json({ made: Math.random() }, { status: 201 });
  },
};

const slowTransaction: Route = {
  path: "/charges",
  effects: "transaction",
  handle: async ({ commit }) => {
    await sleep(200);
    return await commit(() => ({ status: 201, json: { made: Math.random() } }));
  },
};

async function raced(subject: HostSubject, route: Route): Promise<void> {
  const key = subject.newKey();
  const one = await subject.serve({ routes: [route] });
  const other = await subject.serve({ routes: [route] });
  const request = { target: "/charges", ...json(key, { amount: 100 }) };
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, index) => send(index % 2 === 0 ? one.port : other.port, request)),
  );
  const [first, ...more] = answers.filter((answer) => answer.status === 201 && !isReplay(answer));
  assert.ok(first !== undefined && more.length === 0, "exactly one answer is a first one");
  for (const answer of answers.filter((each) => each !== first)) {
    if (answer.status === 201) assertReplay(first, answer);
    else problemOf(answer, "in_progress", { retryAfter: true });
  }
  assertReplay(first, await send(other.port, request));
  assert.equal(await subject.effects(key), 1);
}

async function losersInPeace(subject: HostSubject): Promise<void> {
  const strays: unknown[] = [];
  const onStray = (error: unknown) => strays.push(error);
  process.on("unhandledRejection", onStray);
  const route: Route = {
    path: "/charges",
    handle: async ({ effect }) => {
      await sleep(20);
      return made(effect);
    },
  };
  let losers = 0;
  const servers = [await subject.serve({ routes: [route] }), await subject.serve({ routes: [route] })];
  for (let round = 0; round < 15; round++) {
    const request = { target: "/charges", ...json(subject.newKey(), { round }) };
    const answers = await Promise.all([...servers, ...servers].map(({ port }) => send(port, request)));
    for (const answer of answers) assert.ok([201, 409].includes(answer.status), `${answer.status}`);
    for (const loser of answers.filter(({ status }) => status === 409)) {
      problemOf(loser, "in_progress", { retryAfter: true });
      losers += 1;
    }
    assert.equal(answers.filter((answer) => answer.status === 201 && !isReplay(answer)).length, 1);
  }
  assert.ok(losers > 0, "somebody lost while the winner ran");
  const [server] = servers;
  assert.ok(server !== undefined);
  assertFirst(await send(server.port, { target: "/charges", ...json(subject.newKey(), {}) }), 201);
  assert.deepEqual(servers.flatMap(failuresOf), []);
  process.off("unhandledRejection", onStray);
  assert.deepEqual(strays, []);
}

function failuresOf({ events, errors }: Served): readonly unknown[] {
  return [...errors, ...events.filter(({ type }) => type === "failure")];
}

function made(effect: () => void): Response {
  effect();
  return new Response("made", { status: 201 });
}

/** A process that was stopped dead: it renews nothing and notices nothing. */
const stopped = {
  ...nodeRuntime(),
  timer: () => ({ expired: new Promise<void>(() => {}), cancel: () => {} }),
  after: () => () => {},
};

async function deadAttempt(subject: HostSubject): Promise<void> {
  const key = subject.newKey();
  let wake = () => {};
  const asleep = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const route = (wait: Promise<void> | null): Route => ({
    path: "/charges",
    effects: "transaction",
    handle: async ({ commit }) => {
      await wait;
      return await commit({ status: 201, json: { id: 1 } });
    },
  });
  const policy = { requestTimeout: "1s", lease: "2500ms", retention: "1h" };
  const dead = await subject.serve({ routes: [route(asleep)], policy, runtime: stopped });
  const alive = await subject.serve({ routes: [route(null)], policy });
  const request = { target: "/charges", ...json(key, {}) };
  const lost = send(dead.port, request);
  await until(() => subject.runs(key) === 1);
  const early = await send(alive.port, request);
  problemOf(early, "in_progress", { retryAfter: true });
  assert.ok(Number(linesOf(early, "retry-after")[0]) <= 2, "never longer than what is left of the lease");
  const first = await lastAnswer(() => send(alive.port, request), { firstRunAt: performance.now() });
  assertFirst(first, 201);
  const record = await alive.record(key);
  assert.equal(record?.state, "completed");
  assert.equal(record.retainUntil - record.updatedAt, 3_600_000);
  wake(); // the dead one comes back: its fence keeps it out, and it tells what stands
  assertReplay(first, await lost);
  assert.equal(await subject.effects(key), 1);
}

async function lastAnswer(
  ask: () => Promise<WireAnswer>,
  { firstRunAt }: { readonly firstRunAt: number },
): Promise<WireAnswer> {
  for (;;) {
    const answer = await ask();
    if (answer.status !== 409) return answer;
    problemOf(answer, "in_progress", { retryAfter: true });
    assert.ok(performance.now() - firstRunAt < 10_000, "the key is stuck");
    await sleep(50);
  }
}

async function hungUp(subject: HostSubject): Promise<void> {
  const key = subject.newKey();
  let aborted: boolean | null = null;
  const route: Route = {
    path: "/charges",
    handle: async ({ effect, signal }) => {
      await sleep(200);
      effect();
      aborted = signal.aborted;
      return Response.json({ id: 1 }, { status: 201 });
    },
  };
  const { port, record } = await subject.serve({ routes: [route] });
  const request = { target: "/charges", ...json(key, {}) };
  const first = call(port, request);
  await until(() => subject.runs(key) === 1);
  first.hangUp();
  await until(async () => (await record(key))?.state === "completed");
  const copy = await send(port, request);
  assert.equal(copy.status, 201);
  assert.ok(isReplay(copy));
  assert.equal(copy.body.toString(), '{"id":1}');
  assert.equal(aborted, false);
  assert.equal(await subject.effects(key), 1);
}
