import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bindFingerprint, matchFingerprint } from "../../src/engine/fingerprint.ts";
import { inputFingerprint } from "../../src/engine/input.ts";
import { ConfigurationError } from "../../src/errors.ts";
import type { Exchange } from "../../src/http/exchange.ts";
import { type FingerprintSettings, fingerprintRule, recognisable } from "../../src/http/fingerprint.ts";
import { changed, documentOf, spelled } from "../hosts/json.ts";
import { seed, seededRandom } from "../support/seed.ts";

interface Request {
  readonly method?: string;
  readonly path?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array;
}

const salt = new Uint8Array(16);

function recognised(request: Request, settings: FingerprintSettings = {}) {
  const { method = "POST", path = "/a", query = "", headers = {}, body = "" } = request;
  const exchange: Exchange = {
    ...{ method, path, query, pattern: null },
    header: (name) => [headers[name] ?? []].flat(),
    body: () => Promise.reject(new Error("The body is handed in.")),
    onHungUp: () => () => {},
  };
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  return recognisable(fingerprintRule(settings), exchange, {
    ...{ kind: "received", bytes, plain: bytes, coding: "" },
  });
}

/** A request of which its route says what stands for its body. */
function saying(value: unknown, settings: FingerprintSettings = {}) {
  const { raw, canonical } = inputFingerprint(value).material("value 1") ?? {};
  if (raw === undefined || canonical === undefined) throw new Error("A plain value has digests.");
  const exchange: Exchange = {
    ...{ method: "POST", path: "/a", query: "", pattern: null, header: () => [] },
    body: () => Promise.reject(new Error("The body is left to the handler.")),
    onHungUp: () => () => {},
  };
  return recognisable(fingerprintRule(settings), exchange, { kind: "said", material: { raw, canonical } });
}

function compare(one: Request, other: Request, settings?: FingerprintSettings, otherSettings = settings) {
  return matchFingerprint(recognised(other, otherSettings), bindFingerprint(recognised(one, settings), salt));
}

const json = (body: string | Uint8Array): Request => ({
  headers: { "content-type": "application/json" },
  body,
});

describe("two requests are one", () => {
  test.each<readonly [string, Request, Request]>([
    ["when they are equal", { body: "a" }, { body: "a" }],
    ["with the method in another case", { method: "POST" }, { method: "post" }],
    ["with another order of query names", { query: "a=1&b=2&a=3" }, { query: "b=2&a=1&a=3" }],
    ["with a name without a value, or an empty one", { query: "a" }, { query: "a=&" }],
    ["with a blank written in either way", { query: "a=x+y" }, { query: "a=x%20y" }],
    ["with members in another order", json('{"a":1,"b":2}'), json('{ "b": 2.0, "a": 1e0 }')],
    [
      "with another charset spelling",
      json("[1]"),
      { ...json("[1.0]"), headers: { "content-type": "Application/JSON; CHARSET=utf8" } },
    ],
    [
      "with an encoding that is none",
      json("[1]"),
      { ...json("[1.0]"), headers: { "content-type": "application/json", "content-encoding": "identity" } },
    ],
    ["with no body at all", {}, { body: new Uint8Array(0) }],
  ])("%s", (_, one, other) => {
    expect(compare(one, other)).toBe("same");
    expect(compare(other, one)).toBe("same");
  });
});

describe("two requests are two", () => {
  test.each<readonly [string, Request, Request]>([
    ["with another path", { path: "/a" }, { path: "/a/" }],
    ["with the query in the path", { path: "/a", query: "b" }, { path: "/a?b" }],
    ["with repeats in another order", { query: "a=1&a=2" }, { query: "a=2&a=1" }],
    ["with the separator inside a value", { query: "a=1%26b=2" }, { query: "a=1&b=2" }],
    ["with the equals sign inside a name", { query: "a%3D1=2" }, { query: "a=1%3D2" }],
    ["with damaged bytes in the query", { query: "a=%ff" }, { query: "a=%fe" }],
    ["with damaged bytes and their replacement", { query: "a=%ff" }, { query: "a=%EF%BF%BD" }],
    ["with a plus that was meant", { query: "a=x%2By" }, { query: "a=x+y" }],
    ["with another media type", json("1"), { body: "1", headers: { "content-type": "text/plain" } }],
    ["with and without a media type", json("1"), { body: "1" }],
    ["with a byte order mark", json("1"), json("\ufeff1")],
    ["with bytes that are no UTF-8", json(Uint8Array.of(0x22, 0xff, 0x22)), json('"\ufffd"')],
    ["with text that looks like the canonical form", json(' {"a":1}'), json("not json")],
    ["with a repeated member", json('{"a":1,"a":2}'), json('{"a":2}')],
    ["with null and with nothing", json('{"a":null}'), json("{}")],
    ["with lone surrogates", json('"\\ud800"'), json('"\\udbff"')],
    ["with numbers that a double cannot tell apart", json("9007199254740993"), json("9007199254740992")],
    ["with an empty body and an empty document", json(""), json("{}")],
  ])("%s", (_, one, other) => {
    expect(compare(one, other)).toBe("other");
    expect(compare(other, one)).toBe("other");
  });

  test("when any leaf of a document differs: 2000 of 2000 (FP-12)", () => {
    const random = seededRandom(seed());
    for (let round = 0; round < 2_000; round++) {
      const document = documentOf(random);
      const [one, other] = [spelled(document), spelled(changed(document, random))];
      expect(compare(json(one), json(one))).toBe("same");
      expect(compare(json(one), json(other)), `${one} and ${other}`).toBe("other");
    }
  });

  test("when any pair of a query differs, whatever is in its names and values", () => {
    const part = fc.stringMatching(/^[a%+&=\u00e9\ud83d\ude00]{0,4}$/u);
    const pairs = fc.array(fc.tuple(part, part), { maxLength: 3 });
    const written = (list: readonly (readonly [string, string])[]) =>
      list.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&");
    const valid = pairs.filter((list) => list.flat().every((text) => !/\p{Surrogate}/u.test(text)));
    fc.assert(
      fc.property(valid, valid, (one, other) => {
        const byName = (list: readonly (readonly [string, string])[]) =>
          JSON.stringify([...list].sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0)));
        const expected = byName(one) === byName(other) ? "same" : "other";
        expect(compare({ query: written(one) }, { query: written(other) })).toBe(expected);
      }),
      { seed: seed(), numRuns: 500 },
    );
  });
});

describe("a rule", () => {
  test("of raw mode compares bytes; the order of the query makes no difference there either", () => {
    expect(compare(json("[1]"), json("[1.0]"), { mode: "raw" })).toBe("other");
    expect(compare({ query: "a=1&b=2" }, { query: "b=2&a=1" }, { mode: "raw" })).toBe("same");
  });

  test("takes in the headers that it names, every line of them, and their absence", () => {
    const settings = { fingerprintHeaders: ["X-Tenant"] };
    const tenant = (...lines: readonly string[]): Request => ({ headers: { "x-tenant": lines } });
    expect(compare(tenant("a"), tenant("a"), settings)).toBe("same");
    for (const other of [tenant("b"), tenant(), tenant("a", ""), tenant("")]) {
      expect(compare(tenant("a"), other, settings)).toBe("other");
    }
    expect(compare(tenant(), tenant(""), settings)).toBe("other");
    expect(compare(tenant("a"), tenant("b"))).toBe("same");
  });

  test("is another rule when anything of it changes, and each can carry out all others", () => {
    const rules: readonly FingerprintSettings[] = [
      {},
      { mode: "raw" },
      { fingerprintHeaders: ["a"] },
      { fingerprintHeaders: ["a", "b"] },
      { ignore: ["/a"] },
      { ignore: ["/b"] },
      { ignore: ["/a", "/b"] },
      { ignore: ['/a" -"/b'] },
      { ignore: ["/a -/b"] },
      { fingerprintHeaders: ["a"], ignore: ["/a"] },
    ];
    expect(new Set(rules.map((settings) => fingerprintRule(settings).version)).size).toBe(rules.length);
    for (const one of rules) {
      for (const other of rules) {
        expect(compare(json('{"c":1}'), json('{"c":1}'), one, other)).toBe("same");
        expect(compare(json('{"c":1}'), json('{"c":2}'), one, other)).toBe("other");
        expect(compare(json("{}"), { ...json("{}"), path: "/b" }, one, other)).toBe("other");
      }
    }
  });

  test.each<readonly [string, FingerprintSettings, FingerprintSettings, Request, Request]>([
    ["ignores", { ignore: ["/at"] }, {}, json('{"a":1,"at":1}'), json('{"a":1,"at":2}')],
    ["ignores", { ignore: ["/at"] }, { ignore: ["/on"] }, json('{"at":1}'), json('{"at":2}')],
    ["takes by value", {}, { mode: "raw" }, json("[1]"), json("[1.0]")],
    ["leaves out", {}, { fingerprintHeaders: ["x-a"] }, {}, { headers: { "x-a": "1" } }],
  ])("of a kept record holds for its retries: what it %s makes no other request", (_, kept, own, ...both) => {
    const [one, other] = both;
    expect(compare(one, other, kept, own)).toBe("same");
    expect(compare(one, other, own, kept), "the other way round").toBe("other");
  });

  test("is found by its name, whatever it names", () => {
    const name = fc.stringMatching(/^[!#$%&'*+\-.^_`|~0-9a-zA-Z]{1,6}$/);
    const pointer = fc
      .string({ unit: "binary", maxLength: 8 })
      .map((text) => `/${text.replaceAll("~", "~0")}`);
    const settings = fc.record({
      mode: fc.constantFrom("json", "raw"),
      fingerprintHeaders: fc.array(name, { maxLength: 3 }),
      ignore: fc.array(fc.oneof(pointer, fc.constant("/\ud800"), fc.constant('/" -"/')), { maxLength: 3 }),
    });
    fc.assert(
      fc.property(settings, settings, (one, other) => {
        const request = json('{"a":1}');
        expect(compare(request, request, one, other)).toBe("same");
        expect(compare(request, { ...request, path: "/b" }, one, other)).toBe("other");
      }),
      { seed: seed(), numRuns: 300 },
    );
  });

  test.each([
    ...["", "json", "json 1 ", " json 1", "json  1", "json 1\n", "json 1 x", "JSON 1", "xml 1", "run 1"],
    ...["json 0", "json 2", "json 01", "json 1.0", 'json 2 +x -"/a"'],
    ...["json 1 +", "json 1 +X", "json 1 +x:y", "json 1 +b +a", "json 1 +a +a", 'json 1 -"/a" +a'],
    ...["json 1 -", "json 1 -/a", 'json 1 -"/a', 'json 1 -"a"', 'json 1 -""', 'json 1 -"/a~2"'],
    ...[
      'json 1 -"/b" -"/a"',
      'json 1 -"/a" -"/a"',
      'json 1 -"/\\u0061"',
      'json 1 -"/\\x61"',
      'json 1 -"/\t"',
    ],
  ])("that goes by no name of ours cannot be verified: %j", (version) => {
    const request = json("{}");
    expect(recognised(request).material(version)).toBeNull();
    const kept = { ...bindFingerprint(recognised(request), salt), version };
    expect(matchFingerprint(recognised(request), kept)).toBe("unverifiable");
  });

  test("that takes the route's own word cannot be carried out without one, nor another where the body is unread", () => {
    const settings = { fingerprintHeaders: ["x-a"] };
    const own = saying({ amount: 1 }, settings);
    expect(own.version).toBe("own 1 +x-a");
    const kept = bindFingerprint(own, salt);
    expect(matchFingerprint(saying({ amount: 1 }, settings), kept)).toBe("same");
    expect(matchFingerprint(saying({ amount: 1 }), kept), "under the rule of the record").toBe("same");
    expect(matchFingerprint(saying({ amount: 2 }, settings), kept)).toBe("other");
    expect(matchFingerprint(recognised(json('{"amount":1}'), settings), kept)).toBe("unverifiable");
    const read = bindFingerprint(recognised(json('{"amount":1}')), salt);
    expect(matchFingerprint(own, read)).toBe("unverifiable");
    expect(own.material('own 1 -"/a"')).toBeNull();
  });

  test("is the same rule in another order, with repeats, and with headers in another case", () => {
    const one = { fingerprintHeaders: ["A", "b"], ignore: ["/a", "/b"] };
    const other = { fingerprintHeaders: ["b", "a", "B"], ignore: ["/b", "/a", "/a"] };
    expect(fingerprintRule(one).version).toBe(fingerprintRule(other).version);
  });

  test("keeps its name: records of earlier releases stay valid", () => {
    expect(fingerprintRule({}).version).toBe("json 1");
    expect(fingerprintRule({ fingerprintHeaders: ["X-A"], ignore: ["/a"] }).version).toBe(
      'json 1 +x-a -"/a"',
    );
    const material = recognised(
      { ...json('{"b":[1.0],"a":"\u00e9"}'), path: "/a/b", query: "b=2&a=1" },
      {},
    ).material("json 1");
    const hex = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString("hex");
    expect(hex(material?.raw)).toMatchInlineSnapshot(
      `"b73f5317f5abb6499497523b28963ef2069dfe71a05adfd1b727284968457f41"`,
    );
    expect(hex(material?.canonical())).toMatchInlineSnapshot(
      `"5465b323e6e5fdd0522efa6f8b730306b43f8d3fb56147115a5b6dfe229bdffe"`,
    );
  });

  test.each([
    ["mode", { mode: JSON.parse('"xml"') }],
    ["fingerprintHeaders", { fingerprintHeaders: ["a b"] }],
    ["fingerprintHeaders", { fingerprintHeaders: [""] }],
    ["ignore", { ignore: ["a"] }],
    ["ignore", { ignore: [""] }],
    ["ignore", { ignore: ["/a~2"] }],
  ] as const)("with a bad %s is refused before anything is served", (field, settings) => {
    expect(() => fingerprintRule(settings)).toThrow(expect.objectContaining({ field }));
    expect(() => fingerprintRule(settings)).toThrow(ConfigurationError);
  });
});
