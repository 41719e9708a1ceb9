import { once } from "node:events";
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { askingAt } from "./asking.ts";
import type { Told } from "./ledger.ts";

/** A server in this process. */
export interface Service {
  /** Sends a request for an effect, over a real socket. */
  readonly ask: (key: string) => Promise<Told>;
  readonly close: () => Promise<void>;
}

/** What a request for an effect asks for. */
export interface Asked {
  readonly key: string;
  readonly note: string;
}

/** Serves POST /effects by a handler that is protected already. */
export async function startService(route: (c: Context) => Promise<Response>): Promise<Service> {
  const app = new Hono();
  app.post("/effects", route);
  const server = createServer(getRequestListener(app.fetch));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server listens on no TCP port.");
  const close = async () => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  return { ask: askingAt(address.port), close };
}

export async function askedIn({ req }: Context): Promise<Asked> {
  const { note } = await req.json();
  return { key: req.header("idempotency-key") ?? "", note: String(note) };
}
