import fc from "fast-check";

/** A JSON document as a model from which many spellings are made. `units` are UTF-16 code units. */
export type Document =
  | { readonly kind: "word"; readonly word: "true" | "false" | "null" }
  | { readonly kind: "number"; readonly mantissa: bigint; readonly exponent: number }
  | { readonly kind: "string"; readonly units: string }
  | { readonly kind: "array"; readonly items: readonly Document[] }
  | { readonly kind: "object"; readonly members: readonly Member[] };

type Member = { readonly name: string; readonly value: Document };

function documentsOf(
  leaf: fc.Arbitrary<Document>,
  name: fc.Arbitrary<string>,
  size: number,
): fc.Arbitrary<Document> {
  const { document } = fc.letrec<{ document: Document }>((tie) => ({
    document: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      leaf,
      fc.record({
        kind: fc.constant("array" as const),
        items: fc.array(tie("document"), { maxLength: size }),
      }),
      fc.record({
        kind: fc.constant("object" as const),
        members: fc.uniqueArray(fc.record({ name, value: tie("document") }), {
          maxLength: size,
          selector: (member) => member.name,
        }),
      }),
    ),
  }));
  return document;
}

const units = fc
  .array(fc.oneof(fc.constantFrom(0x22, 0x5c, 0x2f, 0x0a, 0xd83d, 0xde00, 0x61), fc.nat({ max: 0xffff })), {
    maxLength: 6,
  })
  .map((codes) => String.fromCharCode(...codes));

const word = fc.constantFrom("true" as const, "false" as const, "null" as const);

const leaves: fc.Arbitrary<Document> = fc.oneof(
  fc.record({ kind: fc.constant("word" as const), word }),
  fc.record({
    kind: fc.constant("number" as const),
    mantissa: fc.oneof(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), fc.bigInt({ min: -3n, max: 3n })),
    exponent: fc.integer({ min: -40, max: 40 }),
  }),
  fc.record({ kind: fc.constant("string" as const), units }),
);

/** Documents with anything in them that JSON can hold. */
export const documents: fc.Arbitrary<Document> = documentsOf(
  leaves,
  fc.oneof(units, fc.constant("__proto__")),
  5,
);

/** So small a vocabulary that two documents are often nearly, and sometimes wholly, the same. */
export const alike: fc.Arbitrary<Document> = documentsOf(
  fc.oneof(
    fc.record({
      kind: fc.constant("number" as const),
      mantissa: fc.constantFrom(0n, 1n, 10n, -1n),
      exponent: fc.constantFrom(0, -1),
    }),
    fc.record({ kind: fc.constant("string" as const), units: fc.constantFrom("1", "\ud800", "") }),
    fc.record({ kind: fc.constant("word" as const), word: fc.constant("null" as const) }),
  ),
  fc.constantFrom("a", "b", "0"),
  2,
);

/** Chooses a whole number below a limit. */
export type Draw = (limit: number) => number;

/** Chooses as a stream of random numbers says. */
export function drawing(stream: fc.Stream<number>): Draw {
  return (limit) => (stream.next().value ?? 0) % limit;
}

/** Writes a document in one of its many spellings. */
export function spell(document: Document, draw: Draw): string {
  return blank(draw) + spellValue(document, draw) + blank(draw);
}

function spellValue(document: Document, draw: Draw): string {
  switch (document.kind) {
    case "word":
      return document.word;
    case "number":
      return spellNumber(document, draw);
    case "string":
      return spellString(document.units, draw);
    case "array":
      return `[${document.items.map((item) => spell(item, draw)).join(",") || blank(draw)}]`;
    case "object":
      return `{${
        shuffled(document.members, draw)
          .map(
            ({ name, value }) =>
              `${blank(draw)}${spellString(name, draw)}${blank(draw)}:${spell(value, draw)}`,
          )
          .join(",") || blank(draw)
      }}`;
  }
}

function blank(draw: Draw): string {
  return draw(4) > 0 ? "" : ([" ", "\t", "\n", "\r", " \r\n "].slice(draw(5))[0] ?? "");
}

function shuffled(members: readonly Member[], draw: Draw): readonly Member[] {
  return members
    .map((member) => ({ member, order: draw(1000) }))
    .sort((a, b) => a.order - b.order)
    .map(({ member }) => member);
}

/** Puts the point at a random place and makes up for it in the exponent. */
function spellNumber({ mantissa, exponent }: { mantissa: bigint; exponent: number }, draw: Draw): string {
  const added = draw(4);
  const digits = String(mantissa < 0n ? -mantissa : mantissa) + "0".repeat(added);
  const behind = draw(digits.length + 3);
  const padded = digits.padStart(behind + 1, "0");
  const whole = padded.slice(0, padded.length - behind).replace(/^0+(?=[0-9])/, "");
  const fraction = behind === 0 ? "" : `.${padded.slice(padded.length - behind)}`;
  const sign = mantissa < 0n || (mantissa === 0n && draw(2) === 0) ? "-" : "";
  return `${sign}${whole}${fraction}${spellExponent(exponent - added + behind, draw)}`;
}

function spellExponent(power: number, draw: Draw): string {
  if (power === 0 && draw(2) === 0) return "";
  const plus = draw(2) === 0 ? "+" : "";
  return `${draw(2) === 0 ? "e" : "E"}${power < 0 ? "-" : plus}${"0".repeat(draw(3))}${Math.abs(power)}`;
}

function spellString(text: string, draw: Draw): string {
  const short: Readonly<Record<string, string>> = {
    "\n": "\\n",
    "\t": "\\t",
    "/": "\\/",
    "\\": "\\\\",
    '"': '\\"',
  };
  const spelled = Array.from({ length: text.length }, (_, index) => {
    const unit = text.charAt(index);
    const shortly = short[unit];
    if (shortly !== undefined && draw(2) === 0) return shortly;
    if (unit >= " " && unit !== '"' && unit !== "\\" && draw(3) > 0) return unit;
    const hex = unit.charCodeAt(0).toString(16).padStart(4, "0");
    return `\\u${draw(2) === 0 ? hex : hex.toUpperCase()}`;
  });
  return `"${spelled.join("")}"`;
}

/** Changes one random leaf into another value, or adds or takes away one member or element. */
export function mutate(document: Document, draw: Draw): Document {
  switch (document.kind) {
    case "word":
      return { kind: "word", word: document.word === "null" ? "false" : "null" };
    case "number":
      return { ...document, mantissa: document.mantissa * 10n ** 25n + 1n, exponent: document.exponent - 25 };
    case "string":
      return { kind: "string", units: draw(2) === 0 ? `${document.units}\ud800` : `\0${document.units}` };
    case "array": {
      const { items } = document;
      const at = draw(items.length + 1);
      const item = items[at];
      if (item === undefined) return { kind: "array", items: [...items, { kind: "word", word: "null" }] };
      return {
        kind: "array",
        items: draw(4) === 0 ? items.toSpliced(at, 1) : items.with(at, mutate(item, draw)),
      };
    }
    case "object": {
      const { members } = document;
      const at = draw(members.length + 1);
      const member = members[at];
      if (member === undefined) {
        const name = `${members.map((other) => other.name).join("")}+`;
        return { kind: "object", members: [...members, { name, value: { kind: "word", word: "null" } }] };
      }
      const changed = { name: member.name, value: mutate(member.value, draw) };
      return {
        kind: "object",
        members: draw(4) === 0 ? members.toSpliced(at, 1) : members.with(at, changed),
      };
    }
  }
}
