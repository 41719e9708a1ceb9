import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  checkKey,
  checkOperation,
  checkPrincipal,
  lengthPrefixed,
  maxNameBytes,
} from "../../src/core/key.ts";
import { seed } from "../support/seed.ts";

describe.each([
  ["key", checkKey],
  ["principal", checkPrincipal],
  ["operation", checkOperation],
])("a %s", (noun, check) => {
  test.each([
    ["undefined", undefined],
    ["null", null],
    ["the empty string", ""],
    ["NaN", Number.NaN],
    ["an object", { a: undefined }],
    ["an empty object", {}],
    ["an array", [null, null]],
    ["a number", 0],
    ["a boolean", false],
    ["a function", () => "k"],
    ["a symbol", Symbol("k")],
    ["a string object", Object("k")],
    ["an array of one string", ["k"]],
  ])("counts as missing when it is %s", (_, value) => {
    expect(check(value)).toEqual({ kind: "missing" });
  });

  test.each([
    ["a blank", " ", "blank"],
    ["tabs and line ends", "\t\r\n", "blank"],
    ["blanks outside ASCII", "\u00a0\u3000\u2028\ufeff\u0085", "blank"],
    ["a NUL", "a\0b", "NUL"],
    ["half of a pair at the end", "a\ud83d", "surrogate"],
    ["half of a pair at the start", "\ude00a", "surrogate"],
    ["a pair the wrong way round", "\ude00\ud83d", "surrogate"],
    ["one byte too many", "x".repeat(maxNameBytes + 1), `${maxNameBytes} bytes`],
    ["one byte too many in two-byte characters", `${"é".repeat(512)}x`, `${maxNameBytes} bytes`],
    ["one byte too many in three-byte characters", `${"€".repeat(341)}xx`, `${maxNameBytes} bytes`],
    ["one byte too many in four-byte characters", `${"😀".repeat(256)}x`, `${maxNameBytes} bytes`],
  ])("is invalid with %s", (_, value, reason) => {
    expect(check(value)).toEqual({ kind: "invalid", reason: expect.stringContaining(reason) });
    expect(check(value)).toEqual({ kind: "invalid", reason: expect.stringContaining(`The ${noun} `) });
  });

  test.each([
    ["blanks around it", " a "],
    ["a line end in it", "a\nb"],
    ["another case", "ABC"],
    ["a letter and its accent apart", "e\u0301"],
    ["a pair", "😀"],
    ["a character that is no white space but shows nothing", "\u200b"],
    ["the longest in one-byte characters", "x".repeat(maxNameBytes)],
    ["the longest in two-byte characters", "é".repeat(512)],
    ["the longest in three-byte characters", `${"€".repeat(341)}x`],
    ["the longest in four-byte characters", "😀".repeat(256)],
  ])("is taken as given with %s", (_, value) => {
    expect(check(value)).toEqual({ kind: "valid", value });
  });
});

describe("joining strings with their lengths", () => {
  const part = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 4 }),
    fc.stringMatching(/^[0-9:~d8]{0,5}$/),
    fc
      .array(fc.constantFrom(0xd800, 0xd801, 0xdc00, 0x30, 0xfffd), { maxLength: 3 })
      .map((units) => String.fromCharCode(...units)),
  );
  const parts = fc.array(part, { maxLength: 4 });

  test("can be undone, so that no two lists give one text", () => {
    fc.assert(
      fc.property(parts, (list) => {
        expect(separated(lengthPrefixed(list))).toEqual(list);
      }),
      { seed: seed(), numRuns: 2000 },
    );
  });

  test("gives text whose UTF-8 bytes are as distinct as the lists", () => {
    fc.assert(
      fc.property(parts, (list) => {
        const text = lengthPrefixed(list);
        expect(Buffer.from(text, "utf8").toString("utf8")).toBe(text);
      }),
      { seed: seed(), numRuns: 2000 },
    );
  });

  test.each([
    [["a", "b"], ["ab"]],
    [
      ["a", "b"],
      ["ab", ""],
    ],
    [[], [""]],
    [["1:a"], ["", "a"]],
    [
      ["ab", "c"],
      ["a", "bc"],
    ],
    [["\ud800"], ["\ud801"]],
    [["\ud800"], ["\ufffd"]],
    [["\ud800"], ["d800"]],
    [["A"], ["a"]],
    [["a "], ["a"]],
  ])("keeps %j and %j apart", (left, right) => {
    expect(lengthPrefixed(left)).not.toBe(lengthPrefixed(right));
  });

  test("keeps its spelling, for identities and downstream keys were made with it", () => {
    expect(lengthPrefixed(["alice", "", "😀", "\ud800x"])).toBe("5:alice0:2:😀8~d8000078");
  });
});

/** Reads what `lengthPrefixed` wrote. */
function separated(text: string): readonly string[] {
  const parts: string[] = [];
  let at = 0;
  while (at < text.length) {
    const [prefix = "", length = "", kind] = /^(\d+)([:~])/.exec(text.slice(at)) ?? [];
    const start = at + prefix.length;
    at = start + Number(length);
    const part = text.slice(start, at);
    parts.push(
      kind === ":"
        ? part
        : part.replaceAll(/.{4}/g, (unit) => String.fromCharCode(Number.parseInt(unit, 16))),
    );
  }
  return parts;
}
