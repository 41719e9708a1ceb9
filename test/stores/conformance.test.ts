import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { storeLaws, unmetNeeds } from "../../src/conformance/index.ts";
import { type Opened, sealedStoresUnderTest, storesUnderTest } from "./subjects.ts";

describe.each([...storesUnderTest, ...sealedStoresUnderTest])(
  "$name keeps what the port promises",
  ({ isHere, lacks, open }) => {
    const inForce = storeLaws.filter(({ needs }) => needs === undefined || !lacks.includes(needs));
    const named = inForce.map((law) => [law.id, law.promise, law] as const);
    let opened: Opened;
    beforeAll(async () => {
      if (isHere()) opened = await open();
    });
    afterAll(() => (isHere() ? opened.close() : undefined));

    test.runIf(isHere())("it offers all but what it is known to lack", () => {
      expect(unmetNeeds(opened.subject)).toEqual(lacks);
    });

    test.runIf(isHere()).each(named)("%s: %s", (_id, _promise, law) => law.check(opened.subject));
  },
);

test("no two laws have one name, and each promises in one sentence", () => {
  expect(new Set(storeLaws.map(({ id }) => id)).size).toBe(storeLaws.length);
  for (const { id, promise } of storeLaws) {
    expect(id).toMatch(/^[a-z]+\/[a-z-]+$/);
    expect(promise).toMatch(/^[A-Z`].*\.$/);
  }
});
