import type { ServerResponse } from "node:http";
import type { Engine } from "../engine/engine.ts";
import type { OperationRoute } from "../engine/operation.ts";
import type { Settling } from "../engine/returned.ts";
import { MOUNTED } from "./mounted.ts";
import { putAtHead } from "./node-head.ts";
import { exchangeOf, type NodeRequest } from "./node-request.ts";
import { createNodeRoute, type Next, sidesOf, untilEnded } from "./node-route.ts";
import { sendReply } from "./node-send.ts";
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

export { keepBytes } from "./node-request.ts";

/** What of Express' request a route is told by. */
export interface ExpressRequest extends NodeRequest {
  readonly baseUrl?: string;
  readonly route?: { readonly path?: unknown };
  readonly body?: unknown;
}

/** What of Express' response a handler has without naming a type of its own. */
export interface ExpressResponse extends ServerResponse {
  readonly status: (status: number) => this;
  readonly json: (body?: unknown) => this;
  readonly send: (body?: unknown) => this;
  readonly sendStatus: (status: number) => this;
}

/** A handler as Express calls it, for 4 and 5. */
export type Middleware<Request, Response> = (request: Request, response: Response, next: Next) => void;

/**
 * Makes an Express route safe to send twice. The handler is the one you had: it answers by the response in any way that
 * Express or Node knows, throws, or calls `next`; its attempt comes behind `next`. Where its effects are declared the
 * attempt stands in the place of `next`.
 */
export function protect<
  Tx,
  Settles extends Settling,
  Request extends ExpressRequest = ExpressRequest,
  Response extends ServerResponse = ExpressResponse,
>(
  engine: Engine<Tx, Settles>,
  options: TransactionOptions<Request>,
  handler: (request: Request, response: Response, context: TransactionContext<Tx, Settles>) => unknown,
): Middleware<Request, Response>;
export function protect<
  Tx,
  Settles extends Settling,
  Request extends ExpressRequest = ExpressRequest,
  Response extends ServerResponse = ExpressResponse,
>(
  engine: Engine<Tx, Settles>,
  options: DeclaredOptions<Request>,
  handler: (request: Request, response: Response, context: DeclaredContext) => unknown,
): Middleware<Request, Response>;
export function protect<
  Tx,
  Settles extends Settling,
  Request extends ExpressRequest = ExpressRequest,
  Response extends ServerResponse = ExpressResponse,
>(
  engine: Engine<Tx, Settles>,
  options: BeginningOptions<Request>,
  handler: (request: Request, response: Response, next: Next, context: BeginningContext) => unknown,
): Middleware<Request, Response>;
export function protect<
  Tx,
  Settles extends Settling,
  Request extends ExpressRequest = ExpressRequest,
  Response extends ServerResponse = ExpressResponse,
>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<Request>,
  handler:
    | OperationRoute<Request>
    | ((request: Request, response: Response, next: Next, context: RunContext) => unknown),
): Middleware<Request, Response>;
export function protect<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<ExpressRequest> & Running,
  handler: OperationRoute<ExpressRequest> | ((...given: never) => unknown),
): Middleware<ExpressRequest, ServerResponse> {
  const { run, operation } = sidesOf(handler);
  const serve = createNodeRoute(engine, options, operation);
  return async (request, response, next) => {
    const call = { exchange: exchangeOf(request, patternOf(request)), response, returns: false };
    const handover = await serve(request, call, (context, ended) =>
      untilEnded(ended, next, (own) =>
        run(request, response, ...(options.effects === undefined ? [own, context] : [context])),
      ),
    );
    switch (handover.kind) {
      case "done":
      case "returned":
        return;
      case "reply":
        return sendReply(response, handover.outgoing);
      case "threw":
        return next(handover.error);
    }
  };
}

/** Protects every POST and PATCH behind it that brings a key: `app.use(idempotency(engine, { principal }))`. */
export function idempotency<
  Tx,
  Settles extends Settling,
  Request extends ExpressRequest = ExpressRequest,
  Response extends ServerResponse = ExpressResponse,
>(engine: Engine<Tx, Settles>, options: RouteOptions<Request>): Middleware<Request, Response> {
  return protect<Tx, Settles, Request, Response>(
    engine,
    { ...MOUNTED, ...options },
    (_request, _response, next) => next(),
  );
}

/**
 * For what stands without `protect`: `app.use(unprotected(engine))` behind the protected routes and before all others. A
 * request with a key is refused there, or its answer says `Idempotency-Status: off`, by the engine's `rejectUnsupported`.
 */
export function unprotected<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
): Middleware<ExpressRequest, ServerResponse> {
  const judge = unsupportedOn(engine);
  return (request, response, next) => {
    const judged = judge(request, exchangeOf(request, patternOf(request)));
    if (judged.kind === "refuse") return sendReply(response, judged.outgoing);
    if (judged.kind === "off") putAtHead(response, judged.added);
    next();
  };
}

/** What Express matched, mounts included; a mounted middleware has matched nothing yet. */
export function patternOf({ baseUrl = "", route }: ExpressRequest): string | null {
  return typeof route?.path === "string" ? `${baseUrl}${route.path}` : null;
}
