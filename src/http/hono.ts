import type { Context, MiddlewareHandler } from "hono";
import type { Engine } from "../engine/engine.ts";
import { RESERVED_HEADERS } from "../engine/header-policy.ts";
import type { Settling } from "../engine/returned.ts";
import { ConfigurationError } from "../errors.ts";
import type { Exchange } from "./exchange.ts";
import { MOUNTED } from "./mounted.ts";
import { linesOf, onAbort, queryOf } from "./received.ts";
import { toResponse } from "./response.ts";
import { servedAsResponse } from "./response-host.ts";
import { createRoute, type HostView, type Protect, protectOn, type RouteOptions } from "./route.ts";
import { copiedBytes } from "./stream-bytes.ts";
import { unsupportedOn } from "./unsupported.ts";

/**
 * Makes a Hono route safe to send twice: one run, and its own answer to every later copy of the request. The handler
 * reads the body through `c.req` (`json()`, `text()`, `parseBody()` …), where it stands although it was hashed.
 */
export const protect: Protect<Context> = protectOn(viewOf);

/** Protects every POST and PATCH behind it that brings a key: `app.use(idempotency(engine, { principal }))`. */
export function idempotency<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<Context>,
): (c: Context, next: () => Promise<void>) => Promise<Response | undefined> {
  const serve = createRoute(engine, { ...MOUNTED, ...options }, null);
  return async (c, next) => {
    const behind = async () => {
      await next();
      if (c.error !== undefined) throw c.error; // Hono has made a page of it, and told nobody else
      return c.res;
    };
    try {
      const response = await servedAsResponse<Tx, Settles>(mountedViewOf(c), behind, (host) =>
        serve(c, host),
      );
      if (!c.finalized) return asHonoSends(c, response);
      c.res = undefined; // or its headers would go upon those of the new one
      c.res = response;
    } catch (error) {
      if (error !== c.error) throw error;
    }
    return undefined;
  };
}

/** Behind a mount errors are pages already. */
function mountedViewOf(c: Context): HostView {
  return {
    exchange: exchangeOf(c, c.req.matchedRoutes.at(-1)?.path ?? null),
    answerOfError: (error) => (error === c.error && isHttpError(error) ? c.res : null),
    failed: async (error, added) => {
      if (error !== c.error) throw error;
      for (const name of RESERVED_HEADERS) c.res.headers.delete(name);
      for (const [name, value] of added) c.res.headers.set(name, value);
      return c.res;
    },
  };
}

/**
 * For what stands without `protect`: `app.use(unprotected(engine))` behind the protected routes and before all others. A
 * request with a key is refused there, or its answer says `Idempotency-Status: off`, by the engine's `rejectUnsupported`.
 */
export function unprotected<Tx, Settles extends Settling>(engine: Engine<Tx, Settles>): MiddlewareHandler {
  const judge = unsupportedOn(engine);
  return async (c, next) => {
    const judged = judge(c, exchangeOf(c, null)); // what is matched is this middleware
    if (judged.kind === "refuse") return toResponse(judged.outgoing);
    await next();
    if (judged.kind === "off") for (const [name, value] of judged.added) c.header(name, value);
    return;
  };
}

function viewOf(c: Context): HostView {
  return {
    exchange: exchangeOf(c, c.req.routePath),
    answerOfError: (error) => (isHttpError(error) ? asHonoSends(c, error.getResponse()) : null),
    failed: async (error, added) => {
      for (const name of RESERVED_HEADERS) c.header(name, undefined);
      // On the context's own response, which Hono merges into whatever its error handler answers.
      for (const [name, value] of added) c.res.headers.set(name, value);
      throw error;
    },
  };
}

function exchangeOf(c: Context, pattern: string | null): Exchange {
  return {
    method: c.req.method,
    // Not of the URL: Hono routes, and names its parameters, by a path that it decoded in its own way.
    path: c.req.path,
    pattern,
    query: queryOf(c.req.url),
    header: (name) => linesOf(c.req.header(name), { incoming: c.env?.incoming, name }),
    body: (maxBytes) => bodyOf(c, maxBytes),
    onHungUp: (listener) => onAbort(c.req.raw, listener),
  };
}

/** Hono keeps what was read through `c.req`, so that the handler reads the same bytes again. */
async function bodyOf({ req }: Context, maxBytes: number): Promise<Uint8Array> {
  const [readFirst] = Object.keys(req.bodyCache);
  const lost = readFirst === undefined ? req.raw.bodyUsed : readFirst === "formData";
  // A parsed form has no bytes: serialised again it has another boundary each time.
  if (lost && req.bodyCache.arrayBuffer === undefined) throw new ConfigurationError("body", READ_BEFORE);
  if (readFirst === undefined && req.header("content-length") === undefined) {
    const bytes = await copiedBytes(req.raw, maxBytes);
    if (bytes.length > maxBytes) return bytes;
  }
  return new Uint8Array(await req.arrayBuffer());
}

const READ_BEFORE =
  "was read before protect() could see its bytes; read it behind protect(), or before it by c.req.text(), c.req.json() or c.req.arrayBuffer()";

/** Hono's own HTTPException, by what it offers. */
function isHttpError(error: unknown): error is { getResponse(): Response } {
  return error instanceof Error && "getResponse" in error && typeof error.getResponse === "function";
}

/** With the headers that were set on the context before, as Hono's own error handler sends it. */
function asHonoSends(c: Context, response: Response): Response {
  return c.newResponse(response.body, response);
}
