import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import Koa, { type Context } from "koa";
import type { Settling } from "../../src/engine/returned.ts";
import { protect } from "../../src/http/koa.ts";
import type { Site } from "./harness.ts";
import { holdToLaws, listening, patternOf } from "./hosts.ts";
import type { Route } from "./law.ts";
import { begun, declaring, stepped, transacted, viewOf } from "./native.ts";

const requestOf = ({ req }: { readonly req: IncomingMessage }) => viewOf(req);

/** As Koa's handlers answer: a status, headers, and a body that Koa sends. */
function answered(context: Context, answer: Response): void {
  for (const [name, value] of answer.headers) context.append(name, value);
  context.body = answer.body === null ? null : Readable.fromWeb(answer.body);
  context.status = answer.status;
}

function mounted<Tx, Settles extends Settling>(site: Site<Tx, Settles>, route: Route) {
  const principal = (context: Context) => site.principalOf(route, requestOf(context));
  const options = { ...route.settings, principal };
  switch (route.effects) {
    case undefined:
      return protect(site.engine, options, async (context: Context, _next, attempt) =>
        answered(context, await route.handle(site.workOf(requestOf(context), attempt))),
      );
    case "declared":
      return protect(site.engine, { ...options, ...declaring(route) }, async (context: Context, attempt) =>
        answered(context, await stepped(site, route, requestOf(context), attempt)),
      );
    case "begin":
      return protect(
        site.engine,
        { ...options, effectsBegin: true },
        async (context: Context, _next, attempt) =>
          answered(context, await begun(site, route, requestOf(context), attempt)),
      );
    case "operation":
      return protect(site.engine, options, site.operationOf(route, requestOf));
    case "transaction": {
      const { effects, commits = "two" } = route;
      return protect(site.engine, { ...options, effects, commits }, async (context: Context, attempt) => {
        const returned = await transacted(site, route, requestOf(context), attempt);
        return returned instanceof Response ? answered(context, returned) : returned;
      });
    }
  }
}

holdToLaws({
  name: "Koa",
  lacks: ["returned answers"],
  standsOnNode: true,
  serve: async (site) => {
    const app = new Koa();
    const routes = site.routes.map((route) => ({ ...route, serve: mounted(site, route) }));
    app.on("error", (error) => site.onError(error));
    app.use(async (context, next) => {
      const { pathname } = new URL(context.req.url ?? "", "http://service.test");
      await routes.find(({ path }) => patternOf(path).test(pathname))?.serve(context, next);
    });
    return await listening(app.listen(0, "127.0.0.1"));
  },
});
