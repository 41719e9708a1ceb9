import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type StoreNeed, type StoreSubject, storeLaws, unmetNeeds } from "../../src/conformance/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { seededRandom } from "../support/seed.ts";

interface Row {
  readonly name: string;
  /** The laws that need one of these do not apply. */
  readonly lacks: readonly StoreNeed[];
  readonly open: () => Promise<{ readonly subject: StoreSubject; readonly close: () => Promise<void> }>;
}

const random = seededRandom().fraction;
const pause = (durationMs: number) => sleep(durationMs);

const rows: readonly Row[] = [
  {
    name: "memory",
    lacks: ["transactions", "simultaneous transactions", "damage"],
    open: async () => {
      const store = memoryStore();
      return { subject: { store, another: async () => store, pause, random }, close: () => store.close() };
    },
  },
];

describe.each(rows)("$name keeps what the port promises", ({ lacks, open }) => {
  let opened: Awaited<ReturnType<Row["open"]>>;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened.close());

  test("it offers all but what it is known to lack", () => {
    expect(unmetNeeds(opened.subject)).toEqual(lacks);
  });

  const laws = storeLaws.filter(({ needs }) => needs === undefined || !lacks.includes(needs));
  test.each(laws.map((law) => [law.id, law.promise, law] as const))("%s: %s", (_id, _promise, { check }) =>
    check(opened.subject),
  );
});
