import { isDeepStrictEqual } from "node:util";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeValue, encodeValue, maxNesting } from "../../src/engine/values.ts";
import { RecordCorrupt } from "../../src/errors.ts";
import { seed } from "../support/seed.ts";
import { marked, plainer, values } from "./random-values.ts";

describe("a value comes back as it was", () => {
  test.each([
    ["undefined", undefined],
    ["null", null],
    ["true", true],
    ["zero", 0],
    ["-0", -0],
    ["NaN", Number.NaN],
    ["Infinity", Number.POSITIVE_INFINITY],
    ["-Infinity", Number.NEGATIVE_INFINITY],
    ["the smallest number", Number.MIN_VALUE],
    ["a fraction", 0.1 + 0.2],
    ["a bigint", -(2n ** 200n)],
    ["the empty string", ""],
    ["damaged Unicode", "\ud800 \udc00\ud83d"],
    ["NUL and a line separator", "\0\u2028"],
    ["a date", new Date(1_764_500_000_123)],
    [
      "the earliest and the latest date",
      [new Date(-8.64e15), new Date(8.64e15), new Date(-62_198_755_200_000)],
    ],
    ["an invalid date", new Date(Number.NaN)],
    ["bytes", new Uint8Array([0, 255, 128])],
    ["no bytes", new Uint8Array()],
    ["a part of a buffer", new Uint8Array([1, 2, 3, 4]).subarray(1, 3)],
    ["members that are undefined", { a: undefined, b: null }],
    ["a member called __proto__", JSON.parse('{"__proto__":{"a":1},"b":2}')],
    ["a lone member that looks like a tag", { $date: "2026-01-01" }],
    ["members of which one looks like a tag", { $undefined: true, a: { $object: { a: 1 } } }],
    ["nested arrays", [[], [[1], undefined]]],
    [
      "a map with keys of any kind",
      new Map<unknown, unknown>([
        [{ a: 1 }, new Set([1n])],
        [undefined, Number.NaN],
        ["k", -0],
      ]),
    ],
    ["a set", new Set<unknown>([[1], new Map(), "a", null])],
  ])("%s", (_, value) => {
    expect(isDeepStrictEqual(marked(roundTrip(value)), marked(value))).toBe(true);
  });

  test("whatever is in it", () => {
    fc.assert(
      fc.property(values, (value) => {
        expect(isDeepStrictEqual(marked(roundTrip(value)), marked(plainer(value)))).toBe(true);
      }),
      { seed: seed(), numRuns: 2000 },
    );
  });

  test("with its members in their order", () => {
    expect(Object.keys(Object(roundTrip({ b: 1, $c: 2, a: 3 })))).toEqual(["b", "$c", "a"]);
  });

  test("in memory of its own", () => {
    const bytes = Buffer.from("abc");
    const back = roundTrip({ bytes });
    bytes.fill(0);
    expect(back).toEqual({ bytes: new Uint8Array([97, 98, 99]) });
  });
});

describe("some values come back in a plainer form", () => {
  test.each([
    ["a buffer as bytes", Buffer.from("abc"), new Uint8Array([97, 98, 99])],
    ["an object without a prototype as a plain one", Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ["an object of another realm as one of this", runInNewContext("({ a: [1] })"), { a: [1] }],
    ["a hole as undefined", new Array(2), [undefined, undefined]],
    [
      "a getter as its value",
      {
        get a() {
          return 1;
        },
      },
      { a: 1 },
    ],
    ["without what cannot be enumerated", Object.defineProperty({ a: 1 }, "b", { value: () => 1 }), { a: 1 }],
  ])("%s", (_, value, expected) => {
    expect(isDeepStrictEqual(roundTrip(value), expected)).toBe(true);
  });

  test("an object met twice as two equal ones", () => {
    const shared = { a: 1 };
    expect(roundTrip([shared, { shared }])).toEqual([{ a: 1 }, { shared: { a: 1 } }]);
  });
});

class Money {
  readonly amount = 1;
}

const cycle: { list: readonly unknown[] } = { list: [] };
cycle.list = [1, { cycle }];

describe("what cannot be kept is named with its place, not altered and not thrown", () => {
  test.each([
    ["a function", () => 1, "value", "function"],
    ["a symbol in an array", { list: [1, Symbol("x")] }, "value.list[1]", "symbol"],
    ["a class instance", { order: { total: new Money() } }, "value.order.total", "Money"],
    ["a promise that was not awaited", { result: Promise.resolve(1) }, "value.result", "Promise"],
    ["an error", [new TypeError("x")], "value[0]", "TypeError"],
    ["a regular expression", { "odd name": /a/ }, 'value["odd name"]', "RegExp"],
    ["another kind of bytes", new Uint16Array(1), "value", "Uint16Array"],
    ["a subclass of a kind that is kept", new (class Ids extends Set {})(), "value", "Ids"],
    ["a subclass of bytes", new (class Key extends Uint8Array {})(), "value", "Key"],
    ["a subclass of an array", new (class Rows extends Array {})(), "value", "Rows"],
    ["a boxed string", Object("a"), "value", "String"],
    ["a value of a map", new Map([["k", { f: () => 1 }]]), "value.values()[0].f", "function"],
    ["a key of a map", new Map([[Symbol("x"), 1]]), "value.keys()[0]", "symbol"],
    ["an element of a set", { tags: new Set([1, Symbol("x")]) }, "value.tags.values()[1]", "symbol"],
    ["what contains itself", cycle, "value.list[1].cycle", "contains itself"],
    ["a member named by a symbol", { a: { [Symbol("secret")]: 1 } }, "value.a", "Symbol(secret)"],
    ["a member added to an array", Object.assign([1], { total: 2 }), "value.total", "added"],
    ["a member added to a map", { m: Object.assign(new Map(), { n: 1 }) }, "value.m.n", "added"],
    ["a prototype with members of its own", Object.create({ a: 1 }), "value", "instance"],
    ["an instance of a class without a name", new (class {})(), "value", "instance"],
    [
      "a getter that throws",
      {
        a: {
          get b() {
            throw new Error("gone");
          },
        },
      },
      "value.a.b",
      '"gone"',
    ],
    [
      "a getter that throws no error",
      {
        get b() {
          throw 1;
        },
      },
      "value.b",
      "number",
    ],
    ["a revoked proxy", [revokedProxy()], "value[0]", "threw"],
    ["what is too deep", nested(maxNesting + 1), `value${".a".repeat(maxNesting)}`, `${maxNesting} levels`],
  ])("%s", (_, value, path, reason) => {
    expect(encodeValue(value)).toEqual({
      kind: "unsupported",
      path,
      reason: expect.stringContaining(reason),
    });
  });

  test("what grows beyond all bounds ends early", () => {
    let doubled: unknown = "x".repeat(1000);
    for (let level = 0; level < 100; level += 1) doubled = [doubled, doubled];
    for (const value of [doubled, new Array(2 ** 32 - 1), "x".repeat(2 ** 24), "\0".repeat(2 ** 27)]) {
      expect(encodeValue(value)).toMatchObject({
        kind: "unsupported",
        reason: expect.stringContaining("larger"),
      });
    }
  });

  test("and nothing makes it throw", () => {
    const strange = fc.constantFrom<unknown>(() => 1, Symbol("x"), new Money(), cycle, new WeakMap());
    const anything = fc.anything({
      withTypedArray: true,
      withSparseArray: true,
      withBoxedValues: true,
      withObjectString: true,
      withNullPrototype: true,
      withMap: true,
      withSet: true,
      withDate: true,
      withBigInt: true,
      values: [strange, fc.double(), fc.string()],
    });
    fc.assert(
      fc.property(anything, (value) => {
        const encoded = encodeValue(value);
        if (encoded.kind === "unsupported") expect(encoded.path).toMatch(/^value/);
        else expect(isDeepStrictEqual(marked(decodeValue(encoded.bytes)), marked(plainer(value)))).toBe(true);
      }),
      { seed: seed(), numRuns: 2000 },
    );
  });
});

describe("the bytes", () => {
  test("are text that a person can read, and keep their form from release to release", () => {
    const value = {
      id: "p1",
      at: new Date(0),
      n: [undefined, -0, 2n, new Uint8Array([1])],
      m: new Map([[1, new Set(["a"])]]),
    };
    expect(text(value)).toBe(
      'v1:{"id":"p1","at":{"$date":"1970-01-01T00:00:00.000Z"},' +
        '"n":[{"$undefined":true},{"$number":"-0"},{"$bigint":"2"},{"$bytes":"AQ=="}],"m":{"$map":[[1],[{"$set":["a"]}]]}}',
    );
    expect(text({ $a: 1, b: "\ud800" })).toBe('v1:{"$object":{"$a":1,"b":"\\ud800"}}');
  });

  test.each([
    ["nothing", ""],
    ["JSON without the format", '{"a":1}'],
    ["a later format", "v2:1"],
    ["a byte order mark", "\ufeffv1:1"],
    ["no JSON", "v1:{"],
    ["an unknown tag", 'v1:{"$regexp":"a"}'],
    ["a tag among other members", 'v1:{"$date":null,"a":1}'],
    ["a wrong undefined", 'v1:{"$undefined":false}'],
    ["a wrong number", 'v1:{"$number":"1"}'],
    ["a wrong bigint", 'v1:{"$bigint":"1.5"}'],
    ["a wrong date", 'v1:{"$date":"yesterday"}'],
    ["a date that does not exist", 'v1:{"$date":"2026-13-01T00:00:00.000Z"}'],
    ["wrong bytes", 'v1:{"$bytes":"A"}'],
    ["a map whose halves differ", 'v1:{"$map":[[1],[]]}'],
    ["a map with one half", 'v1:{"$map":[[1]]}'],
    ["a map with three parts", 'v1:{"$map":[[],[],[]]}'],
    ["a wrong set", 'v1:{"$set":{}}'],
    ["a wrong object", 'v1:{"$object":[1]}'],
    ["an object that is null", 'v1:{"$object":null}'],
    ["arrays that are too deep", `v1:${"[".repeat(100_000)}${"]".repeat(100_000)}`],
    ["sets that are too deep", `v1:${'{"$set":['.repeat(10_000)}${"]}".repeat(10_000)}`],
  ])("are refused as corrupt when they are %s", (_, foreign) => {
    expect(() => decodeValue(new TextEncoder().encode(foreign))).toThrow(RecordCorrupt);
  });

  test("are refused as corrupt when they are not UTF-8", () => {
    expect(() => decodeValue(new Uint8Array([0x76, 0x31, 0x3a, 0x22, 0xff, 0x22]))).toThrow(RecordCorrupt);
  });

  test("are refused as corrupt or read, whatever damage was done to them", () => {
    const damage = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), {
      minLength: 1,
      maxLength: 3,
    });
    fc.assert(
      fc.property(values, damage, (value, changes) => {
        const bytes = Buffer.from(text(value));
        for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
        try {
          decodeValue(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(RecordCorrupt);
        }
      }),
      { seed: seed(), numRuns: 2000 },
    );
  });
});

function roundTrip(value: unknown): unknown {
  const encoded = encodeValue(value);
  if (encoded.kind === "unsupported") throw new Error(`${encoded.path}: ${encoded.reason}`);
  return decodeValue(encoded.bytes);
}

function text(value: unknown): string {
  const encoded = encodeValue(value);
  if (encoded.kind === "unsupported") throw new Error(`${encoded.path}: ${encoded.reason}`);
  return new TextDecoder().decode(encoded.bytes);
}

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = { a: value };
  return value;
}

function revokedProxy(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}
