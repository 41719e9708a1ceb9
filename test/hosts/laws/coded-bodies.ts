import assert from "node:assert/strict";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { ConfigurationError } from "../../../src/errors.ts";
import type { HostLaw, HostSubject } from "../law.ts";
import { type HeaderLine, send } from "../wire.ts";
import { compared, echo, type Variant } from "./comparing.ts";
import { assertFirst, assertReplay, json, keyed, problemOf } from "./said.ts";

/** Bodies whose bytes are not what they mean: compressed ones, other alphabets, forms in parts. */
export const codedBodyLaws: readonly HostLaw[] = [
  {
    id: "FP-15 coded",
    promise: "a compressed body is the document in it, however often it is compressed anew",
    check: compressed,
  },
  {
    id: "FP-15 damaged",
    promise: "what cannot be decompressed is compared by its bytes, and harms nobody",
    check: damaged,
  },
  {
    id: "FP-15 alphabet",
    promise: "JSON in other letters than UTF-8 is compared by its bytes",
    check: alphabets,
  },
  {
    id: "FP-10",
    promise:
      "a multipart form is what its route says of it, whatever its boundary, and its handler reads it whole",
    check: multipart,
  },
  {
    id: "FP-10 unsaid",
    promise: "a multipart form of which nothing is said never runs, and no store is asked",
    check: unsaid,
  },
];

const JSON_TYPE: HeaderLine = ["Content-Type", "application/json"];

const coded = (coding: string, body: Uint8Array): Variant => ({
  headers: [JSON_TYPE, ["Content-Encoding", coding]],
  body,
});

const bytesOf = (text: string) => Buffer.from(text);

async function compressed(subject: HostSubject): Promise<void> {
  const [one, again, other] = ['{"a":1,"b":2}', '{"b":2.0,"a":1}', '{"a":1,"b":3}'].map(bytesOf);
  if (one === undefined || again === undefined || other === undefined) throw new Error("Three are needed.");
  await compared(subject, coded("gzip", gzipSync(one)), [
    ["same", coded("gzip", gzipSync(one, { level: 0 }))],
    ["same", coded("GZIP", gzipSync(again))],
    ["same", coded("deflate", deflateSync(one))],
    ["same", coded("br", brotliCompressSync(one))],
    ["same", coded("gzip, identity, br", brotliCompressSync(gzipSync(again)))],
    ["same", { headers: [JSON_TYPE], body: again }],
    ["other", coded("gzip", gzipSync(other))],
    ["other", coded("gzip", again)],
    ["other", coded("gzip, gzip, gzip, gzip", gzipSync(gzipSync(gzipSync(gzipSync(one)))))],
  ]);
  const text = (body: Uint8Array): Variant => ({
    headers: [
      ["Content-Type", "text/plain"],
      ["Content-Encoding", "gzip"],
    ],
    body,
  });
  await compared(subject, text(gzipSync(one)), [
    ["same", text(gzipSync(one, { level: 0 }))],
    ["other", text(gzipSync(again))],
  ]);
  await compared(
    subject,
    coded("gzip", gzipSync(one)),
    [
      ["same", coded("gzip", gzipSync(one))],
      ["other", coded("gzip", gzipSync(one, { level: 0 }))],
    ],
    echo({ mode: "raw" }),
  );
}

async function damaged(subject: HostSubject): Promise<void> {
  const whole = gzipSync(bytesOf('{"a":1}'));
  const broken = (at: number) => {
    const bytes = Uint8Array.from(whole);
    bytes[at] = (bytes[at] ?? 0) ^ 0xff;
    return bytes;
  };
  const bomb = gzipSync(Buffer.alloc(8 * 2 ** 20));
  await compared(subject, coded("gzip", whole), [
    ["other", coded("gzip", whole.subarray(0, -9))],
    ["other", coded("gzip", broken(0))],
    ["other", coded("gzip", broken(12))],
    ["other", coded("gzip", broken(whole.length - 5))],
    ["other", coded("gzip", new Uint8Array(0))],
    ["other", coded("gzip", bomb)],
    ["other", coded("gzip", gzipSync(bytesOf(`{"a":1${" ".repeat(2 * 2 ** 20)}}`)))],
    ["other", coded("unheard-of", whole.subarray(1))],
    ["other", coded(`${"gzip,".repeat(500)}gzip`, bomb)],
  ]);
  await compared(subject, coded("gzip", bomb), [
    ["same", coded("gzip", bomb)],
    ["other", coded("gzip", gzipSync(Buffer.alloc(8 * 2 ** 20 + 1)))],
  ]);
  // A parser that stood before us may have undone it: what is JSON all the same is compared as that.
  await compared(subject, coded("gzip", bytesOf('{"a":1,"b":2}')), [
    ["same", coded("gzip", bytesOf('{"b":2, "a":1}'))],
    ["other", coded("gzip", bytesOf('{"a":1}'))],
    ["other", coded("br", bytesOf('{"b":2, "a":1}'))],
  ]);
}

async function alphabets(subject: HostSubject): Promise<void> {
  const wide = (text: string): Variant => ({
    headers: [["Content-Type", "application/json; charset=utf-16"]],
    body: Buffer.from(text, "utf16le"),
  });
  await compared(subject, wide('{"a":1,"b":"\u00e9"}'), [
    ["same", wide('{"a":1,"b":"\u00e9"}')],
    ["other", wide('{"b":"\u00e9","a":1}')],
    ["other", { ...wide(""), body: Buffer.from('{"a":1,"b":"\u00e9"}', "utf16le").subarray(1) }],
    ["other", json("", '{"a":1,"b":"\u00e9"}')],
  ]);
  const unheard = (body: string): Variant => ({
    headers: [["Content-Type", 'application/json; charset="no such;one']],
    body,
  });
  await compared(subject, unheard("[1]"), [
    ["same", unheard("[1]")],
    ["other", unheard("[1.0]")],
  ]);
}

interface Form {
  readonly amount: string;
  readonly name: string;
  readonly file: string;
}

const partsOf = (boundary: string, { amount, name, file }: Form): Variant => ({
  headers: [["Content-Type", `multipart/form-data; boundary=${boundary}`]],
  body: [
    `--${boundary}\r\nContent-Disposition: form-data; name="amount"\r\n\r\n${amount}\r\n`,
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\n${file}\r\n`,
    `--${boundary}--\r\n`,
  ].join(""),
});

async function multipart(subject: HostSubject): Promise<void> {
  const form: Form = { amount: "100", name: "f.txt", file: "hello" };
  let said: unknown = form;
  const settings = { fingerprint: async () => said };
  const { port, record } = await subject.serve({ routes: [echo(settings)] });
  const key = subject.newKey();
  const sent = (boundary: string, sending: Form) => {
    said = sending;
    const { headers = [], ...variant } = partsOf(boundary, sending);
    return send(port, { target: "/charges", ...variant, ...keyed(key, headers) });
  };
  const first = await sent("AAA", form);
  assertFirst(first, 201);
  assert.ok(first.body.toString().startsWith(String(partsOf("AAA", form).body)), "it was read whole");
  assert.equal((await record(key))?.fingerprint.version, "own 1");
  assertReplay(first, await sent("BBB", { ...form }));
  for (const other of [
    { ...form, amount: "101" },
    { ...form, name: "g.txt" },
    { ...form, file: "hallo" },
  ]) {
    problemOf(await sent("AAA", other), "key_reused", { effect: "done" });
  }
  const large = subject.newKey();
  said = Buffer.from("a digest of it");
  const body = Buffer.alloc(1_000_000, "x");
  const upload = { target: "/charges", ...keyed(large, [["Content-Type", "multipart/mixed"]]), body };
  const whole = await send(port, upload);
  assertFirst(whole, 201);
  assert.ok(whole.body.length > body.length, "however large it is");
  said = Buffer.from("another one");
  problemOf(await send(port, upload), "key_reused", { effect: "done" });
}

async function unsaid(subject: HostSubject): Promise<void> {
  const form: Form = { amount: "100", name: "f.txt", file: "hello" };
  const routes = [
    echo({}, "/none"),
    echo({ fingerprint: () => null }, "/nothing"),
    echo({ fingerprint: () => Symbol("nothing to compare") }, "/unusable"),
    echo({ mode: "raw" }, "/raw"),
  ];
  const { port, errors, storeCalls, record } = await subject.serve({ routes });
  for (const target of ["/none", "/nothing", "/unusable"]) {
    const key = subject.newKey();
    const { headers = [], ...variant } = partsOf("AAA", form);
    const answer = await send(port, { target, ...variant, ...keyed(key, headers) });
    assert.equal(answer.status, 500);
    const error = errors.at(-1);
    assert.ok(error instanceof ConfigurationError && error.field === "fingerprint", String(error));
    assert.deepEqual([subject.runs(key), storeCalls.length], [0, 0]);
    assert.equal(await record(key), null);
  }
  const { headers = [], ...variant } = partsOf("AAA", form);
  await compared(
    subject,
    { ...variant, headers },
    [
      ["same", { ...variant, headers }],
      ["other", partsOf("BBB", form)],
    ],
    echo({ mode: "raw" }),
  );
  await compared(
    subject,
    json("", { a: 1 }),
    [
      ["same", json("", '{"a":1.0}')],
      ["other", json("", { a: 2 })],
    ],
    echo({ fingerprint: () => undefined }),
  );
}
