import { describe, expect, test } from "vitest";
import { postgresIsHere } from "../support/databases.ts";
import { type CutRun, commitThroughCuts } from "./support/cuts.ts";
import { mutants } from "./support/mutants.ts";

/** Cuts of each of the three kinds: of COMMITs that never arrive, that nobody waits for, whose answer is dropped. */
const CUTS = 67;

/** A wrong store gives itself away by a COMMIT that is still under way, which not every run meets. */
const CUTS_FOR_MUTANTS = 25;
const RUNS_FOR_MUTANTS = 6;

/** Far beyond what a run takes. */
const TIMEOUT_MS = 150_000;

describe.skipIf(!postgresIsHere())("on PostgreSQL, where COMMITs are cut off on the wire", () => {
  test.each(["two", "one"] as const)(
    `${3 * CUTS} cuts leave one effect, one answer and a completed record for each key: commits %s`,
    { timeout: TIMEOUT_MS },
    async (commits) => {
      const run = await commitThroughCuts({ cutsOfEach: CUTS, commits });
      tell(`commits ${commits}`, run);
      expect(run.faults).toEqual([]);
      for (const happened of Object.values(run.cuts)) expect(happened).toBeGreaterThanOrEqual(CUTS);
    },
  );

  test.each(mutants)(
    "a store is found out of which it is true that $fault",
    { timeout: TIMEOUT_MS },
    async ({ fault, make }) => {
      const found: string[] = [];
      for (let runs = 0; runs < RUNS_FOR_MUTANTS && !found.some((what) => TWICE.test(what)); runs++) {
        const run = await commitThroughCuts({ cutsOfEach: CUTS_FOR_MUTANTS, commits: "two", wrapped: make });
        tell(fault, run);
        found.push(...run.faults);
      }
      expect(found).toContainEqual(expect.stringMatching(TWICE));
    },
  );
});

const TWICE = /^key-\d+ has 2 effects$/;

function tell(what: string, { cuts, keys, counts }: CutRun): void {
  console.log(`${what}: ${JSON.stringify(cuts)}, ${keys} keys; copies: ${JSON.stringify(counts)}`);
}
