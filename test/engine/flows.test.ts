import { describe, expect, test } from "vitest";
import type { Effects, InProgress, KeyRecord } from "../../src/core/record.ts";
import { conclude } from "../../src/core/transition.ts";
import { type Asked, type Claimed, claimFlow } from "../../src/engine/claim.ts";
import type { TransactionFlow } from "../../src/engine/command.ts";
import { writeFlow } from "../../src/engine/ending.ts";
import { openingFlow } from "../../src/engine/opening.ts";
import type { Budget } from "../../src/engine/retry.ts";
import { transactionFlow, type Work } from "../../src/engine/transaction.ts";
import { OncekeyError } from "../../src/errors.ts";
import { type SeededRandom, seed, seededRandom } from "../support/seed.ts";
import { answerOf, textOf } from "./engines.ts";
import { createWorld, type Fate, type Rows, type Schedule, surviving, type World } from "./scheduler.ts";

const SCHEDULES = 1_500;
const LEASE_MS = 1_000;
const IDENTITY = { kind: "http", principal: "alice", key: "scheduled" } as const;

interface Told {
  readonly winners: number[];
  readonly answers: string[];
}

/** One process: claims by its flow, and brings its answer where it wins. */
type Program = (world: World, told: Told, name: string) => TransactionFlow<void, Rows>;

describe("flows driven by a scheduler, with crashes, lost replies and late writes anywhere", () => {
  test("claimFlow has one winner for ever, and no answer is lost (effects none)", () =>
    playAll(plain, ({ world, told, record, last }) => {
      expect(told.winners.length).toBeLessThanOrEqual(1);
      expect(["replay", "outcome_unknown", "claimed"]).toContain(last);
      if (last === "claimed") expect(told.winners).toEqual([record?.attempt]);
      expect(world.rows()).toEqual([]);
    }));

  test("transactionFlow has one effect and one answer, whoever runs again", () =>
    playAll(local, ({ world, told, record }) => {
      expect(new Set(told.winners).size).toBe(told.winners.length);
      expect(world.rows()).toHaveLength(1);
      expect(record?.state).toBe("completed");
      expect(told.answers.length).toBeGreaterThan(0);
    }));

  test("openingFlow opens once with its claim, and finishes once with its answer", () =>
    playAll(opened, ({ world, told, record }) => {
      expect(told.winners.length).toBeLessThanOrEqual(1);
      const count = (what: string) => world.rows().filter((row) => row.startsWith(what)).length;
      expect([count("open"), count("finish")]).toEqual([1, record?.state === "completed" ? 1 : 0]);
      expect(record?.reference).not.toBeNull();
    }));
});

/** `last` is what a last, undisturbed process was answered. */
type Ended = {
  readonly world: World;
  readonly told: Told;
  readonly record: KeyRecord | null;
  readonly last: string;
};

async function playAll(program: Program, check: (ended: Ended) => void): Promise<void> {
  const met = new Map<Fate, number>();
  for (let schedule = 0; schedule < SCHEDULES; schedule += 1) {
    try {
      check(await playOne(program, seededRandom(seed() + schedule), met));
    } catch (error) {
      throw new Error(`Schedule ${schedule} of SEED=${seed()} broke a promise.`, { cause: error });
    }
  }
  // A run without faults would prove nothing.
  expect(Math.min(...FATES.map((fate) => met.get(fate) ?? 0))).toBeGreaterThan(100);
}

const FATES: readonly Fate[] = ["done", "not applied", "reply lost", "late", "crash before", "crash after"];

/** Each schedule draws its own mixture of faults, the kinds that it leaves out included. */
function drawn(random: SeededRandom): Schedule {
  const faults = FATES.filter((fate) => fate !== "done" && random.below(2) === 0);
  const calm = 2 + random.below(8);
  const fates = [...Array<Fate>(calm).fill("done"), ...faults];
  return { random, fates, leapMs: random.pick([2, 200, 2 * LEASE_MS]) };
}

async function playOne(program: Program, random: SeededRandom, met: Map<Fate, number>): Promise<Ended> {
  const world = createWorld();
  const told: Told = { winners: [], answers: [] };
  const names = ["a", "b", "c"].slice(0, 2 + random.below(2));
  const fates = await world.play(
    names.map((name) => surviving(program(world, told, name))),
    drawn(random),
  );
  for (const [fate, count] of fates) met.set(fate, (met.get(fate) ?? 0) + count);
  const before = told.winners.length;
  let last = "in_progress";
  // What is late may claim once more before the last process does; then that claim lapses, too.
  for (let round = 0; last === "in_progress" && round < 9; round += 1) {
    world.pass(LEASE_MS + 1);
    const hear = (kind: string) => (last = kind);
    await world.play([surviving(program(world, told, "last"), hear)], { random, fates: ["done"], leapMs: 2 });
  }
  await world.settle();
  const { record } = await world.store().read(IDENTITY);
  if (record?.state === "completed") told.answers.push(textOf(record.answer) ?? "");
  expect(new Set(told.answers).size).toBeLessThanOrEqual(1);
  return { world, told, record, last: told.winners.length > before ? "claimed" : last };
}

const plain: Program = function* (world, told, name) {
  const budget = budgetOf(world);
  const claimed = yield* claimFlow(asking("none", name), budget);
  const record = won(claimed, told);
  if (record === null) return;
  const change = {
    state: "completed",
    answer: answerOf(name),
    keep: { retainMs: 1e9, tombstoneMs: null },
  } as const;
  const next = (held: Parameters<typeof conclude>[0]) => conclude(held, { ...change, writeId: newId(name) });
  const written = yield* writeFlow(record, next, budget);
  if (written.kind === "written") told.answers.push(name);
};

const local: Program = function* (world, told, name) {
  const budget = budgetOf(world);
  const record = won(yield* claimFlow(asking("transaction", name), budget), told);
  if (record === null) return;
  yield* committing(record, adding("effect", name), { budget, told });
};

const opened: Program = function* (world, told, name) {
  const budget = budgetOf(world);
  const mark = {
    state: "open",
    provider: "blind",
    generation: 0,
    openedAt: { inMs: 0 },
    keyTtlMs: null,
    validUntil: null,
  } as const;
  const asked = asking("declared", name);
  const claim = { ...asked.claim, steps: new Map([["perform", mark]]) };
  const open = (tx: Rows, { reference }: KeyRecord) => {
    if (reference === null) tx.added.push(`open ${name}`);
    return reference ?? new TextEncoder().encode(name);
  };
  const opening = { asked: { ...asked, claim }, open, withinMs: LEASE_MS };
  const record = won(yield* openingFlow(opening, budget), told);
  if (record === null) return;
  yield* committing(record, adding("finish", name), { budget, told });
};

function* committing(
  record: InProgress,
  work: Work<Rows, null>,
  { budget, told }: { readonly budget: Budget; readonly told: Told },
): TransactionFlow<void, Rows> {
  const end = yield* transactionFlow(record, work, budget, LEASE_MS);
  if (end.kind === "committed" && "answer" in end.record) told.answers.push(textOf(end.record.answer) ?? "");
}

/** The claim that was won, or `null`; an answer that was replayed is told. */
function won(claimed: Claimed, { winners, answers }: Told) {
  if (claimed.kind === "final") {
    const { decision } = claimed;
    if (decision.kind === "replay") answers.push(textOf(decision.answer) ?? "");
    if (decision.kind === "in_progress" || decision.kind === "outcome_unknown")
      throw new OncekeyError(decision.kind, "Not now.");
    return null;
  }
  winners.push(claimed.record.attempt);
  return claimed.record;
}

function adding(what: string, name: string): Work<Rows, null> {
  const run = (tx: Rows) => {
    tx.added.push(`${what} ${name}`);
    return { kind: "keep", state: "completed", answer: answerOf(name), value: null } as const;
  };
  return { name: what, run, newId: () => newId(name), keep: { retainMs: 1e9, tombstoneMs: null } };
}

let ids = 0;

function newId(name: string): string {
  ids += 1;
  return `${name} ${ids}`;
}

function budgetOf(world: World): Budget {
  return { untilMs: world.nowMs() + 20 * LEASE_MS, tries: 6 };
}

function asking(effects: Effects, name: string): Asked {
  const digest = new Uint8Array(32);
  const fingerprint = { version: "1", salt: digest, raw: digest, canonical: digest };
  const owner = newId(name);
  return {
    claim: {
      ...{ identity: IDENTITY, operation: "pay", effects, fingerprint, owner, writeId: owner },
      ...{ correlationId: null, leaseMs: LEASE_MS, steps: new Map() },
    },
    ...{ match: () => "same", reenters: () => false, onAmbiguous: "keep" },
    ...{ newId: () => newId(name), heldRetainMs: 1e9 },
  };
}
