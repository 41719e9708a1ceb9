import fc from "fast-check";
import { expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { Ran } from "../../src/engine/run.ts";
import { NotPerformed, PermanentFailure } from "../../src/errors.ts";
import { type Faults, faultyStore } from "../support/faulty-store.ts";
import { seed } from "../support/seed.ts";
import { engineOn } from "./engines.ts";
import { onEveryStore } from "./stores.ts";

/** One call of a function, and what goes wrong with it. */
const call = fc.record({
  key: fc.constantFrom("a", "b", "c"),
  engine: fc.constantFrom(0, 1),
  ends: fc.constantFrom("returns", "returns", "nothing done", "refused", "throws"),
  fault: fc.constantFrom("none", "reply_lost", "not_applied", "contention"),
  verb: fc.constantFrom("insert", "replace"),
});

type Call = typeof call extends fc.Arbitrary<infer T> ? T : never;

/** Calls that are made at once, one group after the other. */
const history = fc.array(fc.array(call, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 6 });

onEveryStore((given) => {
  test("a function is never called again for an identity that is finished, and every caller hears the same", async () => {
    let plays = 0;
    let overlaps = 0;
    await fc.assert(
      fc.asyncProperty(history, async (groups) => {
        plays += 1;
        const { store, other } = given();
        const faulty = [faultyStore(store), faultyStore(other)];
        const engines = faulty.map((each) => engineOn(each.store).engine);
        const told = new Map<string, Told>();
        for (const group of groups) {
          const heard = group.map((one) => play({ one, play: plays, engines, faulty, told }));
          overlaps += (await Promise.all(heard)).filter(({ kind }) => kind === "in_progress").length;
        }
        for (const { finishes, afterwards, answers } of told.values()) {
          expect(finishes).toBeLessThanOrEqual(1);
          expect(afterwards).toBe(0);
          expect(new Set(answers).size).toBeLessThanOrEqual(1);
        }
      }),
      { seed: seed(), numRuns: 60 },
    );
    expect(overlaps).toBeGreaterThan(0);
  });
});

/** What became of one key. */
interface Told {
  /** Runs that came to an outcome. */
  finishes: number;
  /** Runs that began although there was an outcome. */
  afterwards: number;
  readonly answers: string[];
}

interface Play {
  readonly one: Call;
  readonly play: number;
  readonly engines: readonly Engine[];
  readonly faulty: readonly Faults[];
  readonly told: Map<string, Told>;
}

async function play({
  one,
  play,
  engines,
  faulty,
  told,
}: Play): Promise<Ran<unknown> | { readonly kind: "threw" }> {
  const key = told.get(one.key) ?? { finishes: 0, afterwards: 0, answers: [] };
  told.set(one.key, key);
  if (one.fault !== "none") faulty[one.engine]?.plan(one.verb, 1, one.fault);
  const work = () => {
    if (key.finishes > 0) key.afterwards += 1;
    switch (one.ends) {
      case "returns":
        key.finishes += 1;
        return `value ${key.finishes}`;
      case "nothing done":
        throw new NotPerformed("nothing done");
      case "refused":
        key.finishes += 1;
        throw new PermanentFailure(`refusal ${key.finishes}`);
      case "throws":
        key.finishes += 1;
        throw new TypeError("nobody knows");
    }
  };
  const request = { operation: "property", principal: "alice", key: `${play} ${one.key}` };
  try {
    const ran = await engines[one.engine]?.attemptRun(request, work);
    if (ran === undefined) throw new Error("There are two engines.");
    if (ran.kind === "first" || ran.kind === "replayed") key.answers.push(`value: ${ran.value}`);
    if (ran.kind === "refused") key.answers.push(`refused: ${ran.failure}`);
    if (ran.kind === "outcome_unknown") key.answers.push("unknown");
    return ran;
  } catch (error) {
    if (error instanceof NotPerformed) return { kind: "threw" };
    if (!(error instanceof TypeError)) throw error;
    key.answers.push("unknown");
    return { kind: "threw" };
  }
}
