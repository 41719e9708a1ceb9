import { randomUUID } from "node:crypto";
import express, { type Express, type Request } from "express";
import type { Engine } from "oncekey";
import { keepBytes, protect } from "oncekey/express";
import type { SqliteConnection } from "oncekey/sqlite";

/** An app in which an order is placed once: a row of `orders (id, owner, item)`, in one commit with its answer. */
export function createApp({ engine, tokens }: Parts): Express {
  const callerOf = (request: Request) =>
    tokens.get(request.get("authorization")?.slice("Bearer ".length) ?? "");
  const app = express();
  app.use((request, response, next) => {
    if (callerOf(request) === undefined) response.sendStatus(401);
    else next();
  });
  app.use(express.json({ verify: keepBytes })); // a request is compared by the bytes of its body
  app.post(
    "/orders",
    protect(
      engine,
      { principal: callerOf, effects: "transaction" },
      async (request: Request, _response, { transaction }) => {
        const [id, owner, item] = [randomUUID(), String(callerOf(request)), String(request.body.item)];
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
