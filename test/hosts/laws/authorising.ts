import assert from "node:assert/strict";
import type { ReplayView } from "../../../src/http/authorising.ts";
import { until } from "../../support/processes.ts";
import type { HostLaw, HostSubject, LawSettings, Route } from "../law.ts";
import { linesOf, send, type WireAnswer } from "../wire.ts";
import { assertFirst, assertReplay, json, problemOf } from "./said.ts";

const needs = "transactions";

/** What stands between a caller and the answer to its own key, once its permission is gone. */
export const authorisingLaws: readonly HostLaw[] = [
  {
    id: "SE-03 object",
    promise: "a caller who lost the permission is told nothing of the record, whatever stands there",
    check: forbidden,
  },
  {
    id: "SE-03 failing",
    promise: "a permission that cannot be told gives nothing away, and is told to the operators",
    check: failing,
  },
  {
    id: "SE-03 operation",
    promise: "the answer of an operation is given by what its reference says",
    needs,
    check: operations,
  },
  {
    id: "SE-03 commits",
    promise: "an answer met in the middle of a copy's transaction is not given without permission either",
    needs,
    check: copies,
  },
];

const SECRET = "account 7 holds 12.50";

function assertSilent(answer: WireAnswer): void {
  const text = `${JSON.stringify(answer.headers)} ${answer.body}`;
  for (const told of [SECRET, "/accounts/7", "firstRequest", "originalStatus", "4111"])
    assert.ok(!text.includes(told), text);
  assert.deepEqual(linesOf(answer, "idempotent-replayed"), []);
}

async function forbidden(subject: HostSubject): Promise<void> {
  const seen: ReplayView[] = [];
  const letGo: (() => void)[] = [];
  let allowed = false;
  const settings: LawSettings = {
    maxResponseBytes: 30,
    authorizeReplay: (record) => {
      seen.push(record);
      return seen.length % 2 === 0 ? allowed : Promise.resolve(allowed);
    },
  };
  const route = (path: string, handle: () => Response | Promise<Response>): Route => ({
    path,
    settings,
    handle,
  });
  const headers = { Location: "/accounts/7" };
  const routes = [
    route("/made", () => new Response(SECRET, { status: 201, headers })),
    route("/long", () => new Response(SECRET.repeat(9), { status: 201, headers })),
    route("/fails", () => new Response(SECRET, { status: 500 })),
    route("/slow", async () => {
      await new Promise<void>((resolve) => letGo.push(resolve));
      return new Response("made");
    }),
  ];
  const { port, record, events } = await subject.serve({ routes });
  const keys = new Map(routes.map(({ path }) => [path, subject.newKey()]));
  const ask = (target: string, body: unknown = {}) =>
    send(port, { target, ...json(keys.get(target) ?? "", body) });
  const slow = ask("/slow");
  await until(async () => (await record(keys.get("/slow") ?? "")) !== null);
  for (const path of ["/made", "/long", "/fails"]) await ask(path);
  assert.equal(seen.length, 0, "nobody is asked about a first request");
  const copies = [...routes.map(({ path }) => [path, {}] as const), ["/made", { other: 1 }] as const];
  for (const [path, body] of copies) {
    const answer = await ask(path, body);
    problemOf(answer, "replay_forbidden");
    assertSilent(answer);
  }
  assert.equal(events.filter(({ type }) => type === "replay_refused").length, copies.length);
  allowed = true;
  assert.equal((await ask("/made")).body.toString(), SECRET);
  problemOf(await ask("/long"), "response_not_stored");
  problemOf(await ask("/fails"), "outcome_unknown", { retry: "never" });
  problemOf(await ask("/slow"), "in_progress", { retryAfter: true });
  for (const resolve of letGo) resolve();
  assertFirst(await slow, 200);
  const states = seen.slice(0, 5).map(({ state }) => state);
  assert.deepEqual(states, ["completed", "completed", "unknown", "in_progress", "completed"]);
  const [first] = seen;
  const given = { principal: "alice", reference: null, correlationId: null };
  assert.deepEqual({ ...first, ...given }, first);
  assert.ok(
    !JSON.stringify(seen).includes("12.50") && Math.abs(Date.now() - Number(first?.createdAt)) < 60_000,
  );
}

async function failing(subject: HostSubject): Promise<void> {
  const sayings: readonly (() => unknown)[] = [
    () => {
      throw new Error("select * from cards where pan=4111");
    },
    () => Promise.reject(new Error("select * from cards where pan=4111")),
    () => undefined,
    () => "yes",
    () => 1,
  ];
  for (const say of sayings) {
    const untyped: NonNullable<LawSettings["authorizeReplay"]> = JSON.parse("null") ?? say;
    const route: Route = {
      path: "/charges",
      settings: { authorizeReplay: untyped },
      handle: () => new Response(SECRET, { status: 201, headers: { Location: "/accounts/7" } }),
    };
    const { port, events } = await subject.serve({ routes: [route] });
    const request = { target: "/charges", ...json(subject.newKey(), {}) };
    assertFirst(await send(port, request), 201);
    const copy = await send(port, request);
    problemOf(copy, "authorization_failed", { retryAfter: true });
    assertSilent(copy);
    assert.ok(events.some((event) => event.type === "failure" && /authorising/.test(event.what)));
  }
}

async function operations(subject: HostSubject): Promise<void> {
  let owner = "";
  const seen: unknown[] = [];
  const route: Route = {
    path: "/charges",
    effects: "operation",
    settings: {
      authorizeReplay: ({ reference }) => {
        seen.push(reference);
        return reference === owner;
      },
    },
    perform: async () => "paid",
    finish: () => ({ status: 201, headers: { location: "/accounts/7" }, json: SECRET }),
  };
  const { port } = await subject.serve({ routes: [route] });
  const key = subject.newKey();
  const request = { target: "/charges", ...json(key, {}) };
  const first = await send(port, request);
  assertFirst(first, 201);
  const refused = await send(port, request);
  problemOf(refused, "replay_forbidden");
  assertSilent(refused);
  owner = key; // what `open` returned
  assertReplay(first, await send(port, request));
  assert.deepEqual(seen, [key, key]);
}

async function copies(subject: HostSubject): Promise<void> {
  let allowed = false;
  const route: Route = {
    path: "/charges",
    effects: "transaction",
    commits: "one",
    settings: { authorizeReplay: () => allowed },
    handle: ({ commit }) => commit({ status: 201, headers: { location: "/accounts/7" }, json: SECRET }),
  };
  const { port } = await subject.serve({ routes: [route] });
  const key = subject.newKey();
  const request = { target: "/charges", ...json(key, {}) };
  const first = await send(port, request);
  assertFirst(first, 201);
  const refused = await send(port, request);
  problemOf(refused, "replay_forbidden");
  assertSilent(refused);
  allowed = true;
  assertReplay(first, await send(port, request));
  assert.equal(await subject.effects(key), 1);
}
