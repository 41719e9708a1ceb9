import { randomUUID } from "node:crypto";
import { type Context, Hono } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import { type Engine, NotPerformed, PermanentFailure } from "oncekey";
import { protect } from "oncekey/hono";
import type { SqliteConnection } from "oncekey/sqlite";

/** The table that `createApp` writes to, beside those of `oncekey migrate`. */
export const TABLE =
  "CREATE TABLE orders (id TEXT PRIMARY KEY, owner TEXT NOT NULL, item TEXT NOT NULL) STRICT";

/** An app in which an order is placed once, however often its request is sent. */
export function createApp({ engine, tokens }: Parts): Hono {
  const app = new Hono();
  app.use("/orders", bearerAuth({ verifyToken: (token) => tokens.has(token) }));
  // The key belongs to a person, who may have another token tomorrow.
  const principal = (c: Context) => tokens.get(c.req.header("authorization")?.slice("Bearer ".length) ?? "");
  app.post(
    "/orders",
    protect(engine, { principal, effects: "transaction" }, async (c, { transaction }) => {
      const { item } = await c.req.json();
      if (item === "nothing") throw new PermanentFailure({ reason: "Order something." }); // kept, and repeated
      if (item === "later") throw new NotPerformed("Out of stock."); // the same key may try again
      const [id, owner] = [randomUUID(), String(principal(c))];
      return transaction((tx) => {
        tx.prepare("INSERT INTO orders (id, owner, item) VALUES (?, ?, ?)").run(id, owner, item);
        return { status: 201, headers: { location: `/orders/${id}` }, json: { id, item } };
      });
    }),
  );
  return app;
}

export interface Parts {
  readonly engine: Engine<SqliteConnection, "sync">;
  /** Principals by their tokens. */
  readonly tokens: ReadonlyMap<string, string>;
}
