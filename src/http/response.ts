import type { Answer } from "../core/record.ts";
import type { HeaderPolicy } from "../engine/header-policy.ts";
import { RESERVED_HEADERS } from "../engine/header-policy.ts";
import type { Header, Reply } from "./exchange.ts";

/** A reply as a `Response`. */
export function toResponse({ status, headers, body }: Reply): Response {
  const lines = new Headers();
  for (const [name, value] of headers) lines.append(name, value);
  return framed(isPlain(body) ? body : new Uint8Array(body), { status, headers: lines });
}

/** The handler's own response, whose body was read, with headers of ours added. */
export function sameResponse(
  response: Response,
  body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null,
  added: readonly Header[],
): Response {
  const headers = new Headers(response.headers);
  for (const reserved of RESERVED_HEADERS) headers.delete(reserved);
  for (const [name, value] of added) headers.set(name, value);
  const { status, statusText } = response;
  return framed(body ?? new Uint8Array(0), { status, statusText, headers });
}

/** What of a response is kept; a `null` body says that it was too long. */
export function keptAnswer(response: Response, body: Uint8Array | null, keeps: HeaderPolicy): Answer {
  return { status: response.status, headers: [...response.headers].filter(keeps), body };
}

/** Fetch takes no bytes of shared memory. */
function isPlain(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer;
}

/** Fetch refuses bodies on these, even empty ones. */
const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** HTTP has no length on these: 304 could only say the length of another answer. */
const NO_LENGTH: ReadonlySet<number> = new Set([204, 304]);

/** An empty body is none at all, or servers would guess a type for it; its length is said, or they would chunk it. */
function framed(
  body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>,
  init: { readonly status: number; readonly statusText?: string; readonly headers: Headers },
): Response {
  const empty = NO_BODY.has(init.status) || (body instanceof Uint8Array && body.length === 0);
  if (!empty) return new Response(body, init);
  if (NO_LENGTH.has(init.status)) init.headers.delete("content-length");
  else init.headers.set("content-length", "0");
  return new Response(null, init);
}
