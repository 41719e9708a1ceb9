import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalJson } from "../../src/core/canonical.ts";
import { topLevelMembers } from "../../src/core/members.ts";
import { seed } from "../support/seed.ts";

function canonical(text: string): string {
  const document = canonicalJson(text);
  if (document.kind === "invalid") throw new Error(document.reason);
  return document.text;
}

test("an object's canonical text falls into its members, whatever is in them", () => {
  const name = fc.oneof(
    fc.string({ unit: "binary", maxLength: 4 }),
    fc.constantFrom('"', "\\", '\\"', "}", ",", ":"),
  );
  fc.assert(
    fc.property(fc.dictionary(name, fc.jsonValue({ maxDepth: 3 })), (document) => {
      const text = canonical(JSON.stringify(document));
      const members = topLevelMembers(text, 100) ?? [];
      expect(`{${members.map((member) => member.text).join(",")}}`).toBe(text);
      expect(members.map(({ quoted }) => JSON.parse(quoted)).sort()).toEqual(Object.keys(document).sort());
    }),
    { seed: seed(), numRuns: 500 },
  );
});

test("a repeated name is there as often as it stands in the text", () => {
  expect(topLevelMembers(canonical('{"a":[1,{"a":"}"}],"b":{},"a":2}'), 3)).toEqual([
    { quoted: '"a"', text: '"a":[1,{"a":"}"}]' },
    { quoted: '"a"', text: '"a":2' },
    { quoted: '"b"', text: '"b":{}' },
  ]);
});

test.each(["[]", '"{"', "1", "null", '[{"a":1}]'])("%s has no members", (text) => {
  expect(topLevelMembers(canonical(text), 9)).toBeNull();
});

test("an object without members has none, and one with too many is not taken apart", () => {
  expect(topLevelMembers("{}", 0)).toEqual([]);
  expect(topLevelMembers(canonical('{"a":1,"b":2}'), 2)).toHaveLength(2);
  expect(topLevelMembers(canonical('{"a":1,"b":2}'), 1)).toBeNull();
});
