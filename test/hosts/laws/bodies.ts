import assert from "node:assert/strict";
import { changed, documentOf, spelled } from "../json.ts";
import type { HostLaw, HostSubject } from "../law.ts";
import { type HeaderLine, send } from "../wire.ts";
import { compared, echo, type Variant } from "./comparing.ts";
import { assertFirst, json } from "./said.ts";

/** What of a body makes a request the same request. */
export const bodyLaws: readonly HostLaw[] = [
  {
    id: "FP-08",
    promise: "numbers are compared as exact decimals, in raw mode as they are spelled",
    check: numbers,
  },
  {
    id: "FP-12",
    promise: "a change anywhere in a body is another request, whatever the document",
    check: everyLeaf,
  },
  { id: "FP-15", promise: "bodies are compared by their bytes where they are no plain JSON", check: byBytes },
  { id: "FP-11", promise: "what a route ignores may differ, what it names may not", check: chosen },
];

async function numbers(subject: HostSubject): Promise<void> {
  const amount = (spelling: string): Variant => json("", `{"amount":${spelling}}`);
  await compared(subject, amount("1"), [
    ["same", amount("1.0")],
    ["same", amount("1e0")],
    ["other", amount("1.0000000000000000001")],
    ["other", amount('"1"')],
  ]);
  await compared(subject, amount("9007199254740993"), [["other", amount("9007199254740992")]]);
  const others = ["1.0", "1e0", " 1"].map((spelling) => ["other", amount(spelling)] as const);
  await compared(subject, amount("1"), [["same", amount("1")], ...others], echo({ mode: "raw" }));
}

async function everyLeaf(subject: HostSubject): Promise<void> {
  const { port } = await subject.serve({ routes: [echo()] });
  const oneDocument = async () => {
    const document = documentOf(subject.random);
    const key = subject.newKey();
    const first = await send(port, { target: "/charges", ...json(key, spelled(document)) });
    assertFirst(first, 201);
    const other = spelled(changed(document, subject.random));
    const answer = await send(port, { target: "/charges", ...json(key, other) });
    assert.equal(answer.status, 422, `${spelled(document)} and ${other} are two requests`);
  };
  for (let done = 0; done < (subject.cheap ? 500 : 50); done += 10) {
    await Promise.all(Array.from({ length: 10 }, oneDocument));
  }
}

async function byBytes(subject: HostSubject): Promise<void> {
  const typed = (type: string, body: string | Uint8Array, more: readonly HeaderLine[] = []): Variant => ({
    headers: [["Content-Type", type], ...more],
    body,
  });
  const damaged = (byte: number) => Uint8Array.of(0x22, byte, 0x22);
  const json = "application/json";
  const inUtf8 = typed(`${json}; charset=utf-8`, '{"a":1}');
  await compared(subject, inUtf8, [
    ["same", typed("APPLICATION/JSON", '{ "a":1.0}')],
    ["same", typed('application/json;charset="UTF-8"', '{ "a":1}')],
    ["other", typed(json, '\ufeff{"a":1}')],
    ["other", typed("text/plain", '{"a":1}')],
    ["other", typed(`${json}; charset=utf-16`, '{ "a":1}')],
    ["other", typed(json, '{ "a":1}', [["Content-Encoding", "gzip"]])],
    ["other", typed(json, "")],
  ]);
  await compared(subject, typed(json, damaged(0xff)), [
    ["other", typed(json, damaged(0xfe))],
    ["other", typed(json, '"\ufffd"')],
    ["same", typed(json, damaged(0xff))],
  ]);
  await compared(subject, typed("application/problem+json", "[1]"), [
    ["same", typed("application/problem+json", "[1.0]")],
  ]);
  await compared(subject, typed("text/plain", "1"), [["other", typed("text/plain", "1.0")]]);
  const urlencoded = "application/x-www-form-urlencoded";
  await compared(subject, typed(urlencoded, "a=1&b=2"), [["other", typed(urlencoded, "b=2&a=1")]]);
  await compared(subject, typed("application/octet-stream", Uint8Array.of(0, 1)), [
    ["other", typed("application/octet-stream", Uint8Array.of(0))],
    ["other", typed("application/octet-stream", "")],
  ]);
  await compared(subject, {}, [
    ["same", {}],
    ["other", { body: " " }],
  ]);
}

async function chosen(subject: HostSubject): Promise<void> {
  const settings = { ignore: ["/client_ts", "/trace/*"], fingerprintHeaders: ["X-Tenant"] };
  const at = (body: unknown, tenant = "one"): Variant => ({
    ...json("", body),
    headers: [
      ["Content-Type", "application/json"],
      ["X-Tenant", tenant],
      ["X-Other", String(Math.random())],
    ],
  });
  const first = { amount: 1, client_ts: 1, trace: { id: 1 }, order: { client_ts: 1 } };
  await compared(
    subject,
    at(first),
    [
      ["same", at({ ...first, client_ts: 2, trace: { id: 2, more: 3 } })],
      ["same", at({ amount: 1, trace: {}, order: { client_ts: 1 } })],
      ["other", at({ ...first, amount: 2 })],
      ["other", at({ ...first, order: { client_ts: 2 } })],
      ["other", at(first, "two")],
    ],
    echo(settings),
  );
}
