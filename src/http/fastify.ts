import { type Readable, Transform } from "node:stream";
import type { Engine } from "../engine/engine.ts";
import type { OperationRoute } from "../engine/operation.ts";
import type { Settling } from "../engine/returned.ts";
import { KEY_HEADER } from "./exchange.ts";
import { answerBy, type FastifyReply, type FastifyRequest, linesOf, waitFor } from "./fastify-reply.ts";
import { coverageOf } from "./guard.ts";
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
import { unsupportedOn } from "./unsupported.ts";

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
  const served: RouteHandler<FastifyRequest, FastifyReply> = async (request, reply) => {
    const exchange = exchangeOf(request.raw, request.routeOptions.url ?? null);
    const before = linesOf(reply);
    const call = { exchange, response: reply.raw, returns: true, before };
    const handover = await serve(request, call, async (context, ended) => {
      if (ended === null) {
        const returned = run(request, reply, context);
        return returned === undefined ? reply : returned; // it answers by the reply, which tells when it has
      }
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
  COVERED.set(served, coverageOf(options));
  return served;
}

/** Which methods a handler of ours protects. */
const COVERED = new WeakMap<object, (method: string) => boolean>();

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

/** What of an application the global mount needs; by methods, so that Fastify's own overloads fit. */
interface Application {
  addHook(name: "preParsing", hook: (...given: never) => unknown): unknown;
  addHook(name: "onRoute", hook: (...given: never) => unknown): unknown;
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

/**
 * For what stands without `protect`: `await app.register(unprotected(engine))` before the routes, whatever their order. A
 * request with a key is refused there, or its answer says `Idempotency-Status: off`, by the engine's `rejectUnsupported`.
 */
export function unprotected<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
): (app: Application, settings: unknown, done: () => void) => void {
  const judge = unsupportedOn(engine);
  const plugin = (app: Application, _settings: unknown, done: () => void) => {
    app.addHook("onRoute", (route: { readonly handler: object; preHandler?: unknown }) => {
      const refuse = (request: FastifyRequest, reply: FastifyReply, go: () => void) => {
        const exchange = exchangeOf(request.raw, request.routeOptions.url ?? null);
        // Asked now and not earlier: a mount may have wrapped the handler since.
        if (COVERED.get(route.handler)?.(exchange.method) === true) return go();
        const judged = judge(request, exchange);
        if (judged.kind === "refuse") return void answerBy(reply, linesOf(reply), judged.outgoing);
        if (judged.kind === "off") for (const [name, value] of judged.added) reply.header(name, value);
        go();
      };
      route.preHandler = [route.preHandler ?? [], refuse].flat();
    });
    done();
  };
  return Object.assign(plugin, { [Symbol.for("skip-override")]: true });
}
