import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../support/processes.ts";
import type { HostLaw, HostSubject, Route, Served } from "../law.ts";
import { call, linesOf, send } from "../wire.ts";
import { assertFirst, assertReplay, isReplay, json, problemOf } from "./said.ts";

/** What happens while the store is gone, or the server is going. */
export const outageLaws: readonly HostLaw[] = [
  {
    id: "G12",
    promise: "a store that does not answer is 503 within the store timeout, and nothing runs",
    check: silent,
  },
  {
    id: "OP-05",
    promise: "failOpen runs unprotected and says so, whatever the handler does",
    check: failOpen,
  },
  {
    id: "OP-05 said",
    promise: "an error under failOpen says that it was unprotected as well",
    needs: "error page",
    check: failOpenSaid,
  },
  {
    id: "CL-13",
    promise: "an answer that cannot be kept is not sent; writing goes on until it is kept",
    check: unkept,
  },
  {
    id: "CL-13 begun",
    promise: "an answer whose head has left is cut before its end where it cannot be kept, sendUnkept or not",
    check: cutOff,
  },
  {
    id: "CL-13 sent",
    promise: "sendUnkept sends what could not be kept and says so; it is kept all the same, and runs once",
    check: sentUnkept,
  },
  {
    id: "CL-13 doubt",
    promise: "sendUnkept sends no answer while a call is in doubt",
    check: doubtUnkept,
  },
  {
    id: "CL-13 transaction",
    promise: "an effect that the store would not commit is undone, and that is said",
    needs: "transactions",
    check: uncommitted,
  },
  { id: "G10", promise: "replies that the store lost do no harm", check: lostReplies },
  {
    id: "G10 transaction",
    promise: "a commit whose reply was lost is found again, and its effect is not repeated",
    needs: "transactions",
    check: lostCommit,
  },
  {
    id: "G12 tables",
    promise: "a store without its tables is 503, nothing runs, and the operators hear what to run",
    needs: "tables",
    check: bare,
  },
  {
    id: "G6 drain",
    promise: "a draining server refuses new claims and lets its attempts end",
    check: draining,
  },
];

const SECRET = "select * from cards where pan=4111";

const made: Route = {
  path: "/charges",
  handle: ({ effect }) => {
    effect();
    return new Response("made", { status: 201 });
  },
};

async function silent(subject: HostSubject): Promise<void> {
  const policy = { storeTimeout: "400ms" };
  const { port, events } = await subject.serve({ routes: [made], store: "silent", policy });
  const key = subject.newKey();
  const startedMs = performance.now();
  const answer = await send(port, { target: "/charges", ...json(key, {}) });
  const tookMs = performance.now() - startedMs;
  problemOf(answer, "store_unavailable", { retryAfter: true });
  assert.ok(tookMs < 400 + 1_500, `the store timeout bounds the waiting: ${tookMs} ms`);
  assert.equal(subject.runs(key), 0);
  assert.equal(await subject.effects(key), 0);
  assert.ok(events.some((event) => event.type === "request" && event.outcome === "store_unavailable"));
}

async function failOpen(subject: HostSubject): Promise<void> {
  const settings = { failOpen: true };
  const throwing: Route = {
    path: "/throws",
    settings,
    handle: () => {
      throw new Error(SECRET);
    },
  };
  const { port, events, cutOff } = await subject.serve({
    routes: [{ ...made, settings }, throwing],
    policy: { storeTimeout: "1s" }, // long enough for a first connection, once the wire is whole again
  });
  cutOff(true);
  const key = subject.newKey();
  for (const _ of [1, 2]) {
    const answer = await send(port, { target: "/charges", ...json(key, {}) });
    assertFirst(answer, 201);
    assert.equal(answer.body.toString(), "made");
    assert.deepEqual(linesOf(answer, "idempotency-status"), ["unprotected"]);
  }
  assert.equal(await subject.effects(key), 2);
  const thrown = await send(port, { target: "/throws", ...json(key, {}) });
  assertFirst(thrown, 500);
  assert.ok(!thrown.body.includes("4111"));
  const outcomes = events.filter((event) => event.type === "request" && event.outcome === "unprotected");
  assert.equal(outcomes.length, 3);
  cutOff(false);
  const protectedAgain = await send(port, { target: "/charges", ...json(key, {}) });
  assertFirst(protectedAgain, 201);
  assert.deepEqual(linesOf(protectedAgain, "idempotency-status"), []);
}

async function failOpenSaid(subject: HostSubject): Promise<void> {
  const throwing: Route = {
    path: "/charges",
    settings: { failOpen: true },
    handle: () => {
      throw new Error(SECRET);
    },
  };
  const policy = { storeTimeout: "100ms" };
  const { port, cutOff } = await subject.serve({ routes: [throwing], policy });
  cutOff(true);
  const thrown = await send(port, { target: "/charges", ...json(subject.newKey(), {}) });
  assert.deepEqual([thrown.status, linesOf(thrown, "idempotency-status")], [500, ["unprotected"]]);
}

async function unkept(subject: HostSubject): Promise<void> {
  let cutOff = (_: boolean) => {};
  const route: Route = {
    path: "/charges",
    handle: ({ effect }) => {
      effect();
      cutOff(true);
      return new Response("made", { status: 201 });
    },
  };
  const policy = { completionTimeout: "300ms" };
  const served = await subject.serve({ routes: [route], policy });
  cutOff = served.cutOff;
  const key = subject.newKey();
  const request = { target: "/charges", ...json(key, {}) };
  const first = await send(served.port, request);
  problemOf(first, "outcome_unknown", { status: 503, retryAfter: true });
  served.cutOff(false);
  await until(async () => (await served.record(key))?.state === "completed");
  const copy = await send(served.port, request);
  assert.equal(copy.status, 201);
  assert.ok(isReplay(copy));
  assert.equal(await subject.effects(key), 1);
}

async function cutOff(subject: HostSubject): Promise<void> {
  for (const sendUnkept of [false, true]) {
    let served: Served | null = null;
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: async (controller) => {
        controller.enqueue(new TextEncoder().encode("half"));
        await sleep(200);
        served?.cutOff(true);
        controller.close();
      },
    });
    const route: Route = {
      path: "/charges",
      settings: { sendUnkept },
      handle: ({ effect }) => {
        effect();
        return new Response(body, { status: 201 });
      },
    };
    const site = await subject.serve({ routes: [route], policy: { completionTimeout: "300ms" } });
    served = site;
    const key = subject.newKey();
    const request = { target: "/charges", ...json(key, {}) };
    const first = await send(site.port, request);
    assert.ok(!first.complete, `${first.status} ${first.body}`);
    site.cutOff(false);
    await until(async () => (await site.record(key))?.state === "completed");
    const copy = await send(site.port, request);
    assert.deepEqual([copy.status, copy.body.toString(), isReplay(copy)], [201, "half", true]);
    assert.equal(await subject.effects(key), 1);
  }
}

async function sentUnkept(subject: HostSubject): Promise<void> {
  for (const status of [201, 402, 500]) {
    const route: Route = {
      path: "/charges",
      settings: { sendUnkept: true },
      handle: ({ effect }) => {
        effect();
        served.cutOff(true);
        return new Response("made", { status, headers: { "X-Own": "1" } });
      },
    };
    const served = await subject.serve({ routes: [route], policy: { completionTimeout: "300ms" } });
    const key = subject.newKey();
    const request = { target: "/charges", ...json(key, {}) };
    const first = await send(served.port, request);
    assertFirst(first, status);
    assert.equal(first.body.toString(), "made");
    assert.deepEqual(linesOf(first, "idempotency-status"), ["unrecorded"]);
    assert.deepEqual([linesOf(first, "x-own"), linesOf(first, "idempotency-expires")], [["1"], []]);
    served.cutOff(false);
    const expected = status === 500 ? "unknown" : "completed";
    await until(async () => (await served.record(key))?.state === expected);
    const copy = await send(served.port, request);
    assert.equal(isReplay(copy), status !== 500);
    assert.equal(await subject.effects(key), 1);
  }
}

async function doubtUnkept(subject: HostSubject): Promise<void> {
  const route: Route = {
    path: "/charges",
    effects: "declared",
    settings: { sendUnkept: true },
    handle: async ({ step }) => {
      await step("charge", { provider: "blind" }, () => Promise.reject(new Error("reset"))).catch(() => {});
      served.cutOff(true);
      return new Response("who knows", { status: 201 });
    },
  };
  const served = await subject.serve({ routes: [route], policy: { completionTimeout: "300ms" } });
  const first = await send(served.port, { target: "/charges", ...json(subject.newKey(), {}) });
  problemOf(first, "outcome_unknown", { status: 503, retryAfter: true });
  served.cutOff(false);
}

async function uncommitted(subject: HostSubject): Promise<void> {
  let cutOff = (_: boolean) => {};
  const route: Route = {
    path: "/charges",
    effects: "transaction",
    handle: ({ commit }) => {
      cutOff(true);
      setTimeout(() => cutOff(false), 700).unref();
      return commit({ status: 201 });
    },
  };
  const policy = { completionTimeout: "5s" };
  const served = await subject.serve({ routes: [route], policy });
  cutOff = served.cutOff;
  const key = subject.newKey();
  const request = { target: "/charges", ...json(key, {}) };
  const first = await send(served.port, request);
  problemOf(first, "store_unavailable", { retryAfter: true, effect: "none" });
  assert.equal((await served.record(key))?.state, "released");
  assert.equal(await subject.effects(key), 0);
}

async function lostReplies(subject: HostSubject): Promise<void> {
  for (const losing of [1, 2]) {
    const { port, loseReplies } = await subject.serve({ routes: [made] });
    const key = subject.newKey();
    const request = { target: "/charges", ...json(key, {}) };
    loseReplies(losing);
    const first = await send(port, request);
    assertFirst(first, 201);
    loseReplies(losing);
    assertReplay(first, await send(port, request));
    assert.equal(await subject.effects(key), 1);
  }
  const ending: Route = {
    path: "/charges",
    handle: ({ effect }) => {
      effect();
      served.loseReplies(2);
      return new Response("made", { status: 201 });
    },
  };
  const served = await subject.serve({ routes: [ending] });
  const request = { target: "/charges", ...json(subject.newKey(), {}) };
  const first = await send(served.port, request);
  assertFirst(first, 201);
  assertReplay(first, await send(served.port, request));
}

async function lostCommit(subject: HostSubject): Promise<void> {
  const route: Route = {
    path: "/charges",
    effects: "transaction",
    handle: ({ commit }) => {
      served.loseReplies(2);
      return commit(() => ({ status: 201, json: { made: Math.random() } }));
    },
  };
  const served = await subject.serve({ routes: [route] });
  const key = subject.newKey();
  const request = { target: "/charges", ...json(key, {}) };
  const first = await send(served.port, request);
  assertFirst(first, 201);
  assertReplay(first, await send(served.port, request));
  assert.equal(await subject.effects(key), 1);
}

async function bare(subject: HostSubject): Promise<void> {
  const { port, events } = await subject.serve({ routes: [made], store: "bare" });
  const key = subject.newKey();
  const answer = await send(port, { target: "/charges", ...json(key, {}) });
  problemOf(answer, "store_unavailable", { retryAfter: true });
  assert.equal(subject.runs(key), 0);
  assert.ok(!answer.body.includes("migrate"));
  const failures = events.flatMap((event) => (event.type === "failure" ? [String(event.error)] : []));
  assert.match(failures.join(), /migrate/);
}

async function draining(subject: HostSubject): Promise<void> {
  const slow: Route = {
    path: "/charges",
    handle: async ({ effect }) => {
      await sleep(300);
      effect();
      return new Response("made", { status: 201 });
    },
  };
  const { port, drain } = await subject.serve({ routes: [slow] });
  const key = subject.newKey();
  const request = { target: "/charges", ...json(key, {}) };
  const running = call(port, request);
  await until(() => subject.runs(key) === 1);
  const drained = drain();
  const other = subject.newKey();
  const refused = await send(port, { target: "/charges", ...json(other, {}) });
  problemOf(refused, "draining", { retryAfter: true });
  assert.equal(subject.runs(other), 0);
  const first = await running.answer;
  assertFirst(first, 201);
  await drained;
  const elsewhere = await subject.serve({ routes: [slow] });
  assertReplay(first, await send(elsewhere.port, request));
}
