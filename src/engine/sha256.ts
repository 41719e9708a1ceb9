import { hash } from "node:crypto";

/** By way of its text: bytes from a pool, where a digest asked for as bytes has a block of memory of its own. */
export function sha256(data: Uint8Array | string): Uint8Array {
  return Buffer.from(hash("sha256", data, "hex"), "hex");
}

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;

/**
 * HMAC-SHA-256 (RFC 2104) of a digest. Written out, because every claim needs two and
 * an `Hmac` object costs three times as much, most of it to the collector.
 */
export function hmacSha256(secret: Uint8Array, digest: Uint8Array): Uint8Array {
  if (digest.length !== DIGEST_BYTES) throw new Error("A digest of SHA-256 has 32 bytes.");
  const key = secret.length > BLOCK_BYTES ? sha256(secret) : secret;
  for (let at = 0; at < BLOCK_BYTES; at += 1) {
    const byte = key[at] ?? 0;
    INNER[at] = byte ^ 0x36;
    OUTER[at] = byte ^ 0x5c;
  }
  INNER.set(digest, BLOCK_BYTES);
  OUTER.write(hash("sha256", INNER, "hex"), BLOCK_BYTES, "hex");
  return sha256(OUTER);
}

/** Nobody waits between their being written and their being read. */
const INNER = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES);
const OUTER = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES);
