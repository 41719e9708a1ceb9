import { randomUUID } from "node:crypto";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { Engine } from "oncekey";
import { protect, rawBody } from "oncekey/fastify";
import type { SqliteConnection } from "oncekey/sqlite";

/** An app in which an order is placed once: a row of `orders (id, owner, item)`, in one commit with its answer. */
export function createApp({ engine, tokens }: Parts): FastifyInstance {
  const callerOf = ({ headers }: FastifyRequest) =>
    tokens.get(headers.authorization?.slice("Bearer ".length) ?? "");
  const app = Fastify();
  app.addHook("onRequest", async (request, reply) => {
    if (callerOf(request) === undefined) return reply.code(401).send();
  });
  app.addHook("preParsing", rawBody); // a request is compared by the bytes of its body
  type Order = FastifyRequest<{ Body: { readonly item: string } }>;
  app.post(
    "/orders",
    { schema: { body: { type: "object", required: ["item"], properties: { item: { type: "string" } } } } },
    protect(
      engine,
      { principal: callerOf, effects: "transaction" },
      async (request: Order, _reply: FastifyReply, { transaction }) => {
        const [id, owner, { item }] = [randomUUID(), String(callerOf(request)), request.body];
        return transaction((tx) => {
          tx.prepare("INSERT INTO orders (id, owner, item) VALUES (?, ?, ?)").run(id, owner, item);
          return { status: 201, headers: { location: `/orders/${id}` }, json: { id, item } };
        });
      },
    ),
  );
  return app;
}

export interface Parts {
  readonly engine: Engine<SqliteConnection, "sync">;
  /** Principals by their tokens. */
  readonly tokens: ReadonlyMap<string, string>;
}
