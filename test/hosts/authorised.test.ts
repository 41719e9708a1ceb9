import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { afterEach, describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import { protect as protectFetch } from "../../src/http/fetch.ts";
import { protect as protectHono } from "../../src/http/hono.ts";
import { engineOf } from "./hono-app.ts";
import { listening } from "./hosts.ts";
import { json } from "./laws/said.ts";
import { send } from "./wire.ts";

const SECRET = "account 7 holds 12.50";

/** Who a bearer token belongs to and whether they may pay; both may change between two copies of a request. */
interface Callers {
  readonly callerOf: (token: string | null) => string | undefined;
  readonly mayPay: (caller: string) => boolean;
}

type Fetch = (request: Request) => Response | Promise<Response>;

const pay = (count: () => void) => () => {
  count();
  return Response.json({ said: SECRET }, { status: 201 });
};
const tokenOf = (header: string | null | undefined) => header?.replace("Bearer ", "") ?? null;

/** A handler behind its authentication, as each host's users write it, and one that stands before it. */
const hosts: Readonly<
  Record<string, (engine: Engine, callers: Callers, count: () => void) => { behind: Fetch; before: Fetch }>
> = {
  Hono: (engine, { callerOf, mayPay }, count) => {
    const build = (first: "authentication" | "protection") => {
      const app = new Hono<{ Variables: { caller: string } }>();
      const route = protectHono(engine, { principal: (c) => c.get("caller") }, pay(count));
      if (first === "protection") app.post("/payments", route);
      app.use(async (c, next) => {
        const caller = callerOf(tokenOf(c.req.header("authorization")));
        if (caller === undefined) return c.text("who?", 401);
        if (!mayPay(caller)) return c.text("not you", 403);
        c.set("caller", caller);
        return await next();
      });
      app.post("/payments", route);
      return (request: Request) => app.fetch(request);
    };
    return { behind: build("authentication"), before: build("protection") };
  },
  fetch: (engine, { callerOf, mayPay }, count) => {
    const known = new WeakMap<Request, string>();
    const route = protectFetch(engine, { principal: (request) => known.get(request) }, pay(count));
    const behind = (request: Request) => {
      const caller = callerOf(tokenOf(request.headers.get("authorization")));
      if (caller === undefined) return new Response("who?", { status: 401 });
      if (!mayPay(caller)) return new Response("not you", { status: 403 });
      known.set(request, caller);
      return route(request);
    };
    return { behind, before: route };
  },
};

describe.each(Object.entries(hosts))("SE-03: on %s a kept answer", (_name, host) => {
  let close: (() => Promise<void>) | undefined;
  afterEach(async () => close?.());

  async function serving(which: "behind" | "before", callers: Callers) {
    let runs = 0;
    const { engine } = engineOf();
    const fetch = host(engine, callers, () => {
      runs += 1;
    })[which];
    const server = await listening(serve({ fetch, port: 0, hostname: "127.0.0.1" }));
    close = server.close;
    const body = json("k", { amount: 1 }, [["Authorization", "Bearer token"]]);
    return { sent: () => send(server.port, { target: "/payments", ...body }), runs: () => runs };
  }

  test("is given to nobody whose token is revoked or who may not do this any more", async () => {
    let caller: string | undefined = "alice";
    let allowed = true;
    const { sent, runs } = await serving("behind", { callerOf: () => caller, mayPay: () => allowed });
    expect((await sent()).status).toBe(201);
    expect((await sent()).body.toString()).toContain(SECRET);
    allowed = false;
    const forbidden = await sent();
    expect(forbidden).toMatchObject({ status: 403 });
    caller = undefined;
    const unknown = await sent();
    expect(unknown).toMatchObject({ status: 401 });
    for (const refused of [forbidden, unknown]) expect(refused.body.toString()).not.toContain(SECRET);
    expect(runs()).toBe(1);
  });

  test("is not made where protection stands before authentication: nobody is known, and nothing runs", async () => {
    const { sent, runs } = await serving("before", { callerOf: () => "alice", mayPay: () => true });
    const answer = await sent();
    expect(answer.status).toBe(500);
    expect(JSON.parse(answer.body.toString())).toMatchObject({ code: "principal_unresolved" });
    expect(runs()).toBe(0);
  });
});

test("SE-03: a permission on one object is judged by the request as its host shows it", async () => {
  const asked: string[] = [];
  const { engine } = engineOf();
  const onFetch = protectFetch(
    engine,
    { principal: () => "alice", authorizeReplay: (_record, request) => asked.push(request.url) > 0 },
    () => new Response("made"),
  );
  const onHono = new Hono().post(
    "/accounts/:id",
    protectHono(
      engine,
      { principal: () => "bob", authorizeReplay: (_record, c) => asked.push(c.req.param("id") ?? "") > 0 },
      () => new Response("made"),
    ),
  );
  const request = () =>
    new Request("http://service.test/accounts/7", { method: "POST", headers: { "Idempotency-Key": "k" } });
  for (const _ of [1, 2]) {
    expect((await onFetch(request())).status).toBe(200);
    expect((await onHono.fetch(request())).status).toBe(200);
  }
  expect(asked).toEqual(["http://service.test/accounts/7", "7"]);
});
