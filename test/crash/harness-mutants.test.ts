import { describe, expect, test } from "vitest";
import { postgresIsHere } from "../support/databases.ts";
import { seed } from "../support/seed.ts";
import { type Plan, planOf } from "./harness/plan.ts";
import { crashRun } from "./harness/run.ts";

/** A careless library, the faults in which it gives itself away, and a word of what is found. */
interface Mutant {
  readonly name: string;
  readonly faults: Pick<Plan, "database"> & Partial<Plan>;
  readonly found: RegExp;
}

const mutants: readonly Mutant[] = [
  {
    name: "downstream key per attempt",
    faults: { database: "SQLite", keys: 60 },
    found: /^was executed \d+ times by the provider/,
  },
  {
    name: "provider timeout taken as failure",
    faults: { database: "SQLite", keys: 100 },
    found: /^was executed \d+ times by the provider/,
  },
  {
    name: "sweeper with a threshold below the request time",
    faults: { database: "SQLite", keys: 60 },
    found: /was judged dead by the sweeper after \d+ ms$/,
  },
  {
    name: "purge of unknown",
    faults: { database: "SQLite", keys: 150 },
    found: /^was executed \d+ times by the provider/,
  },
  {
    name: "step whose result is not kept",
    faults: { database: "SQLite", keys: 60 },
    found: /^was executed \d+ times by the provider for its step order$/,
  },
  {
    name: "sweeper that releases without asking",
    faults: { database: "SQLite", kills: 20, keys: 60 },
    found: /^was released by the sweeper, which asked nobody/,
  },
  {
    name: "effect and record in two transactions",
    faults: { database: "PostgreSQL", points: ["between effect and record"], killsAtEach: 8, keys: 40 },
    found: /^has \d+ effects/,
  },
  {
    name: "local effect after completion",
    faults: { database: "PostgreSQL", points: ["between record and effect"], killsAtEach: 8, keys: 40 },
    found: /^is done, and has no effect$/,
  },
  {
    name: "no fence on completion",
    faults: { database: "PostgreSQL", cutsOfEach: 30, keys: 60 },
    found: /^has \d+ effects/,
  },
];

/** The others take half a minute each; they are part of the long run. */
const QUICK = 3;
const isLong = process.env["CRASH_ROUNDS"] !== undefined;
const tried = mutants.filter(
  ({ faults }, index) => (isLong || index < QUICK) && (faults.database === "SQLite" || postgresIsHere()),
);

const TIMEOUT_MS = 20 * 60_000;

/** A seed may draw faults that do not bite; by so many seeds, two minutes on a machine of one's own, one has. */
const ROUNDS = 6;

describe("it is found out", () => {
  test.each(tried)("$name", { timeout: TIMEOUT_MS }, async ({ name, faults, found }) => {
    const said: string[] = [];
    for (let round = 0; round < ROUNDS && !said.some((what) => found.test(what)); round++) {
      const plan = planOf({ seed: seed() + round, mutant: name, ...faults });
      const { violations, counts } = await crashRun(plan);
      console.log(`${name}, seed ${plan.seed}: ${violations.length} violations, ${JSON.stringify(counts)}`);
      said.push(...violations.map(({ what }) => what));
    }
    expect(said).toContainEqual(expect.stringMatching(found));
  });
});
