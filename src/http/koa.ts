import type { ServerResponse } from "node:http";
import { Stream } from "node:stream";
import type { Engine } from "../engine/engine.ts";
import type { OperationRoute } from "../engine/operation.ts";
import type { Settling } from "../engine/returned.ts";
import { MOUNTED } from "./mounted.ts";
import { byName, putAtHead } from "./node-head.ts";
import { exchangeOf, type NodeRequest } from "./node-request.ts";
import { createNodeRoute, sidesOf } from "./node-route.ts";
import { isBodyless, type Outgoing } from "./outgoing.ts";
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

/** What of Koa's context a route is told and answered by. */
export interface KoaContext {
  readonly req: NodeRequest;
  readonly res: ServerResponse;
  /** What a router matched, where there is one. */
  readonly _matchedRoute?: unknown;
  status: number;
  body?: unknown;
  respond?: boolean | undefined;
  readonly set: (name: string, value: string | string[]) => void;
  readonly remove: (name: string) => void;
}

type Next = () => Promise<unknown>;

/** A middleware as Koa calls it. */
export type Middleware<Context> = (context: Context, next: Next) => Promise<void>;

/**
 * Makes a Koa route safe to send twice. The handler is the one you had: it sets the context's body and status, answers by
 * `ctx.res`, or throws; its attempt comes behind `next`. Where its effects are declared the attempt stands in the place of
 * `next`. What is kept is what Koa sends of it, after every middleware around it.
 */
export function protect<Tx, Settles extends Settling, Context extends KoaContext = KoaContext>(
  engine: Engine<Tx, Settles>,
  options: TransactionOptions<Context>,
  handler: (context: Context, attempt: TransactionContext<Tx, Settles>) => unknown,
): Middleware<Context>;
export function protect<Tx, Settles extends Settling, Context extends KoaContext = KoaContext>(
  engine: Engine<Tx, Settles>,
  options: DeclaredOptions<Context>,
  handler: (context: Context, attempt: DeclaredContext) => unknown,
): Middleware<Context>;
export function protect<Tx, Settles extends Settling, Context extends KoaContext = KoaContext>(
  engine: Engine<Tx, Settles>,
  options: BeginningOptions<Context>,
  handler: (context: Context, next: Next, attempt: BeginningContext) => unknown,
): Middleware<Context>;
export function protect<Tx, Settles extends Settling, Context extends KoaContext = KoaContext>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<Context>,
  handler: OperationRoute<Context> | ((context: Context, next: Next, attempt: RunContext) => unknown),
): Middleware<Context>;
export function protect<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<KoaContext> & Running,
  handler: OperationRoute<KoaContext> | ((...given: never) => unknown),
): Middleware<KoaContext> {
  const { run, operation } = sidesOf(handler);
  const serve = createNodeRoute(engine, options, operation);
  return async (context, next) => {
    const exchange = exchangeOf(context.req, patternOf(context));
    const call = { exchange, response: context.res, returns: true };
    const handover = await serve(context, call, async (attempt) => {
      const returned = await run(context, ...(options.effects === undefined ? [next, attempt] : [attempt]));
      breakWith(context);
      return returned;
    });
    switch (handover.kind) {
      case "done":
      case "returned":
        return;
      case "reply":
        return answer(context, handover.outgoing);
      case "threw":
        throw handover.error;
    }
  };
}

/** Protects every POST and PATCH behind it that brings a key: `app.use(idempotency(engine, { principal }))`. */
export function idempotency<Tx, Settles extends Settling, Context extends KoaContext = KoaContext>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<Context>,
): Middleware<Context> {
  return protect<Tx, Settles, Context>(engine, { ...MOUNTED, ...options }, (_context, next) => next());
}

/**
 * For what stands without `protect`: `app.use(unprotected(engine))` behind the protected routes and before all others. A
 * request with a key is refused there, or its answer says `Idempotency-Status: off`, by the engine's `rejectUnsupported`.
 */
export function unprotected<Tx, Settles extends Settling, Context extends KoaContext = KoaContext>(
  engine: Engine<Tx, Settles>,
): Middleware<Context> {
  const judge = unsupportedOn(engine);
  return async (context, next) => {
    const judged = judge(context, exchangeOf(context.req, patternOf(context)));
    if (judged.kind === "refuse") return answer(context, judged.outgoing);
    if (judged.kind === "off") putAtHead(context.res, judged.added);
    await next();
  };
}

/** Koa leaves a response open for ever whose body has failed half way. */
function breakWith({ body, res }: KoaContext): void {
  if (body instanceof Stream) body.once("error", (error: Error) => res.destroy(error));
}

/** By the context, so that what stands around it still has its say. */
function answer(context: KoaContext, { status, headers, body, added }: Outgoing): void {
  context.status = status;
  context.body = isBodyless(status) || !(body instanceof Uint8Array) ? null : Buffer.from(body);
  context.status = status; // a body of nothing has made it 204
  context.remove("content-type"); // guessed from the body
  for (const { name, values } of byName([...headers, ...added]).values()) {
    const [only = ""] = values;
    context.set(name, values.length === 1 ? only : [...values]);
  }
  // A handler that had said that it answers by `ctx.res` does not any more.
  context.respond = true;
}

function patternOf({ _matchedRoute }: KoaContext): string | null {
  return typeof _matchedRoute === "string" ? _matchedRoute : null;
}
