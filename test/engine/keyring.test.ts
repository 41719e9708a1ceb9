import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { bindFingerprint, differingMembers, matchFingerprint } from "../../src/engine/fingerprint.ts";
import { inputFingerprint } from "../../src/engine/input.ts";
import { type FingerprintKey, fingerprintKeyring } from "../../src/engine/keyring.ts";
import { ConfigurationError } from "../../src/errors.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { engineOn, ofType, requestFor } from "./engines.ts";

const salt = new Uint8Array(16).fill(7);
const key = (id: string, secret: FingerprintKey["secret"] = id.repeat(32)): FingerprintKey => ({
  id,
  secret,
});
const signed = (input: unknown, keys?: readonly FingerprintKey[]) =>
  bindFingerprint(fingerprintKeyring(keys)(inputFingerprint(input)), salt);
const match = (input: unknown, kept: ReturnType<typeof signed>, keys?: readonly FingerprintKey[]) =>
  matchFingerprint(fingerprintKeyring(keys)(inputFingerprint(input)), kept);

describe("a ring of secrets", () => {
  test("signs with its first key and verifies with all of them", () => {
    const old = signed({ a: 1 }, [key("old")]);
    const rotated = [key("new"), key("old")];
    expect([match({ a: 1 }, old, rotated), match({ a: 2 }, old, rotated)]).toEqual(["same", "other"]);
    expect(signed({ a: 1 }, rotated).version).toBe("@new value 1");
    expect(signed({ a: 1 }, rotated)).toEqual(signed({ a: 1 }, [key("new")]));
  });

  test("cannot verify what a key signed that is gone, nor can an engine without one", () => {
    const old = signed({ a: 1 }, [key("old")]);
    expect(match({ a: 1 }, old, [key("new")])).toBe("unverifiable");
    expect(match({ a: 1 }, old)).toBe("unverifiable");
    expect(match({ a: 1 }, { ...old, version: "@old" }, [key("old")])).toBe("unverifiable");
    expect(match({ a: 1 }, { ...old, version: "@ol value 1" }, [key("old")])).toBe("unverifiable");
    expect(match({ a: 1 }, { ...old, version: "@old value 2" }, [key("old")])).toBe("unverifiable");
  });

  test("still verifies what was kept before there was a secret", () => {
    expect(match({ a: 1 }, signed({ a: 1 }), [key("new")])).toBe("same");
    expect(match({ a: 2 }, signed({ a: 1 }), [key("new")])).toBe("other");
  });

  test("makes fingerprints of which nothing fits to those of another secret, or of none", () => {
    const [one, other, none] = [
      signed({ a: 1 }, [key("k")]),
      signed({ a: 1 }, [key("k", "x".repeat(32))]),
      signed({ a: 1 }),
    ];
    for (const [left, right] of [
      [one, other],
      [one, none],
    ] as const) {
      expect(left.raw).not.toEqual(right.raw);
      expect(left.canonical.subarray(0, 32)).not.toEqual(right.canonical.subarray(0, 32));
      expect(left.canonical.subarray(32)).not.toEqual(right.canonical.subarray(32));
    }
    expect(match({ a: 1 }, one, [key("k", "x".repeat(32))])).toBe("other");
  });

  test("takes a secret as text or as its bytes, and is not changed by what becomes of them", () => {
    const bytes = Buffer.from("s".repeat(40));
    const keyed = fingerprintKeyring([key("k", bytes)]);
    bytes.fill(0);
    expect(bindFingerprint(keyed(inputFingerprint(1)), salt)).toEqual(signed(1, [key("k", "s".repeat(40))]));
  });
});

describe("a secret", () => {
  const SECRET = "do-not-show-me-do-not-show-me-do-not-show-me";

  test.each<readonly [string, unknown]>([
    ["no list", key("a", SECRET)],
    ["a secret alone", SECRET],
    ["an empty list", []],
    ["no key", [SECRET]],
    ["null", [null]],
    ["no id", [{ secret: SECRET }]],
    ["an empty id", [key("", SECRET)]],
    ["an id with a blank", [key("a b", SECRET)]],
    ["an id that is too long", [key("a".repeat(33), SECRET)]],
    ["one id twice", [key("a", SECRET), key("a", `${SECRET}2`)]],
    ["31 bytes", [key("a", SECRET.slice(0, 31))]],
    ["31 bytes as such", [key("a", new Uint8Array(31))]],
    ["no secret", [{ id: "a" }]],
    ["a number", [{ id: "a", secret: 1e40 }]],
  ])("is refused when the engine is made, and shown nowhere: %s", (_, ring) => {
    const settings = { fingerprintSecret: ring, allowMemoryStore: true };
    const make = () => engineOn(memoryStore(), Object.assign({}, settings as object));
    expect(make).toThrow(ConfigurationError);
    expect(make).toThrow(expect.objectContaining({ field: "fingerprintSecret" }));
    expect(make).not.toThrow(/do-not-show/);
  });

  test("of 32 characters of more bytes is taken", () => {
    expect(signed(1, [key("a", "ü".repeat(16))]).version).toBe("@a value 1");
  });

  test("is in no event and in nothing that an engine shows", async () => {
    const { engine, events } = engineOn(memoryStore(), { fingerprintSecret: [key("a", SECRET)] });
    await engine.begin(requestFor("k", { body: { a: 1 } }));
    await engine.begin(requestFor("k", { body: { a: 2 } }));
    expect(ofType(events, "mismatch")).toMatchObject([{ missing: 0, observed: false }]);
    const shown = inspect([engine, events], { depth: 9, showHidden: true }) + JSON.stringify(events);
    expect(shown).not.toContain(SECRET);
    expect(shown).not.toContain(Buffer.from(SECRET).toString("hex"));
  });
});

describe("what differs between two inputs", () => {
  test("is told of a record that keeps it, and not of an earlier one, nor of a later format", () => {
    const kept = signed({ a: 1, b: 2 });
    const request = inputFingerprint({ b: 2, c: 3 });
    expect(differingMembers(request, kept)).toEqual({ members: ["c"], missing: 1 });
    expect(differingMembers(request, { ...kept, canonical: kept.canonical.slice(0, 32) })).toBeNull();
    const later = Uint8Array.from(kept.canonical);
    later[32] = 2;
    expect(differingMembers(request, { ...kept, canonical: later })).toBeNull();
    expect(differingMembers(request, { ...kept, canonical: kept.canonical.slice(0, -1) })).toBeNull();
  });
});
