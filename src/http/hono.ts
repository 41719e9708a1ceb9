import type { Context, Handler } from "hono";
import type { Engine } from "../engine/engine.ts";
import type { OperationRoute } from "../engine/operation.ts";
import type { Awaitable, Settling } from "../engine/returned.ts";
import { ConfigurationError } from "../errors.ts";
import type { Exchange } from "./exchange.ts";
import { linesOf, queryOf } from "./received.ts";
import {
  createRoute,
  type RouteOptions,
  type RunContext,
  type TransactionContext,
  type TransactionOptions,
} from "./route.ts";
import type { KeptAnswer } from "./transaction-door.ts";

/**
 * Makes a Hono route safe to send twice: one run, and its own answer to every later copy of the request. The handler
 * reads the body through `c.req` (`json()`, `text()`, `parseBody()` …), where it stands although it was hashed.
 */
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
        if (run === null) throw new ConfigurationError("operation", UNSAFE_ONLY);
        return await run(c, context);
      },
      answerOfError: (error) => (isHttpError(error) ? asHonoSends(c, error.getResponse()) : null),
      failed: async (error, added) => {
        // On the context's own response, which Hono merges into whatever its error handler answers.
        for (const [name, value] of added) c.res.headers.set(name, value);
        throw error;
      },
    });
}

const UNSAFE_ONLY =
  "cannot be served by a safe method: a GET has no key; mount it with app.post() or app.put()";

function exchangeOf(c: Context): Exchange {
  return {
    method: c.req.method,
    // Not of the URL: Hono routes, and names its parameters, by a path that it decoded in its own way.
    path: c.req.path,
    pattern: c.req.routePath,
    query: queryOf(c.req.url),
    header: (name) => linesOf(c.req.header(name), { incoming: c.env?.incoming, name }),
    body: () => bodyOf(c),
  };
}

/** Hono keeps what was read through `c.req`, so that the handler reads the same bytes again. */
async function bodyOf({ req }: Context): Promise<Uint8Array> {
  const [readFirst] = Object.keys(req.bodyCache);
  const lost = readFirst === undefined ? req.raw.bodyUsed : readFirst === "formData";
  // A parsed form has no bytes: serialised again it has another boundary each time.
  if (lost && req.bodyCache.arrayBuffer === undefined) throw new ConfigurationError("body", READ_BEFORE);
  return new Uint8Array(await req.arrayBuffer());
}

const READ_BEFORE =
  "was read before protect() could see its bytes; read it behind protect(), or before it by c.req.text(), c.req.json() or c.req.arrayBuffer()";

/** Hono's own HTTPException, by what it offers. */
function isHttpError(error: unknown): error is { getResponse(): Response } {
  return error instanceof Error && "getResponse" in error && typeof error.getResponse === "function";
}

/** With the headers that the handler had set on the context, as Hono's own error handler sends it. */
function asHonoSends(c: Context, response: Response): Response {
  return c.newResponse(response.body, response);
}
