import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../support/processes.ts";
import type { HostLaw, HostSubject } from "../law.ts";
import { call, send } from "../wire.ts";
import { counted, oneCommitRoute } from "./one-commit.ts";
import { assertFirst, assertReplay, json, problemOf } from "./said.ts";

const needs = "transactions";

/** What such a route owes while its store is gone, or its server is going. */
export const oneCommitOutageLaws: readonly HostLaw[] = [
  {
    id: "ONE-02 G12",
    promise: "a store that does not answer, or lacks its tables, is 503, and there is no effect",
    needs,
    check: unreachable,
  },
  {
    id: "ONE-02 cut",
    promise: "a store that is gone when the transaction is to begin is 503, and the same key runs later",
    needs,
    check: cut,
  },
  {
    id: "ONE-02 G10",
    promise: "a commit whose reply was lost is found again, and its effect is not repeated",
    needs,
    check: lostCommit,
  },
  {
    id: "ONE-02 drain",
    promise: "a draining server refuses new claims and lets its attempts end",
    needs,
    check: draining,
  },
];

const made = oneCommitRoute(({ commit }) => commit(() => ({ status: 201, json: { made: Math.random() } })));

async function unreachable(subject: HostSubject): Promise<void> {
  for (const store of ["silent", "bare"] as const) {
    const policy = { storeTimeout: "400ms" };
    const served = await subject.serve({ routes: [made], store, policy });
    const key = subject.newKey();
    const startedMs = performance.now();
    const answer = await send(served.port, { target: "/charges", ...json(key, {}) });
    const tookMs = performance.now() - startedMs;
    problemOf(answer, "store_unavailable", { retryAfter: true });
    assert.ok(tookMs < 400 + 1_500, `the store timeout bounds the waiting: ${tookMs} ms`);
    assert.deepEqual([await subject.effects(key), counted(served)], [0, ["store_unavailable"]]);
  }
}

async function cut(subject: HostSubject): Promise<void> {
  let cutOff = (_: boolean) => {};
  const route = oneCommitRoute(({ commit }) => {
    cutOff(true);
    return commit({ status: 201 });
  });
  const served = await subject.serve({ routes: [route], policy: { storeTimeout: "200ms" } });
  cutOff = served.cutOff;
  const key = subject.newKey();
  const request = { target: "/charges", ...json(key, {}) };
  problemOf(await send(served.port, request), "store_unavailable", { retryAfter: true });
  served.cutOff(false);
  assert.deepEqual([await subject.effects(key), await served.record(key)], [0, null]);
  const elsewhere = await subject.serve({ routes: [made] });
  assertFirst(await send(elsewhere.port, request), 201);
  assert.equal(await subject.effects(key), 1);
}

/** More than a transaction is tried. */
const EVERY_TRY = 5;

async function lostCommit(subject: HostSubject): Promise<void> {
  for (const losing of [1, 2, EVERY_TRY]) {
    const served = await subject.serve({
      routes: [
        oneCommitRoute(({ commit }) => {
          served.loseReplies(losing);
          return commit(() => ({ status: 201, json: { made: Math.random() } }));
        }),
      ],
    });
    const key = subject.newKey();
    const request = { target: "/charges", ...json(key, {}) };
    const first = await send(served.port, request);
    if (losing < EVERY_TRY) assertFirst(first, 201);
    served.loseReplies(0);
    const elsewhere = await subject.serve({ routes: [made] });
    const copy = await send(elsewhere.port, request);
    assert.deepEqual([copy.status, copy.body], [first.status, first.body]);
    assert.equal(await subject.effects(key), 1);
    assert.deepEqual(counted(served), ["claimed"]);
  }
}

async function draining(subject: HostSubject): Promise<void> {
  const slow = oneCommitRoute(async ({ commit }) => {
    await sleep(300);
    return await commit({ status: 201, json: { id: 1 } });
  });
  const { port, drain } = await subject.serve({ routes: [slow] });
  const key = subject.newKey();
  const request = { target: "/charges", ...json(key, {}) };
  const running = call(port, request);
  await until(() => subject.runs(key) === 1);
  const drained = drain();
  const other = subject.newKey();
  problemOf(await send(port, { target: "/charges", ...json(other, {}) }), "draining", { retryAfter: true });
  assert.equal(subject.runs(other), 0);
  const first = await running.answer;
  assertFirst(first, 201);
  await drained;
  const elsewhere = await subject.serve({ routes: [slow] });
  assertReplay(first, await send(elsewhere.port, request));
  assert.equal(await subject.effects(key), 1);
}
