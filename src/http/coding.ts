import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import type { Header } from "./exchange.ts";

/**
 * A body without its compression, which was chosen for one client: the next may not be able to undo it. A coding that
 * cannot be undone here, and a body that is longer than `maxBytes` without it, are not kept.
 */
export async function identityOf(
  headers: readonly Header[],
  body: Uint8Array,
  maxBytes: number,
): Promise<{ readonly headers: readonly Header[]; readonly body: Uint8Array | null }> {
  const isCoding = ([name]: Header) => name === "content-encoding";
  const codings = codingsIn(headers.filter(isCoding).map(([, value]) => value));
  if (codings.length === 0 || body.length === 0) return { headers, body };
  const plain = headers.filter((header) => !isCoding(header));
  return { headers: plain, body: await undoneAll(codings, body, maxBytes) };
}

/** The codings that the lines of a `Content-Encoding` name, in the order in which they were applied (RFC 9110, 8.4). */
export function codingsIn(lines: readonly string[]): readonly string[] {
  return lines
    .join()
    .toLowerCase()
    .split(",")
    .map((coding) => coding.trim())
    .filter((coding) => coding !== "" && coding !== "identity");
}

/** A body without its codings, or `null` where one cannot be undone, or where more than `maxBytes` would come of it. */
export async function undoneAll(
  codings: readonly string[],
  body: Uint8Array,
  maxBytes: number,
): Promise<Uint8Array | null> {
  if (codings.length > MOST_CODINGS) return null;
  let decoded: Uint8Array | null = body;
  for (const coding of codings.toReversed()) {
    if (decoded !== null) decoded = await undone(coding, decoded, maxBytes);
  }
  return decoded;
}

/** Nobody needs more, and each costs as much as its client likes. */
const MOST_CODINGS = 3;

const DECODERS: ReadonlyMap<
  string,
  (body: Uint8Array, limits: { readonly maxOutputLength: number }) => Promise<Uint8Array>
> = new Map([
  ["gzip", promisify<Uint8Array, { maxOutputLength: number }, Buffer>(gunzip)],
  ["x-gzip", promisify<Uint8Array, { maxOutputLength: number }, Buffer>(gunzip)],
  ["deflate", promisify<Uint8Array, { maxOutputLength: number }, Buffer>(inflate)],
  ["br", promisify<Uint8Array, { maxOutputLength: number }, Buffer>(brotliDecompress)],
]);

async function undone(coding: string, body: Uint8Array, maxOutputLength: number): Promise<Uint8Array | null> {
  const decode = DECODERS.get(coding);
  // What is damaged was sent all the same: the caller says what becomes of it.
  return (await decode?.(body, { maxOutputLength }).catch(() => null)) ?? null;
}
