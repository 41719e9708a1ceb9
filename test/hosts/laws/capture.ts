import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import type { HostLaw, HostSubject, Route } from "../law.ts";
import { linesOf, send, type WireAnswer } from "../wire.ts";
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
  {
    id: "RC-03",
    promise: "what was compressed for one client can be read by the next",
    check: compressed,
  },
  { id: "DB-07", promise: "NUL, damaged Unicode and emoji are bytes like any others", check: oddText },
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

async function compressed(subject: HostSubject): Promise<void> {
  const text = JSON.stringify({ made: "x".repeat(10_000) });
  const bomb = gzipSync(Buffer.alloc(2_000_000));
  const answers: readonly (readonly [coding: string, body: Uint8Array<ArrayBuffer>, kept: boolean])[] = [
    ["gzip", new Uint8Array(gzipSync(text)), true],
    ["br", new Uint8Array(brotliCompressSync(text)), true],
    ["deflate, gzip", new Uint8Array(gzipSync(deflateSync(text))), true],
    ["identity", new TextEncoder().encode(text), true],
    ["made-up", new TextEncoder().encode(text), false],
    ["gzip", new TextEncoder().encode(text), false],
    ["gzip", new Uint8Array(bomb), false],
  ];
  for (const [coding, body, kept] of answers) {
    const headers = { "content-encoding": coding, vary: "Accept-Encoding" };
    const route = answering(() => new Response(body, { status: 201, headers }));
    const { port } = await subject.serve({ routes: [route] });
    const key = subject.newKey();
    const first = await send(port, { target: "/charges", ...keyed(key) });
    assertFirst(first, 201);
    assert.equal(
      first.body.toString("hex"),
      Buffer.from(body).toString("hex"),
      "the first answer is as it was",
    );
    const copy = await send(port, { target: "/charges", ...keyed(key) });
    if (!kept) {
      problemOf(copy, "response_not_stored");
      continue;
    }
    assert.ok(isReplay(copy));
    assert.equal(copy.body.toString(), text);
    assert.deepEqual(linesOf(copy, "content-encoding"), coding === "identity" ? ["identity"] : []);
    assert.deepEqual(linesOf(copy, "vary"), ["Accept-Encoding"]);
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
