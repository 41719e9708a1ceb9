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
  const codings = headers
    .filter(([name]) => name === "content-encoding")
    .flatMap(([, value]) => listed(value));
  if (codings.length === 0 || body.length === 0) return { headers, body };
  const plain = headers.filter(([name]) => name !== "content-encoding");
  let decoded: Uint8Array | null = body;
  // Codings are listed in the order in which they were applied (RFC 9110, 8.4).
  for (const coding of codings.toReversed()) {
    if (decoded !== null) decoded = await undone(coding, decoded, maxBytes);
  }
  return { headers: plain, body: decoded };
}

function listed(value: string): readonly string[] {
  return value
    .toLowerCase()
    .split(",")
    .map((coding) => coding.trim())
    .filter((coding) => coding !== "" && coding !== "identity");
}

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
  // What is damaged or too long was sent all the same, and is on record as an answer that was not kept.
  return (await decode?.(body, { maxOutputLength }).catch(() => null)) ?? null;
}
