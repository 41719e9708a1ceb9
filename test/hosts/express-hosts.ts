import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Settling } from "../../src/engine/returned.ts";
import { protect } from "../../src/http/express.ts";
import type { HostUnderTest, Site } from "./harness.ts";
import { listening } from "./hosts.ts";
import type { Route } from "./law.ts";
import { answered, begun, declaring, handlers, stepped, viewOf } from "./native.ts";

/** An application of Express, whichever version, as far as laws need one. */
interface Application {
  (request: IncomingMessage, response: ServerResponse): void;
  readonly all: (path: string, handler: ReturnType<typeof mounted>) => unknown;
  readonly use: (handler: ReturnType<typeof mounted> | ErrorHandler) => unknown;
}

type Next = (error?: unknown) => void;
type ErrorHandler = (error: unknown, request: IncomingMessage, response: ServerResponse, next: Next) => void;

export function expressHost(name: string, create: () => Application): HostUnderTest {
  return {
    name,
    lacks: ["returned answers"],
    standsOnNode: true,
    serve: async (site) => {
      const app = create();
      for (const route of site.routes) {
        if (route.path === "/*") app.use(mounted(site, route));
        else app.all(route.path, mounted(site, route));
      }
      app.use((error: unknown, _request: IncomingMessage, response: ServerResponse, next: Next) => {
        site.onError(error);
        if (response.headersSent) return next(error);
        response.statusCode = 500;
        response.end("Internal Server Error");
      });
      return await listening(createServer(app).listen(0, "127.0.0.1"));
    },
  };
}

function mounted<Tx, Settles extends Settling>(site: Site<Tx, Settles>, route: Route) {
  const principal = (request: IncomingMessage) => site.principalOf(route, viewOf(request));
  const options = { ...route.settings, principal };
  switch (route.effects) {
    case undefined: {
      const handle = handlers.plain(site, route);
      return protect(site.engine, options, (request, response, _next, context) =>
        handle(viewOf(request), response, context),
      );
    }
    case "declared":
      return protect(site.engine, { ...options, ...declaring(route) }, async (request, response, context) =>
        answered(response, await stepped(site, route, viewOf(request), context)),
      );
    case "begin":
      return protect(
        site.engine,
        { ...options, effectsBegin: true },
        async (request, response, _next, context) =>
          answered(response, await begun(site, route, viewOf(request), context)),
      );
    case "operation":
      return protect(site.engine, options, site.operationOf(route, viewOf));
    case "transaction": {
      const handle = handlers.transaction(site, route);
      const { effects, commits = "two" } = route;
      return protect(site.engine, { ...options, effects, commits }, (request, response, context) =>
        handle(viewOf(request), response, context),
      );
    }
  }
}
