import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { until } from "../../support/processes.ts";
import type { HostLaw, HostSubject, Route } from "../law.ts";
import { call, linesOf, send, type WireAnswer } from "../wire.ts";
import { assertFirst, assertReplay, isReplay, json, keyed, problemOf } from "./said.ts";

/** That the kept answer is the answer, whatever it is made of. */
export const captureLaws: readonly HostLaw[] = [
  { id: "RC-06", promise: "an empty answer is kept and replayed as the nothing that it was", check: empties },
  { id: "RC-08", promise: "bytes that are neither JSON nor UTF-8 come back as they went", check: binaries },
  { id: "RC-09", promise: "a signed body still verifies on its replay", check: signed },
  {
    id: "RC-10",
    promise: "headers of the answer come back, headers of the first exchange do not",
    check: headers,
  },
  { id: "RC-13", promise: "repeated headers stay repeated", check: repeated },
  { id: "DB-07", promise: "NUL, damaged Unicode and emoji are bytes like any others", check: oddText },
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
];

const answering = (make: () => Response): Route => ({
  path: "/charges",
  handle: ({ effect }) => {
    effect();
    return make();
  },
});

/** Sends one request twice; the second answer is held to the first. */
async function twice(subject: HostSubject, route: Route): Promise<readonly [WireAnswer, WireAnswer]> {
  const { port } = await subject.serve({ routes: [route] });
  const key = subject.newKey();
  const request = { target: "/charges", ...json(key, {}, [["Accept", "application/json"]]) };
  const first = await send(port, request);
  assert.ok(!isReplay(first) && first.complete);
  const copy = await send(port, request);
  assertReplay(first, copy);
  assert.equal(await subject.effects(key), 1);
  return [first, copy];
}

async function empties(subject: HostSubject): Promise<void> {
  const makers: readonly (() => Response)[] = [
    () => new Response(null, { status: 204 }),
    () => new Response(null, { status: 205 }),
    () => new Response(null, { status: 304, headers: { etag: '"1"' } }),
    () => new Response(null, { status: 202 }),
    () => new Response(null, { status: 200, headers: { "content-length": "0" } }),
  ];
  for (const make of makers) {
    const [first, copy] = await twice(subject, answering(make));
    for (const answer of [first, copy]) {
      assert.equal(answer.status, make().status);
      assert.equal(answer.body.length, 0);
      assert.deepEqual(linesOf(answer, "content-type"), []);
      assert.deepEqual(linesOf(answer, "transfer-encoding"), []);
    }
  }
  // A server may give an empty text or empty bytes a type of its own; the copy says the same as the first answer.
  for (const body of ["", new Uint8Array(0)]) {
    const [first] = await twice(
      subject,
      answering(() => new Response(body, { status: 201 })),
    );
    assert.equal(first.body.length, 0);
  }
}

const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte);

async function binaries(subject: HostSubject): Promise<void> {
  const random = subject.random;
  const noise = Uint8Array.from({ length: 1_000_000 }, () => random.below(256));
  const bodies: readonly (readonly [type: string, body: Uint8Array<ArrayBuffer>])[] = [
    ["application/octet-stream", everyByte],
    ["text/csv; charset=iso-8859-1", Uint8Array.of(0x63, 0xe9, 0x3b)],
    ["application/json; charset=utf-8", new TextEncoder().encode('{"a": "\u00e9"}')],
    ["application/pdf", noise],
  ];
  for (const [type, body] of bodies) {
    const [first] = await twice(
      subject,
      answering(() => new Response(body, { status: 201, headers: { "content-type": type } })),
    );
    assert.equal(first.body.toString("hex"), Buffer.from(body).toString("hex"));
    assert.deepEqual(linesOf(first, "content-type"), [type]);
  }
}

async function signed(subject: HostSubject): Promise<void> {
  const text = '{"b":1,  "aa":2,"a":1.0,"b":3}';
  const sign = (body: string | Buffer) => createHmac("sha256", "secret").update(body).digest("hex");
  const headers = { "Content-Type": "application/json", "X-Signature": sign(text) };
  const [first, copy] = await twice(
    subject,
    answering(() => new Response(text, { status: 201, headers })),
  );
  assert.equal(first.body.toString(), text);
  assert.deepEqual(linesOf(copy, "x-signature"), [sign(copy.body)]);
}

const OF_THE_ANSWER = {
  location: "/charges/1",
  etag: '"v1"',
  "content-language": "de",
  "x-resource-version": "7",
  vary: "Accept",
};

const OF_THE_EXCHANGE = {
  "set-cookie": "sid=A",
  "www-authenticate": "Bearer",
  "x-request-id": "r1",
  "x-ratelimit-remaining": "9",
  "retry-after": "7",
  "access-control-allow-origin": "https://a.test",
  traceparent: "00-1-1-00",
};

async function headers(subject: HostSubject): Promise<void> {
  const all = { ...OF_THE_ANSWER, ...OF_THE_EXCHANGE };
  const { port, record } = await subject.serve({
    routes: [answering(() => new Response("made", { status: 201, headers: all }))],
  });
  const key = subject.newKey();
  const first = await send(port, { target: "/charges", ...keyed(key) });
  assertFirst(first, 201);
  for (const [name, value] of Object.entries(all)) assert.deepEqual(linesOf(first, name), [value], name);
  const copy = await send(port, { target: "/charges", ...keyed(key) });
  assert.ok(isReplay(copy));
  for (const [name, value] of Object.entries(OF_THE_ANSWER))
    assert.deepEqual(linesOf(copy, name), [value], name);
  for (const name of Object.keys(OF_THE_EXCHANGE)) assert.deepEqual(linesOf(copy, name), [], name);
  const [date = ""] = linesOf(copy, "date");
  assert.ok(Math.abs(Date.parse(date) - Date.now()) < 60_000);
  const kept = await record(key);
  assert.equal(kept?.state, "completed");
  assert.ok(!JSON.stringify(kept.answer.headers).includes("sid=A"));
}

async function repeated(subject: HostSubject): Promise<void> {
  const lines: [string, string][] = [
    ["link", "<a>; rel=next"],
    ["link", "<b>; rel=prev"],
    ["x-count", "60"],
    ["set-cookie", "a=1"],
    ["set-cookie", "b=2"],
  ];
  const route = answering(() => new Response("made", { status: 201, headers: lines }));
  const [first, copy] = await twice(subject, { ...route, settings: { keepHeaders: ["Set-Cookie"] } });
  for (const answer of [first, copy]) {
    assert.equal(linesOf(answer, "link").join(", "), "<a>; rel=next, <b>; rel=prev");
    assert.deepEqual(linesOf(answer, "x-count"), ["60"]);
    assert.deepEqual(linesOf(answer, "set-cookie"), ["a=1", "b=2"]);
  }
}

async function oddText(subject: HostSubject): Promise<void> {
  const bodies = ['{"a":"\\u0000"}', "a\0b", '{"a":"\\ud800"}', "\u{1f600} done", "\u0000"];
  for (const body of bodies) {
    const init = { status: 201, headers: { "x-name": "caf\u00e9", "content-type": "text/plain" } };
    const [first, copy] = await twice(
      subject,
      answering(() => new Response(body, init)),
    );
    assert.equal(first.body.toString(), body);
    assert.deepEqual(linesOf(copy, "x-name"), ["caf\u00e9"]);
  }
}

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
    const early = await Promise.race([first.answer, pause(200)]);
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

async function pause(ms: number): Promise<null> {
  await new Promise((resolve) => setTimeout(resolve, ms));
  return null;
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
  await pause(20);
  stream.put("b");
  stream.close();
  await until(async () => (await record(key))?.state === "completed");
  const copy = await send(port, { target: "/charges", ...keyed(key) });
  assert.ok(isReplay(copy));
  assert.equal(copy.body.toString(), "ab");
}
