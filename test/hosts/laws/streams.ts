import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../support/processes.ts";
import type { HostLaw, HostSubject, Route } from "../law.ts";
import { call, linesOf, send } from "../wire.ts";
import { assertFirst, assertReplay, isReplay, keyed, problemOf } from "./said.ts";

/** That an answer which takes its time is kept all the same, and its end never leaves before it is. */
export const streamLaws: readonly HostLaw[] = [
  {
    id: "RC-04",
    promise: "a stream reaches its client as it is made, and its end only once it is kept",
    check: streams,
  },
  {
    id: "RC-04 broken",
    promise: "a stream that breaks off is cut off, and its outcome is unknown",
    check: broken,
  },
  {
    id: "RC-16",
    promise: "an answer too long to keep is sent whole, and later only its status is told",
    check: tooLong,
  },
  {
    id: "CL-10 stream",
    promise: "a client that hangs up in a stream does not keep it from being kept",
    check: hungUp,
  },
  {
    id: "RC-19",
    promise: "events reach their client one by one, and are never kept",
    check: events,
  },
];

const answering = (make: () => Response): Route => ({
  path: "/charges",
  handle: ({ effect }) => {
    effect();
    return make();
  },
});

/** A stream whose chunks a law lets out one by one. */
function taps() {
  const encoder = new TextEncoder();
  let controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | null = null;
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: (own) => {
      controller = own;
    },
  });
  return {
    body,
    put: (text: string) => controller?.enqueue(encoder.encode(text)),
    close: () => controller?.close(),
    fail: () => controller?.error(new Error("select secret from cards")),
  };
}

async function streams(subject: HostSubject): Promise<void> {
  for (const headers of [{}, { "content-length": "2" }]) {
    const stream = taps();
    const route = answering(() => new Response(stream.body, { status: 201, headers }));
    const { port, record, cutOff } = await subject.serve({ routes: [route] });
    const key = subject.newKey();
    const first = call(port, { target: "/charges", ...keyed(key) });
    await until(() => subject.runs(key) === 1);
    stream.put("a");
    await until(() => first.sofar().includes("a"));
    problemOf(await send(port, { target: "/charges", ...keyed(key) }), "in_progress", { retryAfter: true });
    stream.put("b");
    cutOff(true);
    stream.close();
    const early = await Promise.race([first.answer, sleep(200, null)]);
    assert.equal(early, null, "the end waits for the record");
    assert.equal(
      first.sofar(),
      "content-length" in headers ? "a" : "ab",
      "and the last byte, where it is the end",
    );
    cutOff(false);
    const answer = await first.answer;
    assert.ok(answer.complete);
    assert.equal(answer.body.toString(), "ab");
    assert.equal((await record(key))?.state, "completed");
    assertReplay(answer, await send(port, { target: "/charges", ...keyed(key) }));
  }
}

async function broken(subject: HostSubject): Promise<void> {
  for (const sent of ["", "half of it"]) {
    const stream = taps();
    const route = answering(() => new Response(stream.body, { status: 201 }));
    const { port, record, errors } = await subject.serve({ routes: [route] });
    const key = subject.newKey();
    const first = call(port, { target: "/charges", ...keyed(key) });
    await until(() => subject.runs(key) === 1);
    if (sent !== "") stream.put(sent);
    if (sent !== "") await until(() => first.sofar().includes(sent));
    stream.fail();
    const answer = await first.answer;
    assert.ok(!answer.body.toString().includes("secret"));
    assert.ok(sent === "" ? answer.status === 500 || !answer.complete : !answer.complete);
    assert.equal((await record(key))?.state, "unknown");
    problemOf(await send(port, { target: "/charges", ...keyed(key) }), "outcome_unknown", { retry: "never" });
    assert.ok(errors.length <= 1);
  }
}

async function tooLong(subject: HostSubject): Promise<void> {
  const body = "0123456789".repeat(20_000);
  const headers = {
    location: "/charges/1",
    etag: '"1"',
    "content-type": "text/plain",
    "cache-control": "private",
  };
  const chunked = () =>
    new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => {
        for (let at = 0; at < body.length; at += 1_000)
          controller.enqueue(new TextEncoder().encode(body.slice(at, at + 1_000)));
        controller.close();
      },
    });
  for (const make of [() => body, chunked]) {
    const route = answering(() => new Response(make(), { status: 201, headers }));
    const settings = { maxResponseBytes: 100_000 };
    const { port, record } = await subject.serve({ routes: [{ ...route, settings }] });
    const key = subject.newKey();
    const first = await send(port, { target: "/charges", ...keyed(key) });
    assertFirst(first, 201);
    assert.equal(first.body.toString(), body);
    await until(async () => (await record(key))?.state === "completed");
    const copy = await send(port, { target: "/charges", ...keyed(key) });
    const problem = problemOf(copy, "response_not_stored");
    assert.equal(problem["originalStatus"], 201);
    assert.deepEqual(linesOf(copy, "location"), ["/charges/1"]);
    assert.deepEqual(linesOf(copy, "cache-control"), ["no-store"]);
    assert.deepEqual(linesOf(copy, "etag"), []);
    assert.equal(await subject.effects(key), 1);
  }
}

async function hungUp(subject: HostSubject): Promise<void> {
  const stream = taps();
  const { port, record } = await subject.serve({
    routes: [answering(() => new Response(stream.body, { status: 201 }))],
  });
  const key = subject.newKey();
  const first = call(port, { target: "/charges", ...keyed(key) });
  await until(() => subject.runs(key) === 1);
  stream.put("a");
  await until(() => first.sofar().includes("a"));
  first.hangUp();
  await sleep(20);
  stream.put("b");
  stream.close();
  await until(async () => (await record(key))?.state === "completed");
  const copy = await send(port, { target: "/charges", ...keyed(key) });
  assert.ok(isReplay(copy));
  assert.equal(copy.body.toString(), "ab");
}

async function events(subject: HostSubject): Promise<void> {
  const stream = taps();
  const headers = { "content-type": "text/event-stream; charset=utf-8" };
  const { port, record } = await subject.serve({
    routes: [answering(() => new Response(stream.body, { headers }))],
  });
  const key = subject.newKey();
  const first = call(port, { target: "/charges", ...keyed(key) });
  await until(() => subject.runs(key) === 1);
  stream.put("data: 1\n\n");
  await until(() => first.sofar().includes("data: 1"));
  problemOf(await send(port, { target: "/charges", ...keyed(key) }), "in_progress", { retryAfter: true });
  stream.put("data: 2\n\n");
  await until(() => first.sofar().includes("data: 2"));
  stream.close();
  const answer = await first.answer;
  assert.equal(answer.body.toString(), "data: 1\n\ndata: 2\n\n");
  await until(async () => (await record(key))?.state === "completed");
  problemOf(await send(port, { target: "/charges", ...keyed(key) }), "response_not_stored");
  assert.equal(await subject.effects(key), 1);
}
