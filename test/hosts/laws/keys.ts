import assert from "node:assert/strict";
import type { HostLaw, HostSubject, Route } from "../law.ts";
import { type HeaderLine, linesOf, send } from "../wire.ts";
import { assertFirst, assertReplay, isReplay, json, keyed, problemOf } from "./said.ts";

/** What a key is, whose it is, and where one is asked for. */
export const keyLaws: readonly HostLaw[] = [
  {
    id: "HS-01",
    promise: "requests without a key share nothing, and are refused where a key is required",
    check: keyless,
  },
  {
    id: "HS-02",
    promise: "a key that cannot be used is 400, the same a hundred times, and no store is asked",
    check: unusable,
  },
  {
    id: "HS-04",
    promise: "a quoted key and the same key bare are one; strict takes the quoted one only",
    check: quoted,
  },
  {
    id: "HS-04 lines",
    promise: "two key lines are 400, whatever they look like when joined",
    needs: "header lines",
    check: twoLines,
  },
  {
    id: "HS-06",
    promise: "safe methods pass through, with a key or without, and no store is asked",
    check: safeMethods,
  },
  { id: "HS-08", promise: "a client cannot forge the replay marker, nor a handler", check: forged },
  {
    id: "SE-01",
    promise: "one caller never sees, blocks or gets what another caller's key holds",
    check: apart,
  },
  { id: "SE-01 nobody", promise: "without a principal nothing runs and no store is asked", check: nobody },
];

const charges = (settings: Route["settings"] = {}): Route => ({
  path: "/charges",
  settings,
  handle: ({ effect }) => {
    effect();
    return Response.json({ made: Math.random() }, { status: 201 });
  },
});

async function keyless(subject: HostSubject): Promise<void> {
  const optional: Route = { ...charges({ required: false }), path: "/optional" };
  const { port, storeCalls, events } = await subject.serve({ routes: [optional, charges()] });
  const before = await subject.effects("");
  for (const amount of [1, 2]) {
    const headers: readonly HeaderLine[] = [["Content-Type", "application/json"]];
    const body = JSON.stringify({ amount });
    assertFirst(await send(port, { target: "/optional", headers, body }), 201);
    problemOf(await send(port, { target: "/charges", headers, body }), "key_missing");
  }
  assert.equal(await subject.effects(""), before + 2);
  assert.deepEqual(storeCalls, []);
  assert.equal(
    events.filter((event) => event.type === "request" && event.outcome === "key_missing").length,
    2,
  );
}

const longest = "k".repeat(255);
const UNUSABLE: readonly string[] = [
  "",
  "   ",
  `${longest}k`,
  "a\tb",
  "caf\xe9",
  '"abc',
  'abc"',
  "a,b",
  '""',
];

async function unusable(subject: HostSubject): Promise<void> {
  let runs = 0;
  const route: Route = {
    path: "/charges",
    handle: () => {
      runs += 1;
      return new Response("made", { status: 201 });
    },
  };
  const { port, storeCalls } = await subject.serve({ routes: [route] });
  for (const key of UNUSABLE) {
    problemOf(await send(port, { target: "/charges", ...keyed(key) }), "key_invalid");
  }
  const bodies = new Set<string>();
  for (let time = 0; time < 100; time++) {
    const answer = await send(port, { target: "/charges", ...keyed(`${longest}k`), body: `${time}` });
    problemOf(answer, "key_invalid");
    bodies.add(answer.body.toString());
  }
  assert.equal(bodies.size, 1);
  assert.equal(runs, 0);
  assert.deepEqual(storeCalls, []);
  const usable = (subject.newKey() + longest).slice(0, 255);
  assertFirst(await send(port, { target: "/charges", ...keyed(usable) }), 201);
  assert.equal(runs, 1);
  assert.ok(storeCalls.length > 0, "the spy can see a call");
}

async function quoted(subject: HostSubject): Promise<void> {
  const strict: Route = { ...charges({ strict: true }), path: "/strict" };
  const { port, record } = await subject.serve({ routes: [charges(), strict] });
  const key = subject.newKey();
  const first = await send(port, { target: "/charges", ...keyed(key) });
  assertFirst(first, 201);
  assertReplay(first, await send(port, { target: "/charges", ...keyed(`"${key}"`) }));
  problemOf(await send(port, { target: "/charges", ...keyed(`"${key}`) }), "key_invalid");
  problemOf(await send(port, { target: "/strict", ...keyed(subject.newKey()) }), "key_invalid");
  const odd = subject.newKey();
  const strictly = { target: "/strict", ...keyed(`"${odd}\\"b";p=1`) };
  assertFirst(await send(port, strictly), 201);
  assert.equal((await record(`${odd}"b`))?.state, "completed");
}

async function twoLines(subject: HostSubject): Promise<void> {
  const { port, storeCalls } = await subject.serve({ routes: [charges()] });
  const pairs = [
    ["a", "b"],
    ["a", "a"],
    ['"a"', '"b"'],
    ['"a', 'b"'],
    ['"a";p="x', 'y"'],
    ["", ""],
    ["a", ""],
  ] as const;
  for (const [one, other] of pairs) {
    const headers: readonly HeaderLine[] = [
      ["Idempotency-Key", one],
      ["idempotency-key", other],
    ];
    problemOf(await send(port, { target: "/charges", headers }), "key_invalid");
  }
  assert.deepEqual(storeCalls, []);
  const one = `"${subject.newKey()}, with a comma"`;
  assertFirst(await send(port, { target: "/charges", ...keyed(one) }), 201);
}

async function safeMethods(subject: HostSubject): Promise<void> {
  let runs = 0;
  const route: Route = {
    path: "/charges",
    principal: () => {
      throw new Error("Nobody is asked who reads.");
    },
    handle: () => {
      runs += 1;
      return new Response(String(runs));
    },
  };
  const { port, storeCalls } = await subject.serve({ routes: [route] });
  const key = subject.newKey();
  for (const method of ["GET", "GET", "OPTIONS", "OPTIONS"]) {
    const answer = await send(port, { method, target: "/charges", ...keyed(key) });
    assert.equal(answer.status, 200);
    assert.ok(!isReplay(answer));
    assert.equal(answer.body.toString(), String(runs));
  }
  assert.equal((await send(port, { method: "GET", target: "/charges" })).status, 200);
  assert.equal(runs, 5);
  assert.deepEqual(storeCalls, []);
}

async function forged(subject: HostSubject): Promise<void> {
  const forger: Route = {
    path: "/charges",
    settings: { keepHeaders: ["x-own"] },
    handle: () => {
      const headers = { "Idempotent-Replayed": "true", "Idempotency-Status": "unknown", "X-Own": "1" };
      return new Response("made", { status: 201, headers: { ...headers, "Idempotency-Expires": "never" } });
    },
  };
  const { port } = await subject.serve({ routes: [forger] });
  const lines: readonly HeaderLine[] = [["Idempotent-Replayed", "true"]];
  const request = { target: "/charges", ...json(subject.newKey(), {}, lines) };
  const first = await send(port, request);
  assertFirst(first, 201);
  assert.deepEqual(linesOf(first, "idempotency-status"), []);
  const [expires = ""] = linesOf(first, "idempotency-expires");
  const inMs = Date.parse(expires) - Date.now();
  assert.ok(Math.abs(inMs - 86_400_000) < 60_000, `kept for a day: ${expires}`);
  assert.equal(new Date(expires).toUTCString(), expires);
  assertReplay(first, await send(port, request));
}

async function apart(subject: HostSubject): Promise<void> {
  const userOf = (request: { readonly header: (name: string) => string | undefined }) =>
    decodeURIComponent(request.header("x-user") ?? "");
  const route: Route = {
    path: "/charges",
    principal: userOf,
    handle: ({ effect, request }) => {
      effect();
      return Response.json({ secret: userOf(request) }, { status: 201 });
    },
  };
  const { port } = await subject.serve({ routes: [route] });
  const as = (user: string, key: string) =>
    send(port, { target: "/charges", ...json(key, {}, [["X-User", encodeURIComponent(user)]]) });
  const key = subject.newKey();
  const users = ["A", "B", "a", "A ", "\u00c5", "A\u030a", "A:B"];
  for (const user of users) {
    const first = await as(user, key);
    assertFirst(first, 201);
    assert.deepEqual(JSON.parse(first.body.toString()), { secret: user });
    assertReplay(first, await as(user, key));
  }
  assert.equal(await subject.effects(key), users.length);
}

async function nobody(subject: HostSubject): Promise<void> {
  const values: readonly unknown[] = [undefined, null, "", "  ", Number.NaN, 7, {}, ["a"], "a\0b", "\ud800"];
  const routes = values.map(
    (value, index): Route => ({
      ...charges(),
      path: `/as/${index}`,
      principal: () => (index % 2 === 0 ? value : Promise.resolve(value)),
    }),
  );
  const { port, storeCalls } = await subject.serve({ routes });
  const key = subject.newKey();
  for (const index of values.keys()) {
    problemOf(await send(port, { target: `/as/${index}`, ...keyed(key) }), "principal_unresolved");
  }
  assert.equal(subject.runs(key), 0);
  assert.deepEqual(storeCalls, []);
}
