import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { OncekeyError } from "../../../src/errors.ts";
import { until } from "../../support/processes.ts";
import type { HostLaw, HostSubject, TransactionRoute } from "../law.ts";
import { call, send } from "../wire.ts";
import { asked, assertMade, counted, MADE, oneCommitRoute } from "./one-commit.ts";
import { assertFirst, assertReplay, isReplay, json, problemOf } from "./said.ts";

const needs = "transactions";

/** What such a route owes while a request runs, and when its time is up. */
export const oneCommitRunningLaws: readonly HostLaw[] = [
  {
    id: "ONE-01 storm",
    promise: "of sixty-four at once one runs to its commit; the others get its answer or are told to wait",
    needs,
    check: storm,
  },
  {
    id: "ONE-01 running",
    promise: "while it runs nothing is on record, and whoever comes with its key is told to wait",
    needs: "waiting transactions",
    check: running,
  },
  {
    id: "ONE-01 limit",
    promise: "a transaction not begun at the time limit never is, and that is said",
    needs,
    check: limit,
  },
  {
    id: "ONE-01 late",
    promise: "a commit under way at the time limit is its own request's answer, and no replay",
    needs: "waiting transactions",
    check: late,
  },
];

async function storm(subject: HostSubject): Promise<void> {
  const handle: TransactionRoute["handle"] = ({ commit }) =>
    commit(() => ({ status: 201, json: { made: Math.random() } }));
  const servers = await Promise.all([1, 2].map(() => subject.serve({ routes: [oneCommitRoute(handle)] })));
  const key = subject.newKey();
  const request = { target: "/charges", ...json(key, {}) };
  const ports = servers.map(({ port }) => port);
  const answers = await Promise.all(
    Array.from({ length: 64 }, async (_, n) => await send(ports[n % 2] ?? 0, request)),
  );
  const made = answers.filter(({ status }) => status === 201);
  const [first, ...more] = made.filter((answer) => !isReplay(answer));
  assert.ok(first !== undefined && more.length === 0, "one is the first");
  for (const answer of made.filter(isReplay)) assertReplay(first, answer);
  for (const answer of answers.filter(({ status }) => status !== 201))
    problemOf(answer, "in_progress", { retryAfter: true });
  const outcomes = servers.flatMap(counted);
  assert.deepEqual([outcomes.length, outcomes.filter((each) => each === "claimed").length], [64, 1]);
  assert.equal(await subject.effects(key), 1);
}

async function running(subject: HostSubject): Promise<void> {
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let began = false;
  const route = oneCommitRoute(({ commit }) =>
    commit(async () => {
      began = true;
      await finished;
      return { status: 201, json: { id: 1 } };
    }),
  );
  const [one, two] = [await subject.serve({ routes: [route] }), await subject.serve({ routes: [route] })];
  const key = subject.newKey();
  const first = call(one.port, { target: "/charges", ...json(key, { a: 1 }) });
  await until(() => began);
  assert.equal(await two.record(key), null);
  for (const body of [{ a: 1 }, { a: 2 }]) {
    const told = await send(two.port, { target: "/charges", ...json(key, body) });
    problemOf(told, "in_progress", { retryAfter: true });
  }
  finish();
  assertFirst(await first.answer, 201);
  assertReplay(await first.answer, await send(two.port, { target: "/charges", ...json(key, { a: 1 }) }));
  assert.equal(await subject.effects(key), 1);
}

async function limit(subject: HostSubject): Promise<void> {
  let late: unknown = null;
  const waitsForItsEnd: TransactionRoute["handle"] = async ({ commit, signal }) => {
    await until(() => signal.aborted);
    return await commit(MADE).catch((error: unknown) => {
      late = error;
      throw error;
    });
  };
  const asking = await asked(subject, waitsForItsEnd, { requestTimeout: "200ms", lease: "2s" });
  for (const answer of [asking.first, asking.copy])
    problemOf(answer, "not_performed", { status: 504, retryAfter: true });
  assert.deepEqual([asking.state, asking.effects], [undefined, 0]);
  await until(() => late !== null);
  assert.ok(late instanceof OncekeyError);
  assert.equal(await subject.effects(asking.key), 0);
}

async function late(subject: HostSubject): Promise<void> {
  const slow = async () => {
    await sleep(500);
    return MADE;
  };
  const policy = { requestTimeout: "200ms", lease: "10s" };
  assertMade(await asked(subject, ({ commit }) => commit(slow), policy));
}
