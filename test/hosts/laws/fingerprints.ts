import assert from "node:assert/strict";
import { until } from "../../support/processes.ts";
import { changed, documentOf, spelled } from "../json.ts";
import type { HostLaw, HostSubject, Route } from "../law.ts";
import { type HeaderLine, send, type WireAnswer, type WireRequest } from "../wire.ts";
import { assertFirst, assertReplay, json, keyed, problemOf } from "./said.ts";

/** What makes a request the same request. */
export const fingerprintLaws: readonly HostLaw[] = [
  {
    id: "FP-01",
    promise: "the order of JSON members makes no other request, the order of elements does",
    check: (subject) =>
      compared(subject, json("", { a: 1, b: { c: 2, d: [1, 2] } }), [
        ["same", json("", '{"b":{"d":[1,2],"c":2},"a":1}')],
        ["other", json("", '{"b":{"d":[2,1],"c":2},"a":1}')],
        ["same", json("", ' { "a" : 1 ,\n"b":{"d":[ 1,2 ],"c":2}}')],
      ]),
  },
  {
    id: "FP-01 nested",
    promise: "members inside elements may change their order, the elements may not",
    check: (subject) =>
      compared(subject, json("", '[{"x":1,"y":[]},{"y":2,"x":1}]'), [
        ["same", json("", '[{"y":[],"x":1},{"x":1,"y":2}]')],
        ["other", json("", '[{"y":2,"x":1},{"x":1,"y":[]}]')],
      ]),
  },
  {
    id: "FP-02",
    promise: "the query belongs to the request: names in any order, repeats in their own",
    check: queries,
  },
  { id: "FP-03", promise: "another path, parameter or method is another request", check: targets },
  {
    id: "FP-03 spelling",
    promise: "one path spelled in two ways is one; two paths are never one",
    check: spellings,
  },
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
  {
    id: "FP-14",
    promise: "another request is 422 in every state of the first, while it runs as well",
    check: everyState,
  },
  { id: "FP-15", promise: "bodies are compared by their bytes where they are no plain JSON", check: byBytes },
  { id: "FP-11", promise: "what a route ignores may differ, what it names may not", check: chosen },
];

type Verdict = "same" | "other";
type Variant = Omit<WireRequest, "target"> & { readonly target?: string };

const echo = (settings: Route["settings"] = {}, path = "/charges"): Route => ({
  path,
  settings,
  handle: async ({ effect, request }) => {
    effect();
    return new Response(`${await request.text()} ${Math.random()}`, { status: 201 });
  },
});

/** Sends a request under a new key, then each variant of it under the same. */
async function compared(
  subject: HostSubject,
  first: Variant,
  variants: readonly (readonly [Verdict, Variant])[],
  route: Route = echo(),
): Promise<void> {
  const { port } = await subject.serve({ routes: [route] });
  const key = subject.newKey();
  const sent = async (variant: Variant) => {
    const own = (variant.headers ?? []).filter(([name]) => name !== "Idempotency-Key");
    return await send(port, { target: "/charges", ...variant, ...keyed(key, own) });
  };
  const answer = await sent(first);
  assertFirst(answer, 201);
  for (const [verdict, variant] of variants) judge(answer, await sent(variant), verdict, variant);
  assert.equal(await subject.effects(key), 1);
}

function judge(first: WireAnswer, answer: WireAnswer, verdict: Verdict, what: unknown): void {
  const expected = verdict === "same" ? first.status : 422;
  assert.equal(answer.status, expected, `${verdict}: ${JSON.stringify(what)} got ${answer.status}`);
  if (verdict === "same") assertReplay(first, answer);
  else problemOf(answer, "key_reused", { effect: "done" });
}

async function queries(subject: HostSubject): Promise<void> {
  const at = (query: string): Variant => ({ target: `/charges${query}` });
  await compared(subject, at("?to=alice"), [
    ["other", at("?to=mallory")],
    ["other", at("?to=alice&to=alice")],
    ["same", at("?%74o=alic%65#part")],
  ]);
  await compared(subject, at("?a=1&b=2"), [
    ["same", at("?b=2&a=1")],
    ["other", at("?b=1&a=2")],
    ["other", at("?a=1%26b=2")],
  ]);
  await compared(subject, at("?a=1&a=2"), [["other", at("?a=2&a=1")]]);
  await compared(subject, at("?dry=1"), [["other", at("")]]);
  await compared(subject, at("?a=%ff"), [
    ["other", at("?a=%fe")],
    ["other", at("?a=%ef%bf%bd")],
    ["same", at("?a=%FF")],
  ]);
  await compared(subject, at("?a=x+y"), [
    ["same", at("?a=x%20y")],
    ["other", at("?a=x%2By")],
  ]);
}

async function targets(subject: HostSubject): Promise<void> {
  const routes = [echo({}, "/orders/:id/pay"), echo({}, "/refunds")];
  const { port } = await subject.serve({ routes });
  const key = subject.newKey();
  const sent = (method: string, target: string) => send(port, { method, target, ...json(key, { a: 1 }) });
  const first = await sent("POST", "/orders/1/pay");
  assertFirst(first, 201);
  assertReplay(first, await sent("POST", "/orders/1/pay"));
  for (const [method, target] of [
    ["POST", "/orders/2/pay"],
    ["PATCH", "/orders/1/pay"],
    ["PUT", "/orders/1/pay"],
    ["DELETE", "/orders/1/pay"],
    ["POST", "/refunds"],
  ] as const) {
    problemOf(await sent(method, target), "key_reused", { effect: "done" });
  }
  assert.equal(await subject.effects(key), 1);
}

async function spellings(subject: HostSubject): Promise<void> {
  const at = (target: string): Variant => ({ target });
  const route = echo({}, "/*");
  await compared(
    subject,
    at("/files/a"),
    [
      ["same", at("/files/b/../a")],
      ["same", at("/files/%2e/a")],
      ["same", at("http://service.test/files/a")],
      ["other", at("/files/a/")],
      ["other", at("/files//a")],
      ["other", at("/files/A")],
      ["other", at("/files/a%2F")],
      ["other", at("/files/a%00")],
    ],
    route,
  );
  await compared(
    subject,
    at("/files/x%2Fy"),
    [
      ["other", at("/files/x/y")],
      ["other", at("/files/x%252Fy")],
    ],
    route,
  );
  await compared(
    subject,
    at("/files/%C3%A5"),
    [
      ["other", at("/files/%C3%A4")],
      ["other", at("/files/a%CC%8A")],
    ],
    route,
  );
  await compared(
    subject,
    at("/files/%ff"),
    [
      ["other", at("/files/%fe")],
      ["other", at("/files/%25ff")],
    ],
    route,
  );
}

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

async function everyState(subject: HostSubject): Promise<void> {
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const answering = (path: string, status: number): Route => ({
    path,
    handle: () => new Response("said", { status }),
  });
  const running: Route = {
    path: "/running",
    handle: async () => {
      await held;
      return new Response("done");
    },
  };
  const routes = [running, answering("/completed", 200), answering("/unknown", 500)];
  const { port, record } = await subject.serve({ routes });
  for (const [path, effect] of [
    ["/completed", "done"],
    ["/unknown", "maybe"],
    ["/running", "maybe"],
  ] as const) {
    const key = subject.newKey();
    const first = send(port, { target: path, ...json(key, { a: 1 }) });
    if (path === "/running") await until(async () => (await record(key)) !== null);
    else await first;
    const state = (await record(key))?.state;
    const problem = problemOf(await send(port, { target: path, ...json(key, { a: 2 }) }), "key_reused", {
      effect,
    });
    assert.match(String(problem["firstRequest"]), /finished|unknown|running/);
    assert.equal((await record(key))?.state, state, "and nothing has changed");
    if (path === "/running") letGo();
    await first;
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
