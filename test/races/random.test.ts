import { expect, test } from "vitest";
import { seed } from "../support/seed.ts";
import { seededChoices } from "./choices.ts";
import { KINDS } from "./kinds.ts";
import { libraryIn } from "./library.ts";
import { played } from "./play.ts";
import { brokenBy, shrunk, told } from "./shrink.ts";
import { CALL_FATES, DISTURBANCES, drawnSetup, STORE_FATES } from "./swarm.ts";
import { inTurns, numberOf } from "./turns.ts";

/** About a minute of one processor. `SCHEDULES=20000000 SEED=… npx vitest run test/races/random.test.ts` is a long run. */
const SCHEDULES = numberOf("SCHEDULES", 50_000);

const DAY_MS = 86_400_000;

test("no schedule breaks a promise, whatever fails and whoever comes in between", {
  timeout: DAY_MS,
}, async () => {
  const library = libraryIn();
  const met = new Map<string, number>();
  const ends = new Map<string, number>();
  const first = seed();
  let schedule = 0;
  await inTurns(() => {
    const choices = seededChoices(first + schedule);
    const setup = drawnSetup(choices);
    const outcome = played(setup, { library, choices });
    if (outcome.violation !== null) throw new Error(findingOf(first + schedule));
    for (const [what, times] of outcome.met) met.set(what, (met.get(what) ?? 0) + times);
    for (const state of outcome.ends) count(ends, `${setup.kind} ${state}`);
    schedule += 1;
    return schedule < SCHEDULES;
  });
  if (SCHEDULES === 1) console.log(toldBy(first).join("\n"));
  if (SCHEDULES < 10_000) return;
  // A run in which nothing went wrong would prove nothing.
  const faults = [
    ...STORE_FATES.map((fate) => `store: ${fate}`),
    ...CALL_FATES.map((fate) => `provider: ${fate}`),
  ];
  const rare = [...faults, ...DISTURBANCES, ...OTHERS].filter(
    (what) => (met.get(what) ?? 0) < SCHEDULES / 400,
  );
  expect(rare).toEqual([]);
  expect(KINDS.filter((kind) => (ends.get(`${kind} completed`) ?? 0) < SCHEDULES / 400)).toEqual([]);
});

const OTHERS = [
  "transaction held open",
  "transaction ended by the server",
  "provider: hidden",
  "provider: pending",
];

function count(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

/** How to see it again, and the plainest schedule that breaks the same promise. */
function findingOf(seedOfIt: number): string {
  const breaking = { library: libraryIn(), kinds: KINDS };
  const broken = brokenBy(seedOfIt, breaking);
  if (broken === null)
    return `SEED=${seedOfIt} broke a promise once, and not again: something is not determined by its seed.`;
  const plainest = shrunk(broken, breaking);
  const { invariant, what } = plainest.violation;
  return [
    `SEED=${seedOfIt} SCHEDULES=1 breaks ${broken.violation.invariant}: ${broken.violation.what}`,
    `${plainest.choices.length} of its ${broken.choices.length} choices break ${invariant}, too: ${what}`,
    ...told(plainest.choices, breaking),
  ].join("\n");
}

/** A schedule that breaks nothing, told for whoever wants to read one. */
function toldBy(seedOfIt: number): readonly string[] {
  const lines: string[] = [];
  const choices = seededChoices(seedOfIt);
  played(drawnSetup(choices), { library: libraryIn(), choices, trace: (line) => lines.push(line) });
  return lines;
}
