import Fastify, { type FastifyReply, type FastifyRequest } from "fastify";
import type { Settling } from "../../src/engine/returned.ts";
import { protect, rawBody } from "../../src/http/fastify.ts";
import type { Site } from "./harness.ts";
import { holdToLaws, listening } from "./hosts.ts";
import type { RequestView, Route } from "./law.ts";
import { begun, declaring, stepped, transacted } from "./native.ts";

/** The body as a parser has read it. */
const viewOf = ({ method, headers, body }: FastifyRequest): RequestView => ({
  method,
  header: (name) => headers[name.toLowerCase()]?.toString(),
  text: async () => (body === undefined ? "" : String(body)),
});

/** As Fastify's handlers answer: a status, headers, and a payload that Fastify sends. */
function answered(reply: FastifyReply, answer: Response): FastifyReply {
  reply.code(answer.status);
  for (const [name, value] of answer.headers) {
    const before = reply.getHeader(name);
    reply.header(
      name,
      before === undefined || name === "set-cookie" ? value : [before, value].flat().map(String),
    );
  }
  return reply.send(answer.body === null ? undefined : answer.body);
}

function mounted<Tx, Settles extends Settling>(site: Site<Tx, Settles>, route: Route) {
  const principal = (request: FastifyRequest) => site.principalOf(route, viewOf(request));
  const options = { ...route.settings, principal };
  switch (route.effects) {
    case undefined:
      return protect(site.engine, options, async (request: FastifyRequest, reply: FastifyReply, context) =>
        answered(reply, await route.handle(site.workOf(viewOf(request), context))),
      );
    case "declared":
      return protect(
        site.engine,
        { ...options, ...declaring(route) },
        async (request: FastifyRequest, reply: FastifyReply, context) =>
          answered(reply, await stepped(site, route, viewOf(request), context)),
      );
    case "begin":
      return protect(
        site.engine,
        { ...options, effectsBegin: true },
        async (request: FastifyRequest, reply: FastifyReply, context) =>
          answered(reply, await begun(site, route, viewOf(request), context)),
      );
    case "operation":
      return protect(site.engine, options, site.operationOf(route, viewOf));
    case "transaction": {
      const { effects, commits = "two" } = route;
      return protect(
        site.engine,
        { ...options, effects, commits },
        async (request: FastifyRequest, reply: FastifyReply, context) => {
          const returned = await transacted(site, route, viewOf(request), context);
          return returned instanceof Response ? answered(reply, returned) : returned;
        },
      );
    }
  }
}

holdToLaws({
  name: "Fastify",
  lacks: ["returned answers", "damaged paths"],
  standsOnNode: true,
  serve: async (site) => {
    const app = Fastify();
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
    app.addHook("preParsing", rawBody);
    app.setErrorHandler((error, _request, reply) => {
      site.onError(error);
      return reply.code(500).type("text/plain").send("Internal Server Error");
    });
    for (const route of site.routes) app.all(route.path, mounted(site, route));
    await app.listen({ port: 0, host: "127.0.0.1" });
    const { port } = await listening(app.server);
    return { port, close: () => app.close() };
  },
});
