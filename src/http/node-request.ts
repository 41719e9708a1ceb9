import type { IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import { ConfigurationError } from "../errors.ts";
import type { Exchange } from "./exchange.ts";
import { linesOf, pathOf, queryOf } from "./received.ts";

/** A request as Node's own server, or a framework upon it, hands it on. */
export interface NodeRequest extends IncomingMessage {
  /** As it was sent, where a framework has cut off what it had routed by. */
  readonly originalUrl?: string;
  /** Bytes that a parser read before us, and kept. */
  rawBody?: unknown;
}

export function exchangeOf(request: NodeRequest, pattern: string | null): Exchange {
  const { method = "GET", headers } = request;
  const url = request.originalUrl ?? request.url ?? "/";
  return {
    ...{ method, path: pathOf(url), pattern, query: queryOf(url) },
    header: (name) => {
      const value = headers[name.toLowerCase()];
      const joined = Array.isArray(value) ? value.join(", ") : value;
      return linesOf(joined, { incoming: request, name: name.toLowerCase() });
    },
    body: (maxBytes) => bodyOf(request, maxBytes),
    onHungUp: (listener) => {
      const connection = connectionOf(request);
      if (connection.destroyed) listener();
      connection.once("close", listener);
      return () => void connection.off("close", listener);
    },
  };
}

/** Of HTTP/2 the one stream, whose connection may carry many. */
function connectionOf(request: NodeRequest): Duplex {
  return "stream" in request && request.stream instanceof Duplex ? request.stream : request.socket;
}

/** For a parser that reads before `protect`: `express.json({ verify: keepBytes })`. */
export function keepBytes(request: NodeRequest, _response: unknown, bytes: Uint8Array): void {
  request.rawBody = bytes;
}

async function bodyOf(request: NodeRequest, maxBytes: number): Promise<Uint8Array> {
  const { rawBody } = request;
  if (rawBody instanceof Uint8Array) return rawBody;
  if (typeof rawBody === "string") return Buffer.from(rawBody);
  if (isEmpty(request)) return new Uint8Array(0);
  if (request.readableDidRead || request.readableEnded) throw new ConfigurationError("body", READ_BEFORE);
  return await readAndPutBack(request, maxBytes);
}

const READ_BEFORE =
  "was read before protect() could see its bytes; let the parser keep them (verify: keepBytes), or mount it behind protect()";

function isEmpty({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] === undefined && Number(headers["content-length"] ?? 0) === 0;
}

/**
 * Reads a body and puts it back, so that whoever reads next reads the same bytes. The end is never taken out: a stream
 * that has ended takes nothing back.
 */
async function readAndPutBack(request: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  await new Promise<void>((resolve, reject) => {
    const settle = (end: () => void) => {
      request.off("readable", read).off("error", fail).off("close", hungUp);
      end();
    };
    const fail = (error: unknown) => settle(() => reject(error));
    const hungUp = () => fail(new Error("The client hung up before it had sent its request."));
    const read = () => {
      const chunk: unknown = request.readableLength > 0 ? request.read() : null;
      if (chunk instanceof Uint8Array) chunks.push(chunk);
      size += chunk instanceof Uint8Array ? chunk.length : 0;
      if (size <= maxBytes && (!request.complete || request.readableLength > 0)) return;
      if (size > 0) request.unshift(Buffer.concat(chunks));
      settle(resolve);
    };
    request.on("readable", read).on("error", fail).on("close", hungUp);
    read();
  });
  return Buffer.concat(chunks);
}
