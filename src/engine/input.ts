import { canonicalJson } from "../core/canonical.ts";
import type { Member } from "../core/members.ts";
import { codec } from "./codec.ts";
import type { Material, Recognisable } from "./fingerprint.ts";
import { taggable } from "./member-tags.ts";
import { once } from "./once.ts";
import { sha256 } from "./sha256.ts";

/** The rule by which the input of a function is compared: as a value, the order of members aside. */
const VERSION = "value 1";

/** Fails on an input that is not plain data, before anything is claimed. */
export function inputFingerprint(input: unknown): Recognisable {
  const digests = valueMaterial(codec<unknown>("the input").encode(input));
  return { version: VERSION, material: (version) => (version === VERSION ? digests : null) };
}

/** The digests of an encoded value: a prefix, then JSON. */
export function valueMaterial(encoded: Uint8Array): Material {
  const canonical = once(() => canonicalText(encoded));
  return {
    raw: sha256(encoded),
    canonical: () => sha256(canonical() ?? encoded),
    members: () => membersOf(canonical()),
  };
}

function canonicalText(encoded: Uint8Array): string | null {
  const text = new TextDecoder().decode(encoded);
  const document = canonicalJson(text.slice(text.indexOf(":") + 1));
  return document.kind === "canonical" ? document.text : null;
}

function membersOf(canonical: string | null): readonly Member[] | null {
  return canonical === null ? null : taggable(canonical);
}
