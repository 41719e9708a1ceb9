import Fastify, { type FastifyInstance, type FastifyReply } from "fastify";
import { afterAll, expect, test } from "vitest";
import { idempotency, protect, rawBody } from "../../src/http/fastify.ts";
import { valuesOf } from "./differential/model.ts";
import { ask } from "./differential/raw.ts";
import { engineOf, principal } from "./hono-app.ts";
import { listening } from "./hosts.ts";
import { assertReplay, keyed } from "./laws/said.ts";
import { send, type WireAnswer } from "./wire.ts";

const open: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of open) await close();
});

async function portOf(app: FastifyInstance): Promise<number> {
  open.push(() => app.close());
  await app.listen({ port: 0, host: "127.0.0.1" });
  return (await listening(app.server)).port;
}

async function served(app: FastifyInstance): Promise<(method?: string) => Promise<WireAnswer>> {
  const port = await portOf(app);
  return (method = "POST") => send(port, { method, target: "/charges", ...keyed("k") });
}

test("a safe request behind the mount is answered as ever by a handler that returns its reply, and sends later", async () => {
  const app = Fastify();
  await app.register(idempotency(engineOf().engine, { principal }));
  app.all("/charges", async (_request, reply) => {
    setTimeout(() => reply.code(201).send("later"), 10);
    return reply;
  });
  const sent = await served(app);
  expect((await sent("GET")).body.toString()).toBe("later");
  const first = await sent();
  expect(first.body.toString()).toBe("later");
  assertReplay(first, await sent());
});

test("so it is by a handler that returns nothing, and sends later", async () => {
  const app = Fastify();
  await app.register(idempotency(engineOf().engine, { principal }));
  app.all("/charges", (_request, reply) => void setTimeout(() => reply.send("later"), 10));
  expect((await (await served(app))("GET")).body.toString()).toBe("later");
});

test("an error page says nothing of a head that never left, nor what only we may say", async () => {
  const app = Fastify();
  app.addHook("preParsing", rawBody);
  const broken = async (_request: unknown, reply: FastifyReply) => {
    reply.headers({ "Idempotency-Status": "forged", "Idempotent-Replayed": "true" });
    reply.raw.writeHead(202);
    throw new Error("broken");
  };
  app.post("/charges", protect(engineOf().engine, { principal }, broken));
  const answer = await ask(await portOf(app), { target: "/charges", ...keyed("k") });
  expect(answer.statusLine).toBe("HTTP/1.1 500 Internal Server Error");
  expect(valuesOf(answer, "idempotency-status")).toEqual(["unknown"]);
  expect(valuesOf(answer, "idempotent-replayed")).toEqual([]);
});
