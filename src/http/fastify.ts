import { type Readable, Transform } from "node:stream";
import type { Engine } from "../engine/engine.ts";
import type { OperationRoute } from "../engine/operation.ts";
import type { Settling } from "../engine/returned.ts";
import { KEY_HEADER } from "./exchange.ts";
import { answerBy, type FastifyReply, type FastifyRequest, linesOf, waitFor } from "./fastify-reply.ts";
import { MOUNTED } from "./mounted.ts";
import { exchangeOf } from "./node-request.ts";
import { createNodeRoute, sidesOf } from "./node-route.ts";
import type {
  BeginningContext,
  BeginningOptions,
  DeclaredContext,
  DeclaredOptions,
  RouteOptions,
  RunContext,
  TransactionContext,
  TransactionOptions,
} from "./route.ts";
import type { Running } from "./route-options.ts";

export type { FastifyReply, FastifyRequest } from "./fastify-reply.ts";

/** A route's handler as Fastify calls it. */
export type RouteHandler<Request, Reply> = (request: Request, reply: Reply) => Promise<unknown>;

/**
 * Makes a Fastify route safe to send twice. The handler is the one you had: it returns its payload, calls `reply.send`, or
 * throws; its attempt is its third argument. What is kept is what Fastify sends of it, serialised and after its hooks.
 * Fastify reads bodies before handlers run: `app.addHook("preParsing", rawBody)` keeps their bytes for us.
 */
export function protect<
  Tx,
  Settles extends Settling,
  Request extends FastifyRequest = FastifyRequest,
  Reply extends FastifyReply = FastifyReply,
>(
  engine: Engine<Tx, Settles>,
  options: TransactionOptions<Request>,
  handler: (request: Request, reply: Reply, context: TransactionContext<Tx, Settles>) => unknown,
): RouteHandler<Request, Reply>;
export function protect<
  Tx,
  Settles extends Settling,
  Request extends FastifyRequest = FastifyRequest,
  Reply extends FastifyReply = FastifyReply,
>(
  engine: Engine<Tx, Settles>,
  options: DeclaredOptions<Request>,
  handler: (request: Request, reply: Reply, context: DeclaredContext) => unknown,
): RouteHandler<Request, Reply>;
export function protect<
  Tx,
  Settles extends Settling,
  Request extends FastifyRequest = FastifyRequest,
  Reply extends FastifyReply = FastifyReply,
>(
  engine: Engine<Tx, Settles>,
  options: BeginningOptions<Request>,
  handler: (request: Request, reply: Reply, context: BeginningContext) => unknown,
): RouteHandler<Request, Reply>;
export function protect<
  Tx,
  Settles extends Settling,
  Request extends FastifyRequest = FastifyRequest,
  Reply extends FastifyReply = FastifyReply,
>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<Request>,
  handler: OperationRoute<Request> | ((request: Request, reply: Reply, context: RunContext) => unknown),
): RouteHandler<Request, Reply>;
export function protect<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<FastifyRequest> & Running,
  handler: OperationRoute<FastifyRequest> | ((...given: never) => unknown),
): RouteHandler<FastifyRequest, FastifyReply> {
  const { run, operation } = sidesOf(handler);
  const serve = createNodeRoute(engine, options, operation);
  return async (request, reply) => {
    const exchange = exchangeOf(request.raw, request.routeOptions.url ?? null);
    const before = linesOf(reply);
    const call = { exchange, response: reply.raw, returns: true, before };
    const handover = await serve(request, call, async (context, ended) => {
      waitFor(reply, ended);
      const returned = run(request, reply, context);
      if (returned === undefined) await ended; // it answers by the reply, whenever it likes
      return await returned;
    });
    switch (handover.kind) {
      case "done":
        return reply;
      case "returned":
        return handover.value;
      case "reply":
        return answerBy(reply, before, handover.outgoing);
      case "threw":
        throw handover.error;
    }
  };
}

/** Keeps the bytes of a body that Fastify is about to parse: `app.addHook("preParsing", rawBody)`. */
export function rawBody(
  { raw }: FastifyRequest,
  _reply: unknown,
  payload: Readable,
  done: (error: null, payload: Readable) => void,
): void {
  if (raw.headers[KEY_HEADER] === undefined) {
    done(null, payload);
    return;
  }
  const chunks: Uint8Array[] = [];
  const tap = new Transform({
    transform: (chunk: Uint8Array, _encoding, pass) => {
      chunks.push(chunk);
      pass(null, chunk);
    },
    flush: (pass) => {
      raw.rawBody = Buffer.concat(chunks);
      pass();
    },
  });
  payload.on("error", (error) => tap.destroy(error));
  done(null, payload.pipe(tap));
}

/** What of an application the global mount needs. */
interface Application {
  readonly addHook: (name: "preParsing" | "onRoute", hook: (...given: never) => unknown) => unknown;
}

/** Protects every POST and PATCH that brings a key, of routes added after it: `await app.register(idempotency(engine, { principal }))`. */
export function idempotency<Tx, Settles extends Settling, Request extends FastifyRequest = FastifyRequest>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<Request>,
): (app: Application, settings: unknown, done: () => void) => void {
  const plugin = (app: Application, _settings: unknown, done: () => void) => {
    app.addHook("preParsing", rawBody);
    app.addHook("onRoute", (route: { handler: (request: Request, reply: FastifyReply) => unknown }) => {
      route.handler = protect(engine, { ...MOUNTED, ...options }, route.handler);
    });
    done();
  };
  // Fastify's own word for a plugin that works on the application that it is registered on.
  return Object.assign(plugin, { [Symbol.for("skip-override")]: true });
}
