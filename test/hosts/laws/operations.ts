import assert from "node:assert/strict";
import { NotPerformed } from "../../../src/errors.ts";
import { until } from "../../support/processes.ts";
import type { HostLaw, HostSubject, OperationRoute } from "../law.ts";
import { call, linesOf, send } from "../wire.ts";
import { assertFirst, assertReplay, json, problemOf } from "./said.ts";

const needs = "transactions";

/** What a client of an operation's route is told. */
export const operationLaws: readonly HostLaw[] = [
  {
    id: "OP",
    promise: "an operation answers once it is finished, and a refusal of its own is kept",
    needs,
    check: settles,
  },
  {
    id: "OP not performed",
    promise: "an operation that did nothing may be tried again",
    needs,
    check: notPerformed,
  },
  {
    id: "OP unheard",
    promise: "an operation whose provider was not heard is 504, then 409, and does not run again",
    needs,
    check: unheard,
  },
  {
    id: "OP running",
    promise: "a duplicate of a running operation waits, another request is refused",
    needs,
    check: running,
  },
];

const SECRET = "ECONNRESET 10.0.0.7 pan=4111";

const route = (perform: OperationRoute["perform"], status = 201): OperationRoute => ({
  path: "/payments",
  effects: "operation",
  perform,
  finish: (result) => ({ status, headers: { location: "/payments/1" }, json: { result } }),
});

async function settles(subject: HostSubject): Promise<void> {
  for (const status of [201, 402]) {
    const { port, record } = await subject.serve({ routes: [route(async () => "paid", status)] });
    const key = subject.newKey();
    const request = { target: "/payments", ...json(key, {}) };
    const first = await send(port, request);
    assertFirst(first, status);
    assert.equal(first.body.toString(), '{"result":"paid"}');
    assert.equal(linesOf(first, "idempotency-expires").length, 1);
    assertReplay(first, await send(port, request));
    assert.equal((await record(key))?.state, status === 201 ? "completed" : "failed_permanent");
    assert.deepEqual([subject.runs(key), await subject.effects(key)], [1, 1]);
    assertFirst(await send(port, { method: "GET", target: "/payments" }), 500);
  }
}

async function notPerformed(subject: HostSubject): Promise<void> {
  let failing = true;
  const { port, record } = await subject.serve({
    routes: [
      route(async () => {
        if (failing) throw new NotPerformed(SECRET);
        return "paid";
      }),
    ],
  });
  const key = subject.newKey();
  const request = { target: "/payments", ...json(key, {}) };
  const first = await send(port, request);
  problemOf(first, "not_performed", { retryAfter: true });
  assert.ok(!first.body.includes("4111"));
  assert.equal((await record(key))?.state, "released");
  failing = false;
  assertFirst(await send(port, request), 201);
  assert.equal(await subject.effects(key), 1);
}

async function unheard(subject: HostSubject): Promise<void> {
  const { port, record } = await subject.serve({
    routes: [
      route(async () => {
        throw new Error(SECRET);
      }),
    ],
  });
  const key = subject.newKey();
  const request = { target: "/payments", ...json(key, {}) };
  const first = await send(port, request);
  problemOf(first, "outcome_unknown", { status: 504, retry: "never" });
  assert.ok(!first.body.includes("4111"));
  problemOf(await send(port, request), "outcome_unknown", { retry: "never" });
  assert.equal((await record(key))?.state, "unknown");
  assert.deepEqual([subject.runs(key), await subject.effects(key)], [1, 0]);
}

async function running(subject: HostSubject): Promise<void> {
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const slow = route(async () => {
    await held;
    return "paid";
  });
  const { port } = await subject.serve({ routes: [slow] });
  const key = subject.newKey();
  const first = call(port, { target: "/payments", ...json(key, { a: 1 }) });
  await until(() => subject.runs(key) === 1);
  problemOf(await send(port, { target: "/payments", ...json(key, { a: 1.0 }) }), "in_progress", {
    retryAfter: true,
  });
  problemOf(await send(port, { target: "/payments", ...json(key, { a: 2 }) }), "key_reused");
  letGo();
  assertFirst(await first.answer, 201);
}
