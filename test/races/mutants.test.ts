import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { KINDS, type Kind } from "./kinds.ts";
import { ROOT } from "./library.ts";
import type { Fared, Mutant } from "./mutants/mutant.ts";
import { paged } from "./mutants/page.ts";
import { mutants, mutated, tried } from "./mutants/trial.ts";
import { inTurns, numberOf } from "./turns.ts";

/** Always the same schedules, so that a mutant is found at the same one until the engine changes. */
const FIRST_SEED = 7_000_000;

/** `MATRIX=15 npx vitest run test/races/mutants.test.ts` tries every mutant on every kind, and writes the page. */
const MATRIX = numberOf("MATRIX", 0);

const PAGE = join(ROOT, "docs/how-we-know.md");
const HOUR_MS = 3_600_000;

describe("an engine that is broken on purpose breaks a promise within its schedules", () => {
  const able = mutants.filter(({ equivalent }) => equivalent === undefined);

  test.each(able.map((mutant) => [mutant.name, mutant.foundOn, mutant] as const))(
    "%s (%s)",
    { timeout: HOUR_MS },
    async (_name, kind, mutant) => {
      const fared = (await trials(mutant, [kind], mutant.within ?? 1_000)).get(kind);
      expect(fared?.kind).toBe("killed");
    },
  );
});

test("the engine that ships is not taken for one of them", { timeout: HOUR_MS }, async () => {
  const sound: Mutant = { name: "none", fault: "keeps its promises", foundOn: "local" };
  const fared = await trials(sound, KINDS, 300);
  expect([...fared.values()].filter(({ kind }) => kind !== "survived")).toEqual([]);
});

test("there are mutants of all parts, each with a name of its own, and the page tells of each", () => {
  const page = readFileSync(PAGE, "utf8");
  const names = mutants.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(mutants.filter(({ equivalent }) => equivalent === undefined).length).toBeGreaterThanOrEqual(32);
  expect(names.filter((name) => !page.includes(`| ${name} `))).toEqual([]);
});

test.runIf(MATRIX > 0)("every mutant on every kind, for the page", { timeout: 24 * HOUR_MS }, async () => {
  const matrix = new Map<Mutant, ReadonlyMap<Kind, Fared>>();
  for (const mutant of mutants) {
    const fared = new Map(await trials(mutant, KINDS, MATRIX));
    const { foundOn, within = MATRIX, equivalent } = mutant;
    const isOpen = equivalent === undefined && fared.get(foundOn)?.kind !== "killed";
    for (const [kind, more] of isOpen ? await trials(mutant, [foundOn], within) : []) fared.set(kind, more);
    matrix.set(mutant, fared);
  }
  writeFileSync(PAGE, paged(readFileSync(PAGE, "utf8"), matrix));
});

async function trials(
  mutant: Mutant,
  kinds: readonly Kind[],
  most: number,
): Promise<ReadonlyMap<Kind, Fared>> {
  const { library, remove } = mutated(mutant);
  const fared = new Map<Kind, Fared>();
  try {
    for (const kind of kinds) {
      const trial = tried(mutant, library, kind, { seed: FIRST_SEED, most });
      await inTurns(() => {
        const next = trial.next(); // not before: inside a promise nothing drains
        if (next.done === true) fared.set(kind, next.value);
        return next.done !== true;
      });
    }
  } finally {
    remove();
  }
  return fared;
}
