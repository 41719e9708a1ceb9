import { afterAll, describe, expect, test } from "vitest";
import { storeLaws } from "../../src/conformance/index.ts";
import { fencedMutants } from "./mutants/fenced.ts";
import { keepingMutants } from "./mutants/keeping.ts";
import type { Mutant } from "./mutants/mutant.ts";
import { tombstoneMutants } from "./mutants/tombstone.ts";
import { transactionMutants } from "./mutants/transaction.ts";
import { workingMutants } from "./mutants/working.ts";
import { writingMutants } from "./mutants/writing.ts";
import { type Opened, storesUnderTest } from "./subjects.ts";

/** That no law finds a right store out is what conformance.test.ts shows. */
const mutants: readonly Mutant[] = [
  ...writingMutants,
  ...keepingMutants,
  ...workingMutants,
  ...tombstoneMutants,
  ...transactionMutants,
  ...fencedMutants,
];

const opened = new Map<string, Promise<Opened>>();
afterAll(async () => {
  for (const { close } of await Promise.all(opened.values())) await close();
});

describe.each(mutants)("a store is found out where $fault", ({ fault, of = "memory", killedBy, make }) => {
  const right = storesUnderTest.find(({ name }) => name === of);

  test.runIf(right?.isHere()).each(killedBy)("by %s", async (id) => {
    const law = storeLaws.find((each) => each.id === id);
    if (law === undefined || right === undefined)
      throw new Error(`There is no law ${id}, or no store ${of}.`);
    // A database is dear and outlives what a mutant does to it; the memory of one mutant would confuse the next.
    const name = of === "memory" ? `${fault} ${id}` : of;
    const store = opened.get(name) ?? right.open();
    opened.set(name, store);
    await expect(law.check(make((await store).subject))).rejects.toSatisfy(isFinding);
  });
});

test("every law finds some mutant out", () => {
  const killing = new Set(mutants.flatMap(({ killedBy }) => killedBy));
  expect(storeLaws.map(({ id }) => id).filter((id) => !killing.has(id))).toEqual([]);
});

/** A mutant that is itself broken would be found out by any law. */
function isFinding(error: unknown): boolean {
  return error instanceof Error && !(error instanceof TypeError || error instanceof ReferenceError);
}
