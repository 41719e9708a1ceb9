import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto";
import type { Identity } from "../../core/record.ts";
import { isSealed, keyIdOf, SEALED_MARK, VERSION_AT } from "../../core/sealed.ts";
import { ConfigurationError, RecordCorrupt } from "../../errors.ts";
import { identityText } from "../codec.ts";

/** A key of a ring. Two of a ring never share an id, and the secret of an id never changes. */
export interface SealingKey {
  /** Stands readable in whatever it sealed: 1 to 64 printable ASCII characters without blanks. */
  readonly id: string;
  /** At least 32 bytes (of UTF-8, where it is text) from a random source: `openssl rand -base64 32`. */
  readonly secret: string | Uint8Array;
}

/** Where a value belongs; sealed for one place, it is opened in no other. */
export interface Place {
  readonly identity: Identity;
  /** What of the record it is. */
  readonly name: string;
}

export type Opened =
  | { readonly kind: "opened"; readonly value: Uint8Array }
  /** Its key is not in the ring, or a later release wrote it. */
  | { readonly kind: "lost" };

export interface Ring {
  readonly seal: (value: Uint8Array, place: Place) => Uint8Array;
  /** Throws `RecordCorrupt` where a key of the ring says that these are not the bytes it sealed for this place. */
  readonly open: (sealed: Uint8Array, place: Place) => Opened;
}

/**
 * AES-256-GCM (NIST SP 800-38D) with random nonces of 96 bits. The first key seals, all open. Each record has a key of its
 * own, derived from the ring's (HKDF, RFC 5869), so that no key ever seals so much that nonces could meet.
 */
export function keyRing(keys: readonly SealingKey[]): Ring {
  const [first, ...others] = checked(keys).map(ringKey);
  if (first === undefined) throw new ConfigurationError("keys", NONE);
  const byId = new Map([first, ...others].map((key) => [key.id, key]));
  return {
    seal: (value, place) => sealed(first, value, place),
    open: (value, place) => {
      const parts = partsOf(value, place);
      const key = parts === null ? undefined : byId.get(parts.id);
      if (parts === null || key === undefined) return { kind: "lost" };
      return { kind: "opened", value: opened(key, parts, place) };
    },
  };
}

interface RingKey {
  readonly id: string;
  /** What every sealed value of this key begins with: mark, version, and the id behind its length. */
  readonly head: Uint8Array;
  readonly ofRecord: (identity: Identity) => Uint8Array;
}

const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = "aes-256-gcm";
const SIZES = { authTagLength: TAG_BYTES };

const LEAST_SECRET_BYTES = 32;
const NONE = "must hold at least one key: [{ id, secret }], the one that seals first";

function checked(keys: unknown): readonly SealingKey[] {
  if (!Array.isArray(keys)) throw new ConfigurationError("keys", NONE);
  const ids = new Set<unknown>();
  for (const [index, key] of keys.entries()) {
    const { id, secret } = Object(key);
    if (typeof id !== "string" || !/^[!-~]{1,64}$/.test(id))
      throw new ConfigurationError(
        `keys[${index}].id`,
        "must be 1 to 64 printable ASCII characters without blanks",
      );
    if (ids.has(id)) throw new ConfigurationError(`keys[${index}].id`, `is there twice: ${id}`);
    ids.add(id);
    const isKind = typeof secret === "string" || secret instanceof Uint8Array;
    if (!isKind || Buffer.byteLength(secret) < LEAST_SECRET_BYTES)
      throw new ConfigurationError(
        `keys[${index}].secret`,
        `must be at least ${LEAST_SECRET_BYTES} random bytes, or text of as many (openssl rand -base64 32)`,
      );
  }
  return keys;
}

function ringKey({ id, secret }: SealingKey): RingKey {
  const pseudorandom = new Uint8Array(hkdfSync("sha256", secret, "", "oncekey sealed 1", 32));
  const derived = new WeakMap<Identity, Uint8Array>();
  return {
    id,
    head: Uint8Array.from([...SEALED_MARK, VERSION, id.length, ...Buffer.from(id)]),
    ofRecord: (identity) => {
      const known = derived.get(identity);
      if (known !== undefined) return known;
      const info = Buffer.from(identityText(identity), "utf16le");
      const key = createHmac("sha256", pseudorandom).update(info).update(FIRST_BLOCK).digest();
      derived.set(identity, key);
      return key;
    },
  };
}

/** The counter of HKDF's one block. */
const FIRST_BLOCK = Uint8Array.of(1);

function sealed(key: RingKey, value: Uint8Array, place: Place): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key.ofRecord(place.identity), nonce, SIZES);
  cipher.setAAD(boundTo(key, place));
  const parts = [key.head, nonce, cipher.update(value), cipher.final(), cipher.getAuthTag()];
  return plain(Buffer.concat(parts));
}

/** What the tag holds together with the value: how it was sealed, whose record it is of, and what of it. */
function boundTo({ head }: RingKey, { identity, name }: Place): Uint8Array {
  // UTF-16 tells any two strings apart; UTF-8 would make one of all damaged ones.
  return Buffer.concat([head, Buffer.from(`${identityText(identity)}${name}`, "utf16le")]);
}

interface Parts {
  readonly id: string;
  readonly nonce: Uint8Array;
  readonly value: Uint8Array;
  readonly tag: Uint8Array;
}

/** `null` where a later release may know how to read it. */
function partsOf(value: Uint8Array, { name }: Place): Parts | null {
  if (!isSealed(value)) throw new RecordCorrupt(`its ${whatOf(name)} is not the sealed one that was kept`);
  if (value[VERSION_AT] !== VERSION) return null;
  const id = keyIdOf(value);
  const nonceAt = VERSION_AT + 2 + id.length;
  const valueAt = nonceAt + NONCE_BYTES;
  const tagAt = value.length - TAG_BYTES;
  if (tagAt < valueAt) throw new RecordCorrupt(`its ${whatOf(name)} was cut`);
  return {
    id,
    nonce: value.subarray(nonceAt, valueAt),
    value: value.subarray(valueAt, tagAt),
    tag: value.subarray(tagAt),
  };
}

function opened(key: RingKey, { nonce, value, tag }: Parts, place: Place): Uint8Array {
  const decipher = createDecipheriv(CIPHER, key.ofRecord(place.identity), nonce, SIZES);
  decipher.setAAD(boundTo(key, place));
  decipher.setAuthTag(tag);
  try {
    return plain(Buffer.concat([decipher.update(value), decipher.final()]));
  } catch {
    throw new RecordCorrupt(
      `its ${whatOf(place.name)} was altered or sealed for another record, or the secret of the key "${key.id}" is not the one it was`,
    );
  }
}

/** The first word of a place's name; what follows may be the user's. */
function whatOf(name: string): string {
  return name.split(" ", 1)[0] ?? name;
}

function plain(value: Uint8Array): Uint8Array {
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}
