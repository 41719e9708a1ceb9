import type { ServerResponse } from "node:http";
import { type ExpressRequest, patternOf } from "./express.ts";
import { answerBy, type FastifyReply, type FastifyRequest, linesOf, waitFor } from "./fastify-reply.ts";
import type { NodeCall } from "./node-host.ts";
import { exchangeOf } from "./node-request.ts";
import { sendReply } from "./node-send.ts";
import type { Outgoing } from "./outgoing.ts";

/** A request of Nest, on Express or on Fastify. */
export type NestRequest = ExpressRequest | (FastifyRequest & { readonly rawBody?: unknown });

/** A response of Nest, on Express or on Fastify. */
export type NestResponse = ServerResponse | FastifyReply;

/** One exchange, whichever platform it came through. */
export interface NestExchange {
  readonly request: NestRequest;
  readonly call: Pick<NodeCall<never, never>, "exchange" | "response" | "returns" | "before">;
  /** Lets a handler wait for what it has sent. */
  readonly sending: (ended: Promise<void>) => void;
  /** Sends an answer; what Nest sends once this has settled goes nowhere. */
  readonly answer: (outgoing: Outgoing) => Promise<void>;
}

export function nestExchangeOf(request: NestRequest, response: NestResponse): NestExchange {
  if ("raw" in request && "raw" in response) return onFastify(request, response);
  if ("raw" in request || "raw" in response)
    throw new TypeError("Request and response are of two platforms.");
  return onExpress(request, response);
}

function onExpress(request: ExpressRequest, response: ServerResponse): NestExchange {
  return {
    request,
    call: { exchange: exchangeOf(request, patternOf(request)), response, returns: true },
    sending: () => {},
    answer: async (outgoing) => {
      const over = left(response);
      sendReply(response, outgoing);
      await over;
      silence(response);
    },
  };
}

function onFastify(
  request: FastifyRequest & { readonly rawBody?: unknown },
  reply: FastifyReply,
): NestExchange {
  const { raw, routeOptions, rawBody } = request;
  raw.rawBody ??= rawBody; // where `rawBody: true` keeps it on this platform
  const before = linesOf(reply);
  return {
    request,
    call: { exchange: exchangeOf(raw, routeOptions.url ?? null), response: reply.raw, returns: true, before },
    sending: (ended) => waitFor(reply, ended),
    answer: async (outgoing) => {
      const over = left(reply.raw);
      answerBy(reply, before, outgoing);
      await over;
      Object.assign(reply, { send: () => reply });
      silence(reply.raw);
    },
  };
}

/** Hooks and compression may take their time over it; nothing leaves once the client is gone. */
function left(response: ServerResponse): Promise<void> {
  if (response.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    response.once("finish", resolve).once("close", resolve);
  });
}

/** Nest answers with whatever its handler came to, and does not ask whether that was sent already. */
function silence(response: ServerResponse): void {
  for (const name of WRITING) {
    Object.defineProperty(response, name, { value: () => response, configurable: true, writable: true });
  }
}

const WRITING = [
  ...["setHeader", "setHeaders", "appendHeader", "removeHeader", "writeHead"],
  ...["flushHeaders", "write", "addTrailers", "end"],
];
