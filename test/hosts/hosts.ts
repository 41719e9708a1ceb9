import { once } from "node:events";
import { type ServerType, serve } from "@hono/node-server";
import { type Context, Hono } from "hono";
import type { Settling } from "../../src/engine/returned.ts";
import { protect } from "../../src/http/hono.ts";
import type { HostUnderTest, Listening, Site } from "./harness.ts";
import type { RequestView, Route, TransactionWork } from "./law.ts";

/** The methods of every route of a law. */
const METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];

export const honoHost: HostUnderTest = {
  name: "hono",
  lacks: [],
  serve: async (site) => {
    const app = new Hono();
    for (const route of site.routes) app.on(METHODS, route.path, mounted(site, route));
    app.onError((error, c) => {
      site.onError(error);
      return c.text("Internal Server Error", 500);
    });
    return await listening(serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }));
  },
};

export async function listening(server: ServerType): Promise<Listening> {
  if (!server.listening) await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  const close = async () => {
    const closed = once(server, "close");
    server.close();
    if ("closeAllConnections" in server) server.closeAllConnections();
    await closed;
  };
  return { port: address.port, close };
}

function mounted<Tx, Settles extends Settling>(site: Site<Tx, Settles>, route: Route) {
  const options = { ...route.settings, principal: (c: Context) => site.principalOf(route, viewOf(c)) };
  switch (route.effects) {
    case undefined:
      return protect(site.engine, options, (c, attempt) => route.handle(site.workOf(viewOf(c), attempt)));
    case "operation": {
      const { kind, name, execute } = site.operationOf(route);
      return protect(site.engine, options, {
        kind,
        name,
        execute: (request, c) => execute(request, viewOf(c)),
      });
    }
    case "transaction":
      return protect(site.engine, { ...options, effects: "transaction" }, (c, attempt) => {
        const request = viewOf(c);
        const commit: TransactionWork["commit"] = (answer) =>
          attempt.transaction(site.unitOf(request, answer));
        return route.handle({ ...site.workOf(request, attempt), commit });
      });
  }
}

function viewOf({ req }: Context): RequestView {
  return { method: req.method, header: (name) => req.header(name), text: () => req.text() };
}
