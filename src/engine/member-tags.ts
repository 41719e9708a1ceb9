import { hash } from "node:crypto";
import { type Member, topLevelMembers } from "../core/members.ts";
import { hmacSha256, sha256 } from "./sha256.ts";

/** What of two requests differs, as far as their short tags tell. */
export interface Differing {
  /** Members of this request that the first one had otherwise, or had not. */
  readonly members: readonly string[];
  /** How many the first one had that this one has not: their names are not kept. */
  readonly missing: number;
}

/** Documents with more members, or longer ones, are compared as a whole only: a claim must stay cheap. */
const MOST_MEMBERS = 32;
const MOST_CHARACTERS = 65_536;

/** The members that a canonical document is tagged by, or `null` where it is compared as a whole only. */
export function taggable(canonical: string): readonly Member[] | null {
  return canonical.length > MOST_CHARACTERS ? null : topLevelMembers(canonical, MOST_MEMBERS);
}

/**
 * A tag for each member, under the record's salt and the secret where there is one. One byte of a value is enough to
 * see 255 changes of 256, and too little for whoever reads the store to find the value out by trying.
 */
export function memberTags(
  members: readonly Member[],
  salt: Uint8Array,
  secret: Uint8Array | null,
): Uint8Array {
  const key = tagKey(salt, secret);
  const tags = members.map((member) => nameTag(key, member) + valueTag(key, member));
  return Buffer.from(FORMAT + tags.join(""), "hex");
}

/** What `members` differ in from those of kept tags, or `null` where these are of another release. */
export function differingFrom(
  kept: Uint8Array,
  members: readonly Member[],
  { salt, secret }: { readonly salt: Uint8Array; readonly secret: Uint8Array | null },
): Differing | null {
  const written = Buffer.from(kept).toString("hex");
  if (!written.startsWith(FORMAT) || (written.length - FORMAT.length) % TAG_DIGITS !== 0) return null;
  const left = written.slice(FORMAT.length).match(A_TAG) ?? [];
  const key = tagKey(salt, secret);
  const differing = members.filter((member) => {
    const tag = nameTag(key, member) + valueTag(key, member);
    return !taken(left, (each) => each === tag);
  });
  // A changed member is no missing one.
  for (const member of differing) taken(left, (each) => each.startsWith(nameTag(key, member)));
  return { members: differing.map(shown), missing: left.length };
}

/** Tells these tags from those of a later release. */
const FORMAT = "01";

/** In hex: two bytes tell which member it is, one tells its value. */
const NAME_DIGITS = 4;
const VALUE_DIGITS = 2;
const TAG_DIGITS = NAME_DIGITS + VALUE_DIGITS;
const A_TAG = /.{6}/g;

/** A client may send names of any length, and events are read by people. */
const LONGEST_NAME = 100;

function tagKey(salt: Uint8Array, secret: Uint8Array | null): string {
  return Buffer.from(secret === null ? salt : hmacSha256(secret, sha256(salt))).toString("hex");
}

function nameTag(key: string, { quoted }: Member): string {
  return hash("sha256", `${key}n${quoted}`, "hex").slice(0, NAME_DIGITS);
}

function valueTag(key: string, { text }: Member): string {
  return hash("sha256", `${key}v${text}`, "hex").slice(0, VALUE_DIGITS);
}

/** Takes the first of these out, where there is one. */
function taken(tags: string[], isIt: (tag: string) => boolean): boolean {
  const at = tags.findIndex(isIt);
  if (at >= 0) tags.splice(at, 1);
  return at >= 0;
}

function shown({ quoted }: Member): string {
  const name = String(JSON.parse(quoted));
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name;
}
