import { ConfigurationError } from "../errors.ts";
import type { Material, Recognisable } from "./fingerprint.ts";
import { once } from "./once.ts";
import { hmacSha256, sha256 } from "./sha256.ts";

/** A key of the ring; `id` goes into every record that it signs, `secret` goes nowhere. */
export interface FingerprintKey {
  /** Up to 32 letters, digits, `.`, `_` or `-`; never given to another secret again. */
  readonly id: string;
  /** At least 32 bytes from a random generator, as they are or as text. */
  readonly secret: string | Uint8Array;
}

/** The request as this process recognises it: keyed where it has a secret. */
export type Keyed = (request: Recognisable) => Recognisable;

/**
 * Keys fingerprints besides their salt: the first key signs, all of them verify. The name of a keyed fingerprint begins
 * with its key's id, and one whose key is gone cannot be verified. What was signed without a key stays valid.
 */
export function fingerprintKeyring(keys: readonly FingerprintKey[] | undefined): Keyed {
  const ring = keys === undefined ? new Map<string, Uint8Array>() : ringOf(keys);
  const [signing] = ring.keys();
  return (request) => ({
    version: signing === undefined ? request.version : `${MARK}${signing} ${request.version}`,
    material: (version) => {
      if (!version.startsWith(MARK)) return request.material(version);
      const [id = "", rule = ""] = SIGNED.exec(version)?.slice(1) ?? [];
      const secret = ring.get(id);
      const material = secret === undefined ? null : request.material(rule);
      return secret === undefined || material === null ? null : keyed(material, secret);
    },
  });
}

/** No rule's own name begins so. */
const MARK = "@";
const SIGNED = /^@([^ ]+) (.*)$/s;

const SHORTEST_SECRET_BYTES = 32;

/** What the secret is used for here it is used for nowhere else, whatever else it may be used for. */
const PURPOSE = sha256("oncekey fingerprint");

function keyed({ raw, canonical, members }: Material, secret: Uint8Array): Material {
  return {
    raw: hmacSha256(secret, raw),
    canonical: once(() => hmacSha256(secret, canonical())),
    ...(members === undefined ? {} : { members }),
    secret,
  };
}

/** No error tells anything of a secret, not even one that cannot be used. */
function ringOf(keys: readonly FingerprintKey[]): ReadonlyMap<string, Uint8Array> {
  if (!Array.isArray(keys) || keys.length === 0)
    refuse("must be a list of keys, each { id, secret }, the one that signs first; or be left out");
  const ring = new Map<string, Uint8Array>();
  for (const [index, key] of keys.entries()) {
    const { id, secret } = named(key);
    if (typeof id !== "string" || !/^[A-Za-z0-9._-]{1,32}$/.test(id))
      refuse(`must have an id of up to 32 letters, digits, ".", "_" or "-" in key ${index + 1}`);
    else if (ring.has(id)) refuse(`has two keys with the id "${id}"; records could not tell them apart`);
    else ring.set(id, purposeKey(secret, id));
  }
  return ring;
}

function named(key: unknown): { readonly id?: unknown; readonly secret?: unknown } {
  return typeof key === "object" && key !== null ? key : {};
}

function purposeKey(secret: unknown, id: string): Uint8Array {
  const bytes = typeof secret === "string" ? Buffer.from(secret) : secret;
  if (bytes instanceof Uint8Array && bytes.length >= SHORTEST_SECRET_BYTES) return hmacSha256(bytes, PURPOSE);
  throw new ConfigurationError(
    FIELD,
    `must have a secret of at least ${SHORTEST_SECRET_BYTES} random bytes, as text or Uint8Array, in key "${id}"`,
  );
}

const FIELD = "fingerprintSecret";

function refuse(reason: string): void {
  throw new ConfigurationError(FIELD, reason);
}
