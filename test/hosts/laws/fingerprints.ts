import assert from "node:assert/strict";
import { until } from "../../support/processes.ts";
import type { HostLaw, HostSubject, Route } from "../law.ts";
import { send } from "../wire.ts";
import { compared, echo, type Variant } from "./comparing.ts";
import { assertFirst, assertReplay, json, problemOf } from "./said.ts";

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
    id: "FP-03 rules",
    promise: "a key of a route with another rule is 422 here, whatever either rule is",
    check: rules,
  },
  {
    id: "FP-11 rollout",
    promise: "a change of what a route ignores leaves the retries of earlier requests recognisable",
    check: rollout,
  },
  {
    id: "FP-03 spelling",
    promise: "one path spelled in two ways is one; two paths are never one",
    check: spellings,
  },
  {
    id: "FP-03 damaged",
    promise: "two paths that are no text are never one",
    needs: "damaged paths",
    check: damaged,
  },
  {
    id: "FP-14",
    promise: "another request is 422 in every state of the first, while it runs as well",
    check: everyState,
  },
];

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

async function rules(subject: HostSubject): Promise<void> {
  const rulesOf = { "/plain": {}, "/raw": { mode: "raw" }, "/ignoring": { ignore: ["/at"] } } as const;
  const named = { "/naming": { fingerprintHeaders: ["X-Tenant"], ignore: ["/at", "/trace/*"] } };
  const routes = Object.entries({ ...rulesOf, ...named }).map(([path, settings]) => echo(settings, path));
  const { port } = await subject.serve({ routes });
  for (const { path } of routes) {
    const key = subject.newKey();
    const sent = (target: string) => send(port, { target, ...json(key, { a: 1 }) });
    const first = await sent(path);
    assertFirst(first, 201);
    for (const other of routes) {
      if (other.path !== path) problemOf(await sent(other.path), "key_reused", { effect: "done" });
    }
    assertReplay(first, await sent(path));
  }
}

async function rollout(subject: HostSubject): Promise<void> {
  const before = await subject.serve({ routes: [echo({ ignore: ["/at"] })] });
  const after = await subject.serve({ routes: [echo({ ignore: ["/at", "/trace"] })] });
  const body = { amount: 1, at: 1, trace: 1 };
  for (const [claiming, retried] of [
    [before, after],
    [after, before],
  ] as const) {
    const key = subject.newKey();
    const sent = ({ port }: { readonly port: number }, changed: object) =>
      send(port, { target: "/charges", ...json(key, { ...body, ...changed }) });
    const first = await sent(claiming, {});
    assertFirst(first, 201);
    assertReplay(first, await sent(retried, { at: 2 }));
    problemOf(await sent(retried, { amount: 2 }), "key_reused", { effect: "done" });
    const traced = await sent(retried, { trace: 2 });
    if (claiming === after) assertReplay(first, traced);
    else problemOf(traced, "key_reused", { effect: "done" });
  }
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
}

async function damaged(subject: HostSubject): Promise<void> {
  const at = (target: string): Variant => ({ target });
  await compared(
    subject,
    at("/files/%ff"),
    [
      ["other", at("/files/%fe")],
      ["other", at("/files/%25ff")],
    ],
    echo({}, "/*"),
  );
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
