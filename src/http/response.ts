import type { Answer } from "../core/record.ts";
import type { Reply } from "./exchange.ts";
import type { HeaderPolicy } from "./header-policy.ts";

/** A `Response` read as far as it may be kept. */
export type Captured =
  | { readonly kind: "whole"; readonly body: Uint8Array }
  /** Longer than may be kept: what was read, and the rest still flowing. */
  | {
      readonly kind: "overflow";
      readonly head: readonly Uint8Array[];
      readonly rest: ReadableStreamDefaultReader<Uint8Array>;
    };

/** Reads a body up to the cap, so that memory stays bounded whatever a handler sends. */
export async function capture(response: Response, maxBytes: number): Promise<Captured> {
  if (response.body === null) return { kind: "whole", body: new Uint8Array(0) };
  const reader = response.body.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { kind: "whole", body: joined(chunks, length) };
    chunks.push(value);
    length += value.length;
    if (length > maxBytes) return { kind: "overflow", head: chunks, rest: reader };
  }
}

/** What of a response is kept; a `null` body says that it was too long. */
export function keptAnswer(response: Response, body: Uint8Array | null, keeps: HeaderPolicy): Answer {
  return { status: response.status, headers: [...response.headers].filter(keeps), body };
}

/** The handler's own response, its bytes already read, with headers of ours added. */
export function sameResponse(
  response: Response,
  body: Uint8Array | ReadableStream<Uint8Array>,
  added: Iterable<readonly [string, string]>,
): Response {
  const headers = new Headers(response.headers);
  for (const reserved of RESERVED) headers.delete(reserved);
  for (const [name, value] of added) headers.set(name, value);
  const { status, statusText } = response;
  return new Response(NO_BODY.has(status) ? null : bodyOf(body, response), { status, statusText, headers });
}

export function toResponse({ status, headers, body }: Reply): Response {
  const lines = new Headers();
  for (const [name, value] of headers) lines.append(name, value);
  return new Response(NO_BODY.has(status) || body.length === 0 ? null : owned(body), {
    status,
    headers: lines,
  });
}

/** Sends what was read, then the rest as it comes; the end waits for `beforeEnd`, whose failure cuts the answer short. */
export function flowing(
  { head, rest }: Extract<Captured, { kind: "overflow" }>,
  beforeEnd: () => Promise<void>,
): ReadableStream<Uint8Array> {
  const waiting = [...head];
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const next = waiting.shift();
      if (next !== undefined) return controller.enqueue(next);
      const { done, value } = await rest.read();
      if (!done) return controller.enqueue(value);
      await beforeEnd();
      controller.close();
    },
    // A client that hangs up does not stop the work: the rest is read to its end all the same.
    cancel: () => readOut(rest, beforeEnd),
  });
}

/** Fetch refuses bodies on these, even empty ones. */
const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** A handler cannot speak in our name. */
const RESERVED: readonly string[] = ["idempotent-replayed", "idempotency-expires", "idempotency-status"];

function bodyOf(
  body: Uint8Array | ReadableStream<Uint8Array>,
  response: Response,
): Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null {
  if (!(body instanceof Uint8Array)) return body;
  return body.length === 0 && response.body === null ? null : owned(body);
}

async function readOut(
  rest: ReadableStreamDefaultReader<Uint8Array>,
  beforeEnd: () => Promise<void>,
): Promise<void> {
  for (;;) {
    const { done } = await rest.read();
    if (done) return await beforeEnd();
  }
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const body = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    body.set(chunk, offset);
    offset += chunk.length;
  }
  return body;
}

function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}
