import { ConfigurationError } from "../errors.ts";
import type { Exchange } from "./exchange.ts";
import { linesOf, onAbort, pathOf, queryOf } from "./received.ts";
import { type HostView, type Protect, protectOn } from "./route.ts";
import { copiedBytes } from "./stream-bytes.ts";

/**
 * Makes a handler that speaks `Request → Response` safe to send twice: a Next route handler, Bun, Deno, a worker. The
 * handler reads the request's body as it always did.
 */
export const protect: Protect<Request> = protectOn(viewOf);

function viewOf(request: Request): HostView {
  return {
    exchange: exchangeOf(request),
    // Throwing a Response is how handlers of this kind answer early.
    answerOfError: (error) => (error instanceof Response ? error : null),
    // The runtime's own error page follows; nothing can be added to it from here.
    failed: (error) => Promise.reject(error),
  };
}

function exchangeOf(request: Request): Exchange {
  const { method, url, headers } = request;
  return {
    method,
    path: pathOf(url),
    pattern: null,
    query: queryOf(url),
    header: (name) => linesOf(headers.get(name) ?? undefined, { incoming: null, name }),
    body: (maxBytes) => bodyOf(request, maxBytes),
    onHungUp: (listener) => onAbort(request, listener),
  };
}

/** Reads a copy, so that the handler finds the body unread. */
async function bodyOf(request: Request, maxBytes: number): Promise<Uint8Array> {
  if (request.bodyUsed) throw new ConfigurationError("body", READ_BEFORE);
  return await copiedBytes(request, maxBytes);
}

const READ_BEFORE = "was read before protect() could see its bytes; read it behind protect()";
