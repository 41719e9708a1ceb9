import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { isIPv6 } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";

/** A service that answers. */
export interface Listening {
  readonly url: string;
  /** Takes no further connection; those that are open go on. */
  readonly refuseMore: () => void;
  /** Ends, after `refuseMore`, what is left: idle connections at once, others when their answer is out or is late. */
  readonly close: () => Promise<void>;
}

/** Serves the routes; answers when the promise is kept. */
export async function listen(
  app: Hono,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<Listening> {
  const server = createServer(getRequestListener(app.fetch));
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The service listens on no TCP port.");
  const ended = new Promise<void>((resolve) => {
    server.once("close", resolve);
  });
  return {
    url: `http://${isIPv6(host) ? `[${host}]` : host}:${address.port}`,
    refuseMore: () => void server.close(),
    close: () => end(server, ended),
  };
}

/** How long the last bytes of an answer may take to leave. */
const LINGER_MS = 1_000;

async function end(server: Server, ended: Promise<unknown>): Promise<void> {
  server.closeIdleConnections();
  await Promise.race([ended, pause(LINGER_MS, undefined, { ref: false })]);
  server.closeAllConnections();
  await ended;
}
