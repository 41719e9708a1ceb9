import { describe, expect, test } from "vitest";
import { canonicalJson } from "../../src/core/canonical.ts";
import { type Pointer, parsePointer } from "../../src/core/pointer.ts";

describe("two documents have one canonical text exactly when they are one value", () => {
  test.each([
    ["1", "1.0"],
    ["1", "1e0"],
    ["1", "10e-1"],
    ["1", "0.01E+2"],
    ["-0", "0"],
    ["-0.0e-7", "0e99999999999999999999"],
    ["1e1000000000", "10e999999999"],
    ["1e9007199254740993", "0.1e9007199254740994"],
    ["1e-9007199254740993", "10e-9007199254740994"],
    ["1e1000000000000000", "10e999999999999999"],
    ["0.1e1000000000000000", "1e999999999999999"],
    ["1e-1000000000000000", "0.1e-999999999999999"],
    ["1e0000000000000000000002", "100"],
    ['"a"', '"\\u0061"'],
    ['"/"', '"\\/"'],
    ['"\\ud83d\\ude00"', '"😀"'],
    ['"\\uD800"', '"\\ud800"'],
    ['{"a":1,"b":{"c":2,"d":[1,2]}}', ' {"b" :{"d":[ 1,2],\n"c":2},\r\t"a":1}'],
    ['[{"x":1,"y":2}]', '[{"y":2,"x":1}]'],
    ['{"__proto__":1,"a":2}', '{"a":2,"__proto__":1}'],
    ['{"é":1,"z":2}', '{"z":2,"\\u00e9":1}'],
  ])("%s equals %s", (left, right) => {
    expect(canonical(left)).toBe(canonical(right));
  });

  test.each([
    ["9007199254740992", "9007199254740993"],
    ["1", "1.0000000000000000001"],
    ["1", "-1"],
    ["1", "10"],
    ["1e9007199254740992", "1e9007199254740993"],
    ["1e400", "1e401"],
    ["1e-400", "0"],
    ["1", '"1"'],
    ["null", '"null"'],
    ['{"a":null}', "{}"],
    ["[null]", "[]"],
    ["[]", "{}"],
    ["[1,2]", "[2,1]"],
    ["[[1],2]", "[[1,2]]"],
    ['"é"', '"e\\u0301"'],
    ['"a"', '"A"'],
    ['"\\ud800"', '"\\ud801"'],
    ['"\\ud800"', '"\\ufffd"'],
    ['"\\ud800"', '"\\\\ud800"'],
    ['"\\ude00\\ud83d"', '"😀"'],
    ['{"a":1,"a":2}', '{"a":2}'],
    ['{"a":1,"a":2}', '{"a":1}'],
    ['{"a":1,"a":2}', '{"a":2,"a":1}'],
    ['{"a":1,"a":1}', '{"a":1}'],
    ['{"a":1,"b":2}', '{"a":2,"b":1}'],
    ['{"__proto__":1}', "{}"],
  ])("%s differs from %s", (left, right) => {
    expect(canonical(left)).not.toBe(canonical(right));
  });
});

describe("the canonical text", () => {
  test("is well-formed, so that its UTF-8 bytes keep lone surrogates apart", () => {
    expect(canonical('{"\\udc00":"\\ud800"}')).not.toMatch(/\p{Surrogate}/u);
    expect(canonical('"\ud800"')).not.toMatch(/\p{Surrogate}/u);
    expect(canonical('"\ud800"')).toBe(canonical('"\\ud800"'));
  });

  test("keeps repeated members together and in their order", () => {
    expect(canonical('{"a":1,"b":[],"a":2,"A":"\u007f"}')).toBe('{"A":"\u007f","a":1,"a":2,"b":[]}');
  });

  test("never writes an exponent out", () => {
    expect(canonical("-120.50e1000000000")).toBe("-1205e999999999");
  });
});

describe("what is no JSON document is invalid, never an exception", () => {
  test.each([
    ["", 0],
    ["  ", 2],
    ["\ufeff1", 0],
    ["1 2", 2],
    ["01", 1],
    ["-", 1],
    ["-01", 2],
    ["+1", 0],
    [".5", 0],
    ["1.", 2],
    ["1.e1", 2],
    ["1e", 2],
    ["1e+", 3],
    ["NaN", 0],
    ["Infinity", 0],
    ["-Infinity", 1],
    ["nul", 0],
    ["[1,]", 3],
    ["[,1]", 1],
    ["[1 2]", 3],
    ["[1}", 2],
    ["[", 1],
    ["]", 0],
    ['{"a":1,}', 7],
    ['{"a"}', 4],
    ["{a:1}", 1],
    ["{1:1}", 1],
    ['{"a":1', 6],
    ["'a'", 0],
    ['"a', 2],
    ['"\t"', 1],
    ['"\u0000"', 1],
    ['"\u001f"', 1],
    ['"\\x41"', 1],
    ['"\\u12g4"', 1],
    ['"\\u12', 1],
    ['"\\', 1],
    ["/* a */1", 0],
    ["\u00a01", 0],
    ["1\u2028", 1],
  ])("%j, at %i", (text, at) => {
    expect(canonicalJson(text)).toEqual({ kind: "invalid", at, reason: expect.stringMatching(/\w/) });
    expect(() => JSON.parse(text)).toThrow(SyntaxError);
  });

  test("however deep it is nested", () => {
    const depth = 100_000;
    const array = "[".repeat(depth) + "]".repeat(depth);
    const object = `${'{"b":1,"a":'.repeat(depth)}1${"}".repeat(depth)}`;
    expect(canonical(array)).toBe(array);
    expect(canonical(object)).toBe(`${'{"a":'.repeat(depth)}1${',"b":1}'.repeat(depth)}`);
    expect(canonicalJson("[".repeat(depth)).kind).toBe("invalid");
    expect(canonicalJson('{"a":'.repeat(depth)).kind).toBe("invalid");
  });
});

describe("`ignore` leaves out what it points at and nothing else", () => {
  test.each([
    ["a member", ["/ts"], '{"ts":1,"a":2}', '{"ts":9,"a":2}', true],
    ["a member that is absent on one side", ["/ts"], '{"ts":1,"a":2}', '{"a":2}', true],
    ["not its siblings", ["/ts"], '{"ts":1,"a":2}', '{"ts":1,"a":3}', false],
    ["not the same name further down", ["/ts"], '{"order":{"ts":1}}', '{"order":{"ts":2}}', false],
    ["not a name that it begins", ["/ts"], '{"tsx":1}', '{"tsx":2}', false],
    ["a member further down", ["/a/b"], '{"a":{"b":1,"c":2}}', '{"a":{"c":2}}', true],
    ["a member with all that is in it", ["/a"], '{"a":{"b":[1]},"c":1}', '{"a":[2],"c":1}', true],
    ["every member one level down", ["/trace/*"], '{"trace":{"a":1}}', '{"trace":{"b":[2]}}', true],
    ["but not the parent of `*`", ["/trace/*"], '{"trace":{}}', "{}", false],
    ["every member of the root", ["/*"], '{"a":1}', '{"b":2}', true],
    [
      "below every element",
      ["/lines/*/id"],
      '{"lines":[{"id":1,"n":1}]}',
      '{"lines":[{"id":2,"n":1}]}',
      true,
    ],
    ["not beside it", ["/lines/*/id"], '{"lines":[{"id":1,"n":1}]}', '{"lines":[{"id":1,"n":2}]}', false],
    ["not a level below `*`", ["/a/*/c"], '{"a":{"c":1}}', '{"a":{"c":2}}', false],
    ["an array element", ["/0"], "[1,2]", "[9,2]", true],
    ["without shifting the others", ["/0"], "[1,2,3]", "[2,3]", false],
    ["so the length still counts", ["/*"], "[1,2]", "[1]", false],
    ["and the element is not null", ["/0"], "[[],2]", "[null,2]", true],
    ["an index only as it is written", ["/01"], "[1,2]", "[1,3]", false],
    ["a member that is named like an index", ["/0"], '{"0":1}', '{"0":2}', true],
    ["every occurrence of a repeated name", ["/a"], '{"a":1,"a":2}', "{}", true],
    ["the name after its escapes", ["/a~1b~0c"], '{"a/b~c":1}', '{"a\\u002fb~c":2}', true],
    ["`~01` as a tilde and a one", ["/~01"], '{"~1":1}', '{"~1":2}', true],
    ["the empty name", ["/"], '{"":1}', '{"":2}', true],
    ["a member called __proto__", ["/__proto__"], '{"__proto__":1}', "{}", true],
    ["several places", ["/a", "/b/c"], '{"a":1,"b":{"c":1,"d":1}}', '{"b":{"d":1}}', true],
  ])("%s", (_, ignore, left, right, same) => {
    expect(canonical(left, ignore) === canonical(right, ignore)).toBe(same);
  });

  test("a placeholder equals no value where nothing is left out", () => {
    expect(canonical("[1]", ["/0"])).not.toBe(canonical("[null]"));
  });

  test("what is left out must still be JSON", () => {
    expect(canonicalJson('{"a":[1,}', { ignore: pointers(["/a"]) }).kind).toBe("invalid");
  });
});

describe("a pointer that cannot be used is refused with what would be right", () => {
  test.each([
    ["", 'the whole document; name a member, such as "/client_ts"'],
    ["$.client_ts", 'must begin with "/"'],
    ["client_ts", 'must begin with "/"'],
    ["/a~2", 'write "~0" for a tilde'],
    ["/a~", 'write "~0" for a tilde'],
  ])("%j", (text, reason) => {
    expect(parsePointer(text)).toEqual({ kind: "invalid", reason: expect.stringContaining(reason) });
  });

  test("and a good one keeps the text it was parsed from", () => {
    expect(parsePointer("/trace/*/a~1b")).toEqual({
      kind: "pointer",
      pointer: {
        text: "/trace/*/a~1b",
        steps: [{ kind: "named", name: "trace" }, { kind: "every" }, { kind: "named", name: "a/b" }],
      },
    });
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
