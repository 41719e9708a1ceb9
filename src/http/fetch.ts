import type { Engine } from "../engine/engine.ts";
import type { Awaitable, Settling } from "../engine/returned.ts";
import { ConfigurationError } from "../errors.ts";
import type { Exchange } from "./exchange.ts";
import { linesOf, onAbort, pathOf, queryOf } from "./received.ts";
import { outgoingOf, toResponse } from "./response.ts";
import { type HostView, type Protect, protectOn } from "./route.ts";
import { copiedBytes } from "./stream-bytes.ts";
import { unsupportedOn } from "./unsupported.ts";

/**
 * Makes a handler that speaks `Request → Response` safe to send twice: a Next route handler, Bun, Deno, a worker. The
 * handler reads the request's body as it always did.
 */
export const protect: Protect<Request> = protectOn(viewOf);

/** For a handler that stands without `protect`: a request with a key is refused, or its answer says that it is `off`. */
export function unprotected<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  handler: (request: Request) => Awaitable<Response>,
): (request: Request) => Promise<Response> {
  const judge = unsupportedOn(engine);
  return async (request) => {
    const judged = judge(request, exchangeOf(request));
    if (judged.kind === "refuse") return toResponse(judged.outgoing);
    const response = await handler(request);
    return judged.kind === "off" ? toResponse({ ...outgoingOf(response), added: judged.added }) : response;
  };
}

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
