import type { SeededRandom } from "../support/seed.ts";

/** A JSON document; numbers are spelled, so that nothing rounds them. */
export type Json =
  | { readonly kind: "leaf"; readonly spelling: string }
  | { readonly kind: "array"; readonly items: readonly Json[] }
  | { readonly kind: "object"; readonly members: readonly (readonly [name: string, value: Json])[] };

/** Draws a document with at least one leaf. */
export function documentOf(random: SeededRandom, depth = 4): Json {
  const shape = depth === 0 ? 0 : random.below(3);
  if (shape === 0) return { kind: "leaf", spelling: leaf(random) };
  const length = 1 + random.below(4);
  if (shape === 1) {
    return { kind: "array", items: Array.from({ length }, () => documentOf(random, depth - 1)) };
  }
  const members = Array.from({ length }, (_, index) => {
    return [`${random.pick(NAMES)}${index}`, documentOf(random, depth - 1)] as const;
  });
  return { kind: "object", members };
}

/** The same document with one leaf of another value, or one member or element more or less. */
export function changed(document: Json, random: SeededRandom): Json {
  switch (document.kind) {
    case "leaf":
      return { kind: "leaf", spelling: otherLeaf(document.spelling, random) };
    case "array":
      return { kind: "array", items: changedList(document.items, random, (item) => changed(item, random)) };
    case "object": {
      const members = changedList(document.members, random, ([name, value]) => {
        return random.below(4) === 0
          ? ([`${name}x`, value] as const)
          : ([name, changed(value, random)] as const);
      });
      return { kind: "object", members };
    }
  }
}

export function spelled(document: Json): string {
  switch (document.kind) {
    case "leaf":
      return document.spelling;
    case "array":
      return `[${document.items.map(spelled).join(",")}]`;
    case "object":
      return `{${document.members.map(([name, value]) => `${JSON.stringify(name)}:${spelled(value)}`).join(",")}}`;
  }
}

function changedList<T>(list: readonly T[], random: SeededRandom, change: (item: T) => T): readonly T[] {
  const at = random.below(list.length);
  if (random.below(6) === 0) return list.filter((_, index) => index !== at);
  return list.map((item, index) => (index === at ? change(item) : item));
}

/** Some are nearly others; none of them are equal values. */
const LEAVES: readonly string[] = [
  ...["true", "false", "null", "0", "1", "-1", "1.5", "1e2", "9007199254740992", "9007199254740993"],
  ...["0.1", "0.1000000000000000001", "1e400", "1e401", '""', '"1"', '"null"', '"a"', '"A"', '"\\u00e9"'],
  ...['"e\\u0301"', '"\\ud800"', '"\\udfff"', '"\\u0000"', '" a"', "[]", "{}", "[[]]", "[{}]"],
];

const NAMES: readonly string[] = ["a", "amount", "", "__proto__", "\u00e9", "/", "~"];

function leaf(random: SeededRandom): string {
  return random.pick(LEAVES);
}

function otherLeaf(spelling: string, random: SeededRandom): string {
  return random.pick(LEAVES.filter((each) => each !== spelling));
}
