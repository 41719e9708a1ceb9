import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { Fingerprint } from "../../src/core/record.ts";
import {
  bindFingerprint,
  type Material,
  matchFingerprint,
  type Recognisable,
  SALT_BYTES,
} from "../../src/engine/fingerprint.ts";

const sha256 = (text: string) => createHash("sha256").update(text).digest();
const salt = (byte: number) => new Uint8Array(SALT_BYTES).fill(byte);

/** A request whose value is its bytes without blanks; says how often its canonical form was made. */
function request(text: string, version = "v1") {
  const made = { canonical: 0 };
  const material: Material = {
    raw: sha256(text),
    canonical: () => {
      made.canonical += 1;
      return sha256(text.replaceAll(" ", ""));
    },
  };
  const recognisable: Recognisable = { version, material: (asked) => (asked === version ? material : null) };
  return { ...recognisable, made };
}

describe("a request is recognised", () => {
  const kept = bindFingerprint(request("a b"), salt(1));

  test("by its bytes, without its canonical form", () => {
    const same = request("a b");
    expect(matchFingerprint(same, kept)).toBe("same");
    expect(same.made.canonical).toBe(0);
  });

  test("by its value where its bytes differ", () => {
    expect(matchFingerprint(request("ab"), kept)).toBe("same");
    expect(matchFingerprint(request("abc"), kept)).toBe("other");
  });

  test("under the record's own salt and no other", () => {
    expect(matchFingerprint(request("a b"), { ...kept, salt: salt(2) })).toBe("other");
  });

  test("only under the rule that the record was made by: any other is no mismatch, it cannot be told", () => {
    expect(matchFingerprint(request("a b", "v2"), kept)).toBe("unverifiable");
  });

  test("never by half of a kept digest", () => {
    const cut: Fingerprint = { ...kept, raw: kept.raw.slice(0, 16), canonical: kept.canonical.slice(0, 16) };
    expect(matchFingerprint(request("a b"), cut)).toBe("other");
  });
});

describe("what is kept of a request", () => {
  test("shows neither the request nor that two are equal", () => {
    const one = bindFingerprint(request("a b"), salt(1));
    const other = bindFingerprint(request("a b"), salt(2));
    expect(one.raw).not.toEqual(other.raw);
    expect(one.canonical).not.toEqual(other.canonical);
    for (const digest of [one.raw, one.canonical]) {
      expect(digest).toHaveLength(32);
      expect(digest).not.toEqual(new Uint8Array(sha256("a b")));
      expect(digest).not.toEqual(new Uint8Array(sha256("ab")));
    }
  });

  test("a rule that its own process cannot carry out is a fault and no fingerprint", () => {
    const broken: Recognisable = { version: "v1", material: () => null };
    expect(() => bindFingerprint(broken, salt(1))).toThrow(/"v1" cannot be carried out/);
  });
});
