import type { Material } from "../engine/fingerprint.ts";
import { valueMaterial } from "../engine/input.ts";
import { sha256 } from "../engine/sha256.ts";
import { encodeValue } from "../engine/values.ts";
import { ConfigurationError } from "../errors.ts";
import { codingsIn, undoneAll } from "./coding.ts";
import type { Exchange } from "./exchange.ts";
import type { FingerprintRule } from "./fingerprint.ts";
import { mediaType } from "./received.ts";

/** What of a request is compared as its body. */
export type Content =
  | {
      readonly kind: "received";
      readonly bytes: Uint8Array;
      /** Without the codings that it came in (RFC 9110, 8.4), which a client may apply anew at each attempt. */
      readonly plain: Uint8Array;
      /** Those that could not be undone; `plain` is the bytes then. */
      readonly coding: string;
    }
  /** The route's own word, in the place of the body. */
  | { readonly kind: "said"; readonly material: Material };

/** How a route takes the bodies of its requests. */
export interface ContentRule {
  readonly rule: FingerprintRule;
  readonly maxBytes: number;
  /** What the route's own `fingerprint` says of this request; nothing, where it has none. */
  readonly said: () => unknown;
}

/** What of this request is compared; `null` where its body is too long. A body that a route speaks for is not read. */
export async function contentOf(
  exchange: Exchange,
  { rule, maxBytes, said }: ContentRule,
): Promise<Content | null> {
  if (exchange.header("content-length").some((length) => Number(length) > maxBytes)) return null;
  const own = await said();
  if (own !== undefined && own !== null) return { kind: "said", material: saidMaterial(own) };
  if (rule.mode !== "raw" && mediaType(exchange).startsWith("multipart/"))
    throw new ConfigurationError("fingerprint", MULTIPART);
  const bytes = await exchange.body(maxBytes);
  return bytes.length > maxBytes ? null : await received(exchange, bytes, maxBytes);
}

const MULTIPART =
  'must say what stands for a multipart body, whose boundary is another at each attempt: fingerprint: (request) => ({ … }), or mode: "raw" where clients repeat every byte. Nothing was run';

/** The bytes that arrived, and what is in them. */
async function received(exchange: Exchange, bytes: Uint8Array, maxBytes: number): Promise<Content> {
  const codings = codingsIn(exchange.header("content-encoding"));
  const plain = codings.length === 0 ? bytes : await undoneAll(codings, bytes, maxBytes);
  if (plain !== null) return { kind: "received", bytes, plain, coding: "" };
  // Damaged, too long without it, or undone already by a parser that handed us the bytes.
  return { kind: "received", bytes, plain: bytes, coding: codings.join() };
}

/** Bytes as they are, any other plain data as a value. */
function saidMaterial(own: unknown): Material {
  if (own instanceof Uint8Array) {
    const digest = sha256(own);
    return { raw: digest, canonical: () => digest };
  }
  const encoded = encodeValue(own);
  if (encoded.kind === "encoded") return valueMaterial(encoded.bytes);
  const { path, reason } = encoded;
  throw new ConfigurationError("fingerprint", `must return plain data or bytes; ${path} ${reason}`);
}
