import { Readable } from "node:stream";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { idempotency, protect, rawBody } from "../../../src/http/fastify.ts";
import { listening } from "../hosts.ts";
import { errorOf, gathered, playNative, waited } from "./playing.ts";
import type { Material } from "./script.ts";
import { type DifferentialHost, type DifferentialSite, OPTIONS } from "./site.ts";

export const fastifyHosts = (): readonly DifferentialHost[] => [
  fastifyHost("Fastify", "route"),
  fastifyHost("Fastify, mounted", "mount"),
];

function fastifyHost(name: string, by: "route" | "mount"): DifferentialHost {
  return {
    ...{ name, ways: Object.keys(WAYS), native: true, framesAnew: false },
    ...{ share: by === "route" ? 1 : 1 / 3 },
    ...{ hearsThrows: true, dropsEmpty: false },
    serve: async (site) => {
      const app = Fastify();
      const handler = handlerOf(site);
      app.all("/bare/:n", handler);
      if (by === "mount") await app.register(idempotency(site.engine, OPTIONS));
      else app.addHook("preParsing", rawBody);
      app.all("/kept/:n", by === "mount" ? handler : protect(site.engine, OPTIONS, handler));
      return await served(app);
    },
  };
}

async function served(app: FastifyInstance) {
  await app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = await listening(app.server);
  return { port, close: () => app.close() };
}

function handlerOf(site: DifferentialSite) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const script = site.enter(request.method, request.url);
    if (script.kind === "own") return await answered(script.way, script, reply);
    const failed = script.acts.some(({ act }) => act === "throw");
    if (!failed) reply.hijack(); // a handler that has taken the reply has nobody to throw to
    return await playNative(script, reply.raw);
  };
}

async function answered(way: string, material: Material, reply: FastifyReply): Promise<unknown> {
  await waited(material);
  reply.code(material.status);
  for (const [name, values] of gathered(material.headers)) {
    const [only = ""] = values;
    reply.header(name, values.length === 1 ? only : [...values]);
  }
  if (material.failure !== null) throw errorOf(material.failure);
  return await WAYS[way]?.(reply, material);
}

const WAYS: Readonly<Record<string, (reply: FastifyReply, material: Material) => unknown>> = {
  "return an object": (_reply, { json }) => ({ json }),
  "return text": (_reply, { text }) => text,
  "return bytes": (_reply, { bytes }) => Buffer.from(bytes),
  "return null": () => null,
  "return a stream": (_reply, { pieces }) => Readable.from(pieces),
  "return a Response": (_reply, { text, status }) =>
    new Response([204, 205, 304].includes(status) ? null : text, { status, headers: { "x-own": "1" } }),
  "send text": (reply, { text }) => reply.send(text),
  "send an object": (reply, { json }) => reply.send({ json }),
  "send bytes": (reply, { bytes }) => reply.send(Buffer.from(bytes)),
  "send an array of bytes": (reply, { bytes }) => reply.send(bytes),
  "send nothing": (reply) => reply.send(),
  "send a stream": (reply, { pieces }) => reply.send(Readable.from(pieces)),
  "send a web stream": (reply, { pieces }) => reply.send(new Blob([...pieces]).stream()),
  "send an error": (reply, { text }) => reply.send(new Error(text)),
  "type and send": (reply, { text }) => reply.type("text/html").send(text),
  redirect: (reply) => reply.redirect("/charges/1"),
  "send later": (reply, material) => {
    setTimeout(() => reply.send(material.text), material.waitMs);
    return reply;
  },
};
