import fc from "fast-check";
import { parse } from "lossless-json";
import { describe, expect, test } from "vitest";
import { canonicalJson } from "../../src/core/canonical.ts";
import { type Pointer, parsePointer } from "../../src/core/pointer.ts";
import { seed } from "../support/seed.ts";
import { alike, type Document, documents, drawing, mutate, spell } from "./json-documents.ts";

describe("two documents have one canonical text exactly when they are one value", () => {
  test("however members are ordered and blanks, strings and numbers are spelled", () => {
    fc.assert(
      fc.property(
        documents,
        fc.infiniteStream(fc.nat()),
        fc.infiniteStream(fc.nat()),
        (document, one, other) => {
          expect(canonical(spell(document, drawing(one)))).toBe(canonical(spell(document, drawing(other))));
        },
      ),
      { seed: seed(), numRuns: 500 },
    );
  });

  test("and one changed, added or left out leaf gives another text, 500 times of 500", () => {
    fc.assert(
      fc.property(documents, fc.infiniteStream(fc.nat()), (document, choices) => {
        const draw = drawing(choices);
        const mutant = mutate(document, draw);
        expect(canonical(spell(mutant, draw))).not.toBe(canonical(spell(document, draw)));
      }),
      { seed: seed(), numRuns: 500 },
    );
  });

  test("as an independent parser with exact numbers sees it", () => {
    let same = 0;
    fc.assert(
      fc.property(alike, alike, fc.infiniteStream(fc.nat()), (left, right, choices) => {
        const draw = drawing(choices);
        const [one, other] = [spell(left, draw), spell(right, draw)];
        same += model(one) === model(other) ? 1 : 0;
        expect(canonical(one) === canonical(other)).toBe(model(one) === model(other));
      }),
      { seed: seed(), numRuns: 3000 },
    );
    expect(same).toBeGreaterThan(50);
  });

  test("exponents of any length add up as whole numbers do", () => {
    const long = fc.oneof(
      fc.stringMatching(/^0{0,3}[0-9]{1,40}$/),
      fc.stringMatching(/^[1-9]0{13,17}$/),
      fc.stringMatching(/^9{14,33}$/),
    );
    const sevens = (power: bigint) => (power === 0n ? "7" : `7e${power}`);
    fc.assert(
      fc.property(fc.constantFrom("", "-"), long, fc.nat({ max: 30 }), (sign, digits, zeros) => {
        const exponent = BigInt(sign + digits);
        expect(canonical(`7${"0".repeat(zeros)}e${sign}${digits}`)).toBe(sevens(exponent + BigInt(zeros)));
        expect(canonical(`0.${"0".repeat(zeros)}70E${sign}${digits}`)).toBe(
          sevens(exponent - BigInt(zeros) - 1n),
        );
      }),
      { seed: seed(), numRuns: 500 },
    );
  });

  test("the canonical text is itself a JSON document of the same structure, and its own canonical text", () => {
    fc.assert(
      fc.property(documents, fc.infiniteStream(fc.nat()), (document, choices) => {
        const text = spell(document, drawing(choices));
        const once = canonical(text);
        expect(canonical(once)).toBe(once);
        expect(JSON.parse(once)).toEqual(JSON.parse(text, (_, value) => (value === 0 ? 0 : value)));
      }),
      { seed: seed(), numRuns: 300 },
    );
  });

  test("a document with random damage is invalid exactly when JSON.parse says so", () => {
    const edits = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 2 }), fc.constantFrom(...debris)), {
      maxLength: 3,
    });
    let invalid = 0;
    fc.assert(
      fc.property(documents, fc.infiniteStream(fc.nat()), edits, (document, choices, damages) => {
        let text = spell(document, drawing(choices));
        for (const [place, removed, added] of damages) {
          const at = place % (text.length + 1);
          text = text.slice(0, at) + added + text.slice(at + removed);
        }
        invalid += isJson(text) ? 0 : 1;
        expect(canonicalJson(text).kind).toBe(isJson(text) ? "canonical" : "invalid");
      }),
      { seed: seed(), numRuns: 3000 },
    );
    expect(invalid).toBeGreaterThan(300);
  });

  test("what `ignore` points at might as well have been cut out beforehand", () => {
    const step = fc.constantFrom("a", "b", "0", "1", "*");
    const places = fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 });
    let same = 0;
    fc.assert(
      fc.property(alike, alike, places, fc.infiniteStream(fc.nat()), (left, right, steps, choices) => {
        const draw = drawing(choices);
        const ignore = steps.map((names) => `/${names.join("/")}`);
        const [one, other] = [left, right].map((document) => canonical(spell(document, draw), ignore));
        const [cutOne, cutOther] = [left, right].map((document) =>
          canonical(spell(cut(document, steps), draw)),
        );
        same += one === other ? 1 : 0;
        expect(one === other).toBe(cutOne === cutOther);
      }),
      { seed: seed(), numRuns: 2000 },
    );
    expect(same).toBeGreaterThan(50);
  });
});

function canonical(text: string, ignore: readonly string[] = []): string {
  const result = canonicalJson(text, { ignore: pointers(ignore) });
  if (result.kind === "invalid") throw new Error(`${result.reason} at ${result.at} of ${text.slice(0, 200)}`);
  return result.text;
}

function pointers(texts: readonly string[]): readonly Pointer[] {
  return texts.map((text) => {
    const parsed = parsePointer(text);
    if (parsed.kind === "invalid") throw new Error(parsed.reason);
    return parsed.pointer;
  });
}

/** What `ignore` should do, done to the model: members go, elements all become one value. */
function cut(document: Document, places: readonly (readonly string[])[]): Document {
  const below = (name: string) =>
    places.filter(([step]) => step === "*" || step === name).map((steps) => steps.slice(1));
  const goes = (name: string) => below(name).some((steps) => steps.length === 0);
  switch (document.kind) {
    case "word":
    case "number":
    case "string":
      return document;
    case "array":
      return {
        kind: "array",
        items: document.items.map((item, index) =>
          goes(String(index)) ? { kind: "string", units: "cut out" } : cut(item, below(String(index))),
        ),
      };
    case "object":
      return {
        kind: "object",
        members: document.members
          .filter(({ name }) => !goes(name))
          .map(({ name, value }) => ({ name, value: cut(value, below(name)) })),
      };
  }
}

/** The value as another parser reads it, its numbers as integers of a unit that is small enough for all of them. */
function model(text: string): string {
  const parsed = parse(text, null, { parseNumber: (digits) => ({ exact: exact(digits) }) });
  return JSON.stringify(parsed, (_, value) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

function exact(digits: string): string {
  const [, sign, whole = "", fraction = "", power = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/.exec(digits) ?? [];
  const units = BigInt(whole + fraction) * 10n ** BigInt(Number(power) - fraction.length + 100);
  return String(sign === "-" ? -units : units);
}

const debris = ["", ...',:"[]{}01-+.e\\tn \t\u0001\ufeff', "\\u", "null"];

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
