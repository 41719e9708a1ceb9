import { canonicalJson } from "../core/canonical.ts";
import { codec } from "./codec.ts";
import type { Material, Recognisable } from "./fingerprint.ts";
import { sha256 } from "./sha256.ts";

/** The rule by which the input of a function is compared: as a value, the order of members aside. */
const VERSION = "value 1";

/** Fails on an input that is not plain data, before anything is claimed. */
export function inputFingerprint(input: unknown): Recognisable {
  const bytes = codec<unknown>("the input").encode(input);
  const digests: Material = { raw: sha256(bytes), canonical: () => sha256(canonical(bytes)) };
  return { version: VERSION, material: (version) => (version === VERSION ? digests : null) };
}

/** The encoding is a prefix, then JSON. */
function canonical(bytes: Uint8Array): Uint8Array | string {
  const text = new TextDecoder().decode(bytes);
  const document = canonicalJson(text.slice(text.indexOf(":") + 1));
  return document.kind === "canonical" ? document.text : bytes;
}
