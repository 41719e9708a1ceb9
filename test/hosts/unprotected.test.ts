import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { serve } from "@hono/node-server";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { afterEach, describe, expect, test } from "vitest";
import { createEngine, type Engine } from "../../src/engine/engine.ts";
import type { EngineEvent } from "../../src/engine/events.ts";
import * as onExpress from "../../src/http/express.ts";
import * as onFastify from "../../src/http/fastify.ts";
import * as onFetch from "../../src/http/fetch.ts";
import * as onHono from "../../src/http/hono.ts";
import * as onKoa from "../../src/http/koa.ts";
import * as onNode from "../../src/http/node.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import type { Listening } from "./harness.ts";
import { principal } from "./hono-app.ts";
import { listening } from "./hosts.ts";
import { assertFirst, assertReplay, json, problemOf } from "./laws/said.ts";
import { linesOf, send } from "./wire.ts";

/** Serves `/protected`, and `/open` without protection, on one host. */
type Build = (engine: Engine, run: () => void) => Listening | Promise<Listening>;

const atNode = async (listener: RequestListener) =>
  await listening(createServer(listener).listen(0, "127.0.0.1"));
const isProtected = ({ url = "" }: { readonly url?: string | undefined }) => url.startsWith("/protected");

const hosts: Readonly<Record<string, Build>> = {
  "node:http": async (engine, run) => {
    const made = (_request: IncomingMessage, response: ServerResponse) => {
      run();
      response.writeHead(201).end("made");
    };
    const kept = onNode.protect(engine, { principal }, async (request, response) => made(request, response));
    const open = onNode.unprotected(engine, made);
    return await atNode((request, response) => (isProtected(request) ? kept : open)(request, response));
  },
  Express: async (engine, run) => {
    const made = (_request: unknown, response: onExpress.ExpressResponse) => {
      run();
      response.status(201).send("made");
    };
    const app = express();
    app.post("/protected", onExpress.protect(engine, { principal }, made));
    app.use(onExpress.unprotected(engine));
    app.all("/open", made);
    return await atNode(app);
  },
  Koa: async (engine, run) => {
    const made = async (context: onKoa.KoaContext) => {
      run();
      context.status = 201;
      context.body = "made";
    };
    const app = new Koa();
    const kept = onKoa.protect(engine, { principal }, made);
    app.use(async (context, next) => await (isProtected(context.req) ? kept(context, next) : next()));
    app.use(onKoa.unprotected(engine));
    app.use(made);
    return await atNode(app.callback());
  },
  Fastify: async (engine, run) => {
    const made = async (_request: unknown, reply: onFastify.FastifyReply) => {
      run();
      reply.code(201);
      return "made";
    };
    const app = Fastify();
    await app.register(onFastify.unprotected(engine));
    app.addHook("preParsing", onFastify.rawBody);
    app.route({ method: ["GET", "POST"], url: "/open", handler: made });
    app.post("/protected", onFastify.protect(engine, { principal }, made));
    await app.listen({ port: 0, host: "127.0.0.1" });
    return { port: Number(new URL(app.listeningOrigin).port), close: () => app.close() };
  },
  Hono: async (engine, run) => {
    const made = () => {
      run();
      return new Response("made", { status: 201 });
    };
    const app = new Hono();
    app.post("/protected", onHono.protect(engine, { principal }, made));
    app.use(onHono.unprotected(engine));
    app.all("/open", made);
    return await listening(serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }));
  },
  fetch: async (engine, run) => {
    const made = () => {
      run();
      return new Response("made", { status: 201 });
    };
    const kept = onFetch.protect(engine, { principal }, made);
    const open = onFetch.unprotected(engine, made);
    const fetch = (request: Request) =>
      new URL(request.url).pathname === "/protected" ? kept(request) : open(request);
    return await listening(serve({ fetch, port: 0, hostname: "127.0.0.1" }));
  },
};

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function serving(build: Build, settings: { readonly rejectUnsupported?: boolean }) {
  const events: EngineEvent[] = [];
  const listeners = [(event: EngineEvent) => events.push(event)];
  const engine: Engine = createEngine({ store: memoryStore(), listeners, ...settings });
  let runs = 0;
  const { port, close } = await build(engine, () => {
    runs += 1;
  });
  open.push(close);
  const asked = (target: string, method = "POST", keyed = true) =>
    send(port, { method, target, ...(keyed ? json("k", {}) : {}) });
  return { asked, engine, runs: () => runs, events };
}

describe.each(Object.entries(hosts))("OP-10: on %s a key where nothing protects", (_name, build) => {
  test("is refused where the engine says so, and nothing runs", async () => {
    const { asked, runs, engine } = await serving(build, { rejectUnsupported: true });
    problemOf(await asked("/open"), "idempotency_not_supported");
    expect(runs()).toBe(0);
    for (const [method, keyed] of [
      ["POST", false],
      ["GET", true],
    ] as const) {
      const answer = await asked("/open", method, keyed);
      assertFirst(answer, 201);
      expect(linesOf(answer, "idempotency-status")).toEqual([]);
    }
    const first = await asked("/protected");
    assertFirst(first, 201);
    assertReplay(first, await asked("/protected"));
    expect(runs()).toBe(3);
    expect([engine.rejectUnsupported, engine.routes.size]).toEqual([true, 1]);
  });

  test("is answered with what it counted for elsewhere, and counted", async () => {
    const { asked, runs, events } = await serving(build, {});
    for (const _ of [1, 2]) {
      const answer = await asked("/open");
      assertFirst(answer, 201);
      expect(linesOf(answer, "idempotency-status")).toEqual(["off"]);
    }
    expect(runs()).toBe(2);
    const counted = events.flatMap((event) => (event.type === "request" ? [event] : []));
    expect(counted.map(({ outcome }) => outcome)).toEqual(["unprotected", "unprotected"]);
    expect(counted.every(({ operation }) => /^POST( \/open)?$/.test(operation))).toBe(true);
    const first = await asked("/protected");
    assertFirst(first, 201);
    expect(linesOf(first, "idempotency-status")).toEqual([]);
  });
});

test("OP-10: what a mount for a whole application has taken is protected", async () => {
  const { asked } = await serving(
    async (engine, run) => {
      const app = express();
      app.use(onExpress.idempotency(engine, { principal }));
      app.use(onExpress.unprotected(engine));
      app.all("/open", (_request, response) => {
        run();
        response.status(201).send("made");
      });
      return await atNode(app);
    },
    { rejectUnsupported: true },
  );
  const first = await asked("/open");
  assertFirst(first, 201);
  assertReplay(first, await asked("/open"));
  problemOf(await asked("/open", "PUT"), "idempotency_not_supported"); // the mount takes POST and PATCH
});

test("OP-10: on Fastify a mount for a whole application is told from what it leaves alone", async () => {
  const { asked, runs } = await serving(
    async (engine, run) => {
      const app = Fastify();
      await app.register(onFastify.unprotected(engine));
      await app.register(onFastify.idempotency(engine, { principal }));
      const handler = async (_request: unknown, reply: onFastify.FastifyReply) => {
        run();
        reply.code(201);
        return "made";
      };
      app.route({ method: ["POST", "PUT"], url: "/open", handler });
      await app.listen({ port: 0, host: "127.0.0.1" });
      return { port: Number(new URL(app.listeningOrigin).port), close: () => app.close() };
    },
    { rejectUnsupported: true },
  );
  const first = await asked("/open");
  assertFirst(first, 201);
  assertReplay(first, await asked("/open"));
  problemOf(await asked("/open", "PUT"), "idempotency_not_supported");
  expect(runs()).toBe(1);
});

test("OP-10: rejectUnsupported is true or false", () => {
  const settings = { store: memoryStore(), rejectUnsupported: JSON.parse('"yes"') };
  expect(() => createEngine(settings)).toThrow(expect.objectContaining({ field: "rejectUnsupported" }));
});
