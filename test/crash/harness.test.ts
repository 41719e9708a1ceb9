import { describe, expect, test } from "vitest";
import { postgresIsHere } from "../support/databases.ts";
import { seed } from "../support/seed.ts";
import { findFaketime } from "./harness/clocks.ts";
import { forgetsIn, LONG_ROUND, planOf, ROUND } from "./harness/plan.ts";
import { type CrashRun, crashRun } from "./harness/run.ts";

/** How many rounds: one, or `CRASH_ROUNDS` of the environment; the long ones have more of everything. */
const ROUNDS = Number(process.env["CRASH_ROUNDS"] ?? "0");
const seeds = Array.from({ length: Math.max(1, ROUNDS) }, (_, round) => seed() + round);

/** Far beyond what a round takes on a machine that does ten other things. */
const TIMEOUT_MS = 40 * 60_000;

const rounds = ROUNDS > 0 ? LONG_ROUND : ROUND;
const faketime = findFaketime();

describe.skipIf(!postgresIsHere())("on a PostgreSQL that crashes, over a wire that is cut", () => {
  test.each(seeds)(
    "kills, pauses beyond the lease and clocks an hour off break no guarantee (round of seed %i)",
    { timeout: TIMEOUT_MS },
    async (round) => {
      const plan = planOf({
        database: "PostgreSQL",
        seed: round,
        ...rounds.PostgreSQL,
        forgets: forgetsIn(round),
        faketime,
      });
      expectSound(await crashRun(plan), round);
    },
  );

  test.skipIf(faketime === null && process.env["CI"] !== "true")(
    "libfaketime is here, so that clocks were an hour off (Debian: apt-get install libfaketime)",
    () => expect(faketime).not.toBeNull(),
  );
});

describe("on SQLite", () => {
  test.each(seeds)("kills break no guarantee (round of seed %i)", { timeout: TIMEOUT_MS }, async (round) => {
    expectSound(
      await crashRun(
        planOf({ database: "SQLite", seed: round, ...rounds.SQLite, forgets: forgetsIn(round) }),
      ),
      round,
    );
  });
});

function expectSound({ violations, faults, short, counts }: CrashRun, round: number): void {
  console.log(`round of seed ${round}: ${JSON.stringify(counts)}`);
  expect(violations).toEqual([]);
  expect(faults).toEqual([]);
  expect(short).toEqual([]);
}
