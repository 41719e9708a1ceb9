import fc from "fast-check";
import { serializeItem } from "structured-headers";
import { describe, expect, test } from "vitest";
import { maxKeyLength, parseKeyHeader } from "../../src/http/key-header.ts";
import { seed } from "../support/seed.ts";

const longest = "k".repeat(maxKeyLength);

describe("the key of a request", () => {
  test("is missing only where there is no header line at all", () => {
    expect(parseKeyHeader([])).toEqual({ kind: "missing" });
    expect(parseKeyHeader([], { strict: true })).toEqual({ kind: "missing" });
  });

  test.each([
    ["bare", "abc", "abc"],
    ["quoted, as the same key", '"abc"', "abc"],
    ["with optional white space around it", " \t abc \t ", "abc"],
    ["quoted, with optional white space around it", ' \t"abc"\t ', "abc"],
    ["quoted, with its escapes read and its parameter ignored", '"a\\"b";p=1', 'a"b'],
    ["quoted, with parameters of every kind ignored", '"a";p;q="x, y";r=?0;s=:AAE=:;t=tok;u=1.5', "a"],
    ["quoted, with a backslash", '"a\\\\b"', "a\\b"],
    ["quoted, with a comma", '"a,b"', "a,b"],
    ["quoted, with blanks around it, which are part of it", '" a "', " a "],
    ["of a length of 255", longest, longest],
    ["of a length of 255 inside its quotes", `"${longest}"`, longest],
    ["of a length of 255 without its escapes", `"${'\\"'.repeat(maxKeyLength)}"`, '"'.repeat(maxKeyLength)],
  ])("may be %s", (_, line, key) => {
    expect(parseKeyHeader([line])).toEqual({ kind: "key", key });
    const strictly = parseKeyHeader([line], { strict: true });
    expect(strictly).toEqual(
      line.includes('"') ? { kind: "key", key } : { kind: "invalid", reason: expect.any(String) },
    );
  });

  test.each([
    ["a blank in it", "a b"],
    ["a semicolon in it", "abc;p=1"],
    ["a backslash in it", "a\\b"],
    ["a single quote", "'abc'"],
    ["another case", "ABC"],
    ["the look of a structured number", "001"],
    ["every character of printable ASCII but quote and comma", printableAscii().replace(/[",]/g, "").trim()],
  ])("is taken as it stands when bare, with %s", (_, line) => {
    expect(parseKeyHeader([line])).toEqual({ kind: "key", key: line });
  });
});

describe("a key header is invalid, strictly or not,", () => {
  test.each([
    ["with two lines", ["abc", "def"], "exactly one"],
    ["with two equal lines", ["abc", "abc"], "exactly one"],
    ["with two lines, both empty", ["", ""], "exactly one"],
    ["with two quoted lines", ['"abc"', '"def"'], "exactly one"],
    ["with two quoted lines that something joined", ['"abc", "def"'], "quoting"],
    ["with parameters between two joined lines", ['"abc";p=1, "def"'], "quoting"],
    ["when it is empty", [""], "empty"],
    ["when it is blank", ["   "], "empty"],
    ["when it is nothing but tabs", ["\t"], "empty"],
    ["when the quoted key is empty", ['""'], "blank"],
    ["when the quoted key is blank", ['"  "'], "blank"],
    ["with a tab inside the quotes", ['"a\tb"'], "printable ASCII"],
    ["with a line end", ["a\nb"], "printable ASCII"],
    ["with a NUL", ["\0"], "printable ASCII"],
    ["with DEL", ["a\x7f"], "printable ASCII"],
    ["with a letter outside ASCII", ["clé"], "printable ASCII"],
    ["with white space outside ASCII", ["\u00a0"], "printable ASCII"],
    ["with a letter outside ASCII inside the quotes", ['"clé"'], "printable ASCII"],
    ["with 256 characters inside the quotes", [`"${longest}k"`], "256 characters"],
    ["without the closing quote", ['"abc'], "quoting"],
    ["with the closing quote escaped", ['"abc\\"'], "quoting"],
    ["with something behind the closing quote", ['"a"b'], "quoting"],
    ["with a blank before its parameters", ['"a" ;p=1'], "quoting"],
    ["with a parameter that is none", ['"a";P=1'], "quoting"],
    ["with a parameter that is cut off", ['"a";p='], "quoting"],
    ["with an escape that does not exist", ['"a\\b"'], "quoting"],
    ["with one quote only", ['"'], "quoting"],
  ])("%s", (_, lines, reason) => {
    expect(parseKeyHeader(lines)).toEqual({ kind: "invalid", reason: expect.stringContaining(reason) });
    expect(parseKeyHeader(lines, { strict: true }).kind).toBe("invalid");
  });

  test.each([
    ["with a tab in it", "a\tb", "printable ASCII"],
    ["with a comma", "abc,def", "comma"],
    ["with two lines that something joined", "abc, def", "comma"],
    ["with 256 characters", `${longest}k`, "256 characters"],
    ["without the opening quote", 'abc"', "double quote"],
    ["with a quote in the middle", 'a"b', "double quote"],
    ["with quotes in the middle", 'a"b"c', "double quote"],
  ])("%s when it is bare", (_, line, reason) => {
    expect(parseKeyHeader([line])).toEqual({ kind: "invalid", reason: expect.stringContaining(reason) });
    expect(parseKeyHeader([line], { strict: true }).kind).toBe("invalid");
  });
});

describe("whatever the header holds", () => {
  const key = fc.stringMatching(/^[ -~]{1,255}$/).filter((text) => text.trim() !== "");
  const space = fc.stringMatching(/^[ \t]{0,3}$/);

  test("every key of printable ASCII survives its quoted form, in both modes", () => {
    fc.assert(
      fc.property(key, space, space, fc.boolean(), (text, before, after, strict) => {
        const line = `${before}${serializeItem(text, new Map([["p", 1]]))}${after}`;
        expect(parseKeyHeader([line], { strict })).toEqual({ kind: "key", key: text });
      }),
      { seed: seed(), numRuns: 500 },
    );
  });

  test("a bare key is itself or refused", () => {
    fc.assert(
      fc.property(key, space, space, (text, before, after) => {
        const bare = text.trim();
        fc.pre(!bare.startsWith('"'));
        const result = parseKeyHeader([before + bare + after]);
        expect(result.kind === "key" ? result.key : result.kind).toBe(/[",]/.test(bare) ? "invalid" : bare);
      }),
      { seed: seed(), numRuns: 500 },
    );
  });

  test("no key leaves that breaks the rules, and the same lines get the same verdict and words", () => {
    const line = fc.oneof(
      fc.string({ unit: "binary", maxLength: 300 }),
      fc.stringMatching(/^[" ,;=\\abp1\t]{0,12}$/),
      fc.stringMatching(/^"[" ,;=\\abp1]{0,300}"$/),
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 2 }), fc.boolean(), (lines, strict) => {
        const result = parseKeyHeader(lines, { strict });
        expect(parseKeyHeader([...lines], { strict })).toEqual(result);
        if (lines.length !== 1) expect(result.kind).toBe(lines.length === 0 ? "missing" : "invalid");
        else expect(result.kind).not.toBe("missing");
        if (result.kind === "key") expect(result.key).toMatch(/^(?=.*[!-~])[ -~]{1,255}$/);
      }),
      { seed: seed(), numRuns: 3000 },
    );
  });
});

function printableAscii(): string {
  return Array.from({ length: 0x7f - 0x20 }, (_, index) => String.fromCharCode(0x20 + index)).join("");
}
