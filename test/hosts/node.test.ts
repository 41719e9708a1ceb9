import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Settling } from "../../src/engine/returned.ts";
import { protect } from "../../src/http/node.ts";
import type { Site } from "./harness.ts";
import { holdToLaws, listening, patternOf } from "./hosts.ts";
import type { Route } from "./law.ts";
import { answered, begun, declaring, handlers, stepped, viewOf } from "./native.ts";

function mounted<Tx, Settles extends Settling>(site: Site<Tx, Settles>, route: Route) {
  const principal = (request: IncomingMessage) => site.principalOf(route, viewOf(request));
  const options = { ...route.settings, principal };
  switch (route.effects) {
    case undefined: {
      const handle = handlers.plain(site, route);
      return protect(site.engine, options, (request: IncomingMessage, response: ServerResponse, context) =>
        handle(viewOf(request), response, context),
      );
    }
    case "declared":
      return protect(site.engine, { ...options, ...declaring(route) }, async (request, response, context) =>
        answered(response, await stepped(site, route, viewOf(request), context)),
      );
    case "begin":
      return protect(site.engine, { ...options, effectsBegin: true }, async (request, response, context) =>
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

holdToLaws({
  name: "node:http",
  lacks: ["returned answers"],
  serve: async (site) => {
    const routes = site.routes.map((route) => ({ ...route, serve: mounted(site, route) }));
    site.engine.subscribe((event) => {
      if (event.type === "failure" && event.what === "answering a request") site.onError(event.error);
    });
    const server = createServer((request, response) => {
      const { pathname } = new URL(request.url ?? "", "http://service.test");
      const route = routes.find(({ path }) => patternOf(path).test(pathname));
      if (route === undefined) response.writeHead(404).end();
      else void route.serve(request, response);
    });
    return await listening(server.listen(0, "127.0.0.1"));
  },
});
