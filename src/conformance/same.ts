import { AssertionError } from "node:assert/strict";
import { createHash } from "node:crypto";
import { inspect } from "node:util";

/**
 * Fails unless the two are the same, part by part and byte by byte, and says which parts are not. Whose subclass the
 * bytes are does not matter, nor in which order members stand.
 */
export function same<Value>(actual: Value, expected: Value, what: string): void {
  const [found, wanted] = [partsOf(actual), partsOf(expected)];
  const differing = [...new Set([...wanted.keys(), ...found.keys()])]
    .filter((path) => found.get(path) !== wanted.get(path))
    .map(
      (path) =>
        `${path && `${path} is `}expected ${wanted.get(path) ?? NONE}, got ${found.get(path) ?? NONE}`,
    );
  if (differing.length === 0) return;
  const message = `${what}: ${differing.slice(0, MOST_SHOWN).join("; ")}`;
  throw new AssertionError({ message, actual, expected, operator: "same" });
}

const NONE = "nothing";

/** More would hide the first, which is the one to look at. */
const MOST_SHOWN = 5;

/** Longer bytes are named by length and hash: a difference is found all the same, and can be read. */
const LONGEST_SHOWN = 256;

/** Every part of a value in words, by the path that leads to it. */
function partsOf(value: unknown, path = ""): ReadonlyMap<string, string> {
  const members = membersOf(value);
  const itself = members === null ? inWords(value) : `${members.length} ${kindOf(value)}`;
  const inner = (members ?? []).flatMap(([name, member]) => [...partsOf(member, `${path}${name}`)]);
  return new Map([[path, itself], ...inner]);
}

/** What a value is made of; `null` where it is one piece. */
function membersOf(value: unknown): readonly (readonly [name: string, member: unknown])[] | null {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return null;
  if (Array.isArray(value)) return value.map((member, n) => [`[${n}]`, member] as const);
  if (value instanceof Map)
    return [...value].map(([name, member]) => [`(${inspect(name)})`, member] as const);
  return Object.entries(value).map(([name, member]) => [`.${name}`, member] as const);
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "in a list";
  return value instanceof Map ? "in a map" : "members";
}

function inWords(value: unknown): string {
  if (!(value instanceof Uint8Array)) return inspect(value, { maxStringLength: null });
  if (value.length <= LONGEST_SHOWN) return `bytes "${Buffer.from(value).toString("hex")}"`;
  return `${value.length} bytes of SHA-256 ${createHash("sha256").update(value).digest("hex")}`;
}
