import { timingSafeEqual } from "node:crypto";
import type { Match } from "../core/decide.ts";
import type { Member } from "../core/members.ts";
import type { Fingerprint } from "../core/record.ts";
import { type Differing, differingFrom, memberTags } from "./member-tags.ts";
import { hmacSha256 } from "./sha256.ts";

/** What a request is, in digests: one of its exact bytes, and one of its value when the mode compares values. */
export interface Material {
  /** SHA-256 over the exact request; equal ones spare the canonical form. */
  readonly raw: Uint8Array;
  /** SHA-256 over the request by value; asked for only when it is needed. */
  readonly canonical: () => Uint8Array;
  /** The members of the value by which a mismatch is explained; `null`, or absent, where there are none to name. */
  readonly members?: () => readonly Member[] | null;
  /** Keys whatever is kept of the members; the digests are keyed already. Absent where there is no secret. */
  readonly secret?: Uint8Array;
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
    raw: hmacSha256(salt, material.raw),
    canonical: withTags(hmacSha256(salt, material.canonical()), material, salt),
  };
}

/** A digest of SHA-256; what follows it in a kept `canonical` are the tags of the members. */
const DIGEST_BYTES = 32;

function withTags(digest: Uint8Array, { members, secret }: Material, salt: Uint8Array): Uint8Array {
  const known = members?.() ?? null;
  return known === null ? digest : Buffer.concat([digest, memberTags(known, salt, secret ?? null)]);
}

/** Where a claim keeps what its `fingerprint` is made by. */
export const BINDING: unique symbol = Symbol("oncekey.binding");

interface Bindable {
  readonly [BINDING]: () => Fingerprint;
}

/** Gives a claim a fingerprint that is made when it is read: a copy may be answered without. By the means of `addSignal`. */
export function addFingerprint<T extends Bindable>(
  target: T,
): asserts target is T & { readonly fingerprint: Fingerprint } {
  Object.defineProperty(target, "fingerprint", FINGERPRINT);
}

const FINGERPRINT: PropertyDescriptor & ThisType<Bindable> = {
  enumerable: true,
  get() {
    return this[BINDING]();
  },
};

/** Compares a request with a kept fingerprint, under that fingerprint's own version and salt. */
export function matchFingerprint(request: Recognisable, kept: Fingerprint): Match {
  const material = request.material(kept.version);
  if (material === null) return "unverifiable";
  if (equal(hmacSha256(kept.salt, material.raw), kept.raw)) return "same";
  const canonical = kept.canonical.subarray(0, DIGEST_BYTES);
  return equal(hmacSha256(kept.salt, material.canonical()), canonical) ? "same" : "other";
}

/** What a request differs in from a kept one, as far as it can be told; `null` where nothing of that was kept. */
export function differingMembers(request: Recognisable, kept: Fingerprint): Differing | null {
  const { members, secret } = request.material(kept.version) ?? {};
  const tags = kept.canonical.subarray(DIGEST_BYTES);
  const known = tags.length === 0 ? null : (members?.() ?? null);
  return known === null ? null : differingFrom(tags, known, { salt: kept.salt, secret: secret ?? null });
}

function equal(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}
