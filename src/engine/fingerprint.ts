import { createHmac, timingSafeEqual } from "node:crypto";
import type { Match } from "../core/decide.ts";
import type { Fingerprint } from "../core/record.ts";

/** What a request is, in digests: one of its exact bytes, and one of its value when the mode compares values. */
export interface Material {
  /** SHA-256 over the exact request; equal ones spare the canonical form. */
  readonly raw: Uint8Array;
  /** SHA-256 over the request by value; asked for only when it is needed. */
  readonly canonical: () => Uint8Array;
}

/** A request to be recognised later. */
export interface Recognisable {
  /** Names the rule that makes the digests; a release that changes the rule changes the name. */
  readonly version: string;
  /** The request under the rule of that name, or `null` when this process does not know the rule. */
  readonly material: (version: string) => Material | null;
}

export const SALT_BYTES = 16;

/** Binds a request to a record: salted, so that equal bodies do not show as equal in the store. */
export function bindFingerprint(request: Recognisable, salt: Uint8Array): Fingerprint {
  const material = request.material(request.version);
  if (material === null)
    throw new Error(`The fingerprint rule "${request.version}" cannot be carried out by its own process.`);
  return {
    version: request.version,
    salt,
    raw: salted(salt, material.raw),
    canonical: salted(salt, material.canonical()),
  };
}

/** Compares a request with a kept fingerprint, under that fingerprint's own version and salt. */
export function matchFingerprint(request: Recognisable, kept: Fingerprint): Match {
  const material = request.material(kept.version);
  if (material === null) return "unverifiable";
  if (equal(salted(kept.salt, material.raw), kept.raw)) return "same";
  return equal(salted(kept.salt, material.canonical()), kept.canonical) ? "same" : "other";
}

function salted(salt: Uint8Array, digest: Uint8Array): Uint8Array {
  return createHmac("sha256", salt).update(digest).digest();
}

function equal(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}
