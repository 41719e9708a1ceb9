import { createHash, createHmac, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { hmacSha256, sha256 } from "../../src/engine/sha256.ts";

test("digests are those of SHA-256, of bytes and of text", () => {
  for (const data of ["", "a key", randomBytes(200)]) {
    expect(Buffer.from(sha256(data))).toEqual(createHash("sha256").update(data).digest());
  }
});

test("salted digests are those of HMAC-SHA-256, however long the salt is and whatever was salted before", () => {
  for (let length = 130; length >= 0; length -= 1) {
    const [salt, digest] = [randomBytes(length), randomBytes(32)];
    expect(Buffer.from(hmacSha256(salt, digest))).toEqual(createHmac("sha256", salt).update(digest).digest());
  }
});

test("what is no digest of SHA-256 is not salted", () => {
  expect(() => hmacSha256(randomBytes(16), randomBytes(31))).toThrow("32 bytes");
});
