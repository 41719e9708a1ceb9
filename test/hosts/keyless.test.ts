import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { serve } from "@hono/node-server";
import express from "express";
import Fastify from "fastify";
import { type Context, Hono } from "hono";
import Koa, { type Context as KoaContext } from "koa";
import { afterAll, describe, expect, test } from "vitest";
import { createEngine, type Engine } from "../../src/engine/engine.ts";
import { idempotency as mountExpress } from "../../src/http/express.ts";
import { rawBody } from "../../src/http/fastify.ts";
import { protect as protectFetch } from "../../src/http/fetch.ts";
import { protect as protectHono } from "../../src/http/hono.ts";
import { idempotency as mountKoa } from "../../src/http/koa.ts";
import { protect as protectNode } from "../../src/http/node.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import type { Listening } from "./harness.ts";
import { listening } from "./hosts.ts";
import { send } from "./wire.ts";

const open: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of open) await close();
});

const OPTIONS = { principal: () => "alice", required: false };
const METHODS = ["write", "end", "writeHead", "setHeader", "emit", "on"] as const;

/** What a handler finds of a request that it is about to read, and of the response that it is about to give. */
function seen(request: IncomingMessage, response: ServerResponse) {
  return {
    flowing: request.readableFlowing,
    didRead: request.readableDidRead,
    encoding: request.readableEncoding,
    listeners: request.eventNames().map((name) => [String(name), request.listenerCount(name)]),
    replaced: METHODS.filter((name) => Object.hasOwn(response, name)),
  };
}

type Seen = ReturnType<typeof seen>;
type Note = (what: Seen) => void;

/** Each host on Node's own request, with a handler bare on `/bare` and behind what protects it on `/kept`. */
const onNode: readonly (readonly [string, (engine: Engine, note: Note) => Promise<Listening>])[] = [
  [
    "node:http",
    async (engine, note) => {
      const handle = (request: IncomingMessage, response: ServerResponse) => {
        note(seen(request, response));
        response.end();
      };
      const kept = protectNode(engine, OPTIONS, handle);
      const server = createServer((request, response) => {
        void (request.url === "/kept" ? kept(request, response) : handle(request, response));
      });
      return await listening(server.listen(0, "127.0.0.1"));
    },
  ],
  [
    "Express",
    async (engine, note) => {
      const app = express();
      app.use("/kept", mountExpress(engine, OPTIONS));
      app.use((request, response) => {
        note(seen(request, response));
        response.end();
      });
      return await listening(createServer(app).listen(0, "127.0.0.1"));
    },
  ],
  [
    "Koa",
    async (engine, note) => {
      const app = new Koa();
      const mount = mountKoa(engine, OPTIONS);
      const handle = async ({ req, res }: KoaContext) => note(seen(req, res));
      app.use((context) =>
        context.path === "/kept" ? mount(context, () => handle(context)) : handle(context),
      );
      return await listening(app.listen(0, "127.0.0.1"));
    },
  ],
];

describe("a request without a key reaches its handler unread, with a response that nobody has taken over", () => {
  test.each(onNode)("%s", async (_name, hosted) => {
    const notes: Seen[] = [];
    const { port, close } = await hosted(createEngine({ store: memoryStore() }), (what) => notes.push(what));
    open.push(close);
    for (const target of ["/bare", "/kept"]) await send(port, { target, body: "x".repeat(1_000) });
    const [bare, kept] = notes;
    expect(bare).toBeDefined();
    expect(kept).toEqual(bare);
    expect(kept?.didRead).toBe(false);
  });

  test("Fastify: its body goes on to the parser by no other stream", async () => {
    const app = Fastify();
    const payloads: unknown[] = [];
    const note = (
      _request: unknown,
      _reply: unknown,
      payload: Readable,
      done: (error: null, same: Readable) => void,
    ) => {
      payloads.push(payload);
      done(null, payload);
    };
    app.addHook("preParsing", note);
    app.addHook("preParsing", rawBody);
    app.addHook("preParsing", note);
    app.post("/kept", async () => "made");
    await app.inject({ method: "POST", url: "/kept", payload: { a: 1 } });
    expect(payloads).toHaveLength(2);
    expect(payloads[0]).toBe(payloads[1]);
  });

  test("fetch: it is the very request, and nobody has asked for its body", async () => {
    const request = new Request("http://service.test/kept", { method: "POST", body: "x" });
    const copies: string[] = [];
    Object.defineProperty(request, "clone", { value: () => copies.push("clone") });
    const handed: Request[] = [];
    const kept = protectFetch(createEngine({ store: memoryStore() }), OPTIONS, (given: Request) => {
      handed.push(given);
      return new Response(given.bodyUsed ? "read" : "unread");
    });
    expect(await (await kept(request)).text()).toBe("unread");
    expect(handed[0]).toBe(request);
    expect(copies).toEqual([]);
  });

  test("Hono: nothing of its body is kept, and nobody has asked for it", async () => {
    const app = new Hono();
    const engine = createEngine({ store: memoryStore() });
    const kept = protectHono(engine, OPTIONS, (c: Context) =>
      c.json({ cached: Object.keys(c.req.bodyCache), used: c.req.raw.bodyUsed }),
    );
    app.post("/kept", kept);
    const { port, close } = await listening(serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }));
    open.push(close);
    const { body } = await send(port, { target: "/kept", body: "x" });
    expect(JSON.parse(body.toString())).toEqual({ cached: [], used: false });
  });
});
