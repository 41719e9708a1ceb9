import type { Engine } from "../engine/engine.ts";
import type { OperationRoute } from "../engine/operation.ts";
import type { Awaitable, Settling } from "../engine/returned.ts";
import { ConfigurationError } from "../errors.ts";
import type { Exchange } from "./exchange.ts";
import { linesOf, pathOf, queryOf } from "./received.ts";
import {
  createRoute,
  type RouteOptions,
  type RunContext,
  type TransactionContext,
  type TransactionOptions,
} from "./route.ts";
import type { KeptAnswer } from "./transaction-door.ts";

/** Anything that speaks `Request → Response`: a Next route handler, Bun, Deno, a worker. */
export type FetchHandler = (request: Request) => Promise<Response>;

/** Makes a `Request → Response` handler safe to send twice; the handler reads the request's body as it always did. */
export function protect<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  options: TransactionOptions<Request>,
  handler: (request: Request, context: TransactionContext<Tx, Settles>) => Awaitable<KeptAnswer | Response>,
): FetchHandler;
export function protect<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<Request>,
  handler: OperationRoute<Request> | ((request: Request, context: RunContext) => Awaitable<Response>),
): FetchHandler;
export function protect<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<Request> & { readonly effects?: "transaction" },
  handler:
    | OperationRoute<Request>
    | ((request: Request, context: TransactionContext<Tx, Settles>) => Awaitable<KeptAnswer | Response>),
): FetchHandler {
  const run = typeof handler === "function" ? handler : null;
  const serve = createRoute(engine, options, typeof handler === "function" ? null : handler);
  return (request) =>
    serve(request, {
      exchange: exchangeOf(request),
      run: async (context) => {
        if (run === null) throw new ConfigurationError("operation", "cannot be served by a safe method");
        return await run(request, context);
      },
      // Throwing a Response is how handlers of this kind answer early.
      answerOfError: (error) => (error instanceof Response ? error : null),
      // The runtime's own error page follows; nothing can be added to it from here.
      failed: (error) => Promise.reject(error),
    });
}

function exchangeOf(request: Request): Exchange {
  const { method, url, headers } = request;
  return {
    method,
    path: pathOf(url),
    pattern: null,
    query: queryOf(url),
    header: (name) => linesOf(headers.get(name) ?? undefined, { incoming: null, name }),
    body: () => bodyOf(request),
  };
}

/** Reads a copy, so that the handler finds the body unread. */
async function bodyOf(request: Request): Promise<Uint8Array> {
  if (request.bodyUsed) throw new ConfigurationError("body", READ_BEFORE);
  return new Uint8Array(await request.clone().arrayBuffer());
}

const READ_BEFORE = "was read before protect() could see its bytes; read it behind protect()";
