import type { Context, Handler } from "hono";
import type { Engine } from "../engine/engine.ts";
import type { OperationRoute } from "../engine/operation.ts";
import type { Awaitable, Settling } from "../engine/returned.ts";
import type { Exchange } from "./exchange.ts";
import {
  createRoute,
  type RouteOptions,
  type RunContext,
  type TransactionContext,
  type TransactionOptions,
} from "./route.ts";
import type { KeptAnswer } from "./transaction-door.ts";

/** Makes a Hono route safe to send twice: one run, and its own answer to every later copy of the request. */
export function protect<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  options: TransactionOptions<Context>,
  handler: (c: Context, context: TransactionContext<Tx, Settles>) => Awaitable<KeptAnswer | Response>,
): Handler;
export function protect<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<Context>,
  handler: OperationRoute<Context> | ((c: Context, context: RunContext) => Awaitable<Response>),
): Handler;
export function protect<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<Context> & { readonly effects?: "transaction" },
  handler:
    | OperationRoute<Context>
    | ((c: Context, context: TransactionContext<Tx, Settles>) => Awaitable<KeptAnswer | Response>),
): Handler {
  const run = typeof handler === "function" ? handler : null;
  const serve = createRoute(engine, options, typeof handler === "function" ? null : handler);
  return (c) =>
    serve(c, {
      exchange: exchangeOf(c),
      run: async (context) => {
        if (run === null) throw new Error("An operation runs by itself.");
        return await run(c, context);
      },
      answerOfError: (error) => (isHttpError(error) ? error.getResponse() : null),
    });
}

function exchangeOf(c: Context): Exchange {
  const { pathname, search } = new URL(c.req.url);
  return {
    method: c.req.method,
    path: pathname,
    query: search.slice(1),
    // Fetch joins repeated lines with ", ": a bare key with a comma is refused, so two lines are too.
    header: (name) => {
      const value = c.req.header(name);
      return value === undefined ? [] : [value];
    },
    // Hono keeps what was read, so that the handler reads the same bytes again.
    body: async () => new Uint8Array(await c.req.arrayBuffer()),
  };
}

/** Hono's own HTTPException, by what it offers; its answer is the one that Hono would send by default. */
function isHttpError(error: unknown): error is { getResponse(): Response } {
  return error instanceof Error && "getResponse" in error && typeof error.getResponse === "function";
}
