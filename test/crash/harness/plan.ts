import { CUTS } from "../support/cutting.ts";
import type { DatabaseKind } from "../support/effects-database.ts";
import { CLOCKS } from "./clocks.ts";
import { isOfStep, pointsOn } from "./points.ts";

/** What a run must go through before it may end. */
export interface Plan {
  readonly database: DatabaseKind;
  readonly seed: number;
  /** Where processes are killed, and how often at each point. */
  readonly points: readonly string[];
  readonly killsAtEach: number;
  /** Kills of servers and workers at any moment. */
  readonly kills: number;
  readonly bankKills: number;
  /** Pauses longer than a lease and the sweeper's grace. */
  readonly pauses: number;
  readonly cutsOfEach: number;
  /** Ends of the database, of each of three kinds in turn. */
  readonly crashes: number;
  readonly keys: number;
  /**
   * What was released is forgotten before a client that is late comes back, and its key is claimed anew. No effects are
   * declared then: their results would be forgotten with it, as the promise is that it is kept longer than clients retry.
   */
  readonly forgets: boolean;
  /** A name in `child/mutants.mjs`. */
  readonly mutant: string;
  /** A preloaded library by which the clocks of two processes are an hour off; `null` where they are not. */
  readonly faketime: string | null;
  /** By then there must have been enough of everything. */
  readonly withinMs: number;
}

export const RESTARTS = ["SIGINT", "SIGQUIT", "SIGKILL"] as const;

/** The faults of a plan by name, and how many of each there must be. */
export function wantedFaults(plan: Plan): Readonly<Record<string, number>> {
  const wanted = {
    ...Object.fromEntries(plan.points.map((point) => [`killed: ${point}`, plan.killsAtEach])),
    ...{ "killed: at random": plan.kills, "killed: bank": plan.bankKills, paused: plan.pauses },
    ...Object.fromEntries(CUTS.map((kind) => [kind, plan.cutsOfEach])),
    ...Object.fromEntries(
      RESTARTS.map((signal, index) => [`database: ${signal}`, Math.floor((plan.crashes + 2 - index) / 3)]),
    ),
    ...Object.fromEntries(plan.faketime === null ? [] : CLOCKS.map((clock) => [`clock: ${clock}`, 1])),
    ...{ keys: plan.keys },
  };
  return Object.fromEntries(Object.entries(wanted).filter(([, least]) => least > 0));
}

/** How long things take in a run. */
export interface Times {
  readonly requestTimeout: number;
  readonly lease: number;
  readonly sweepGrace: number;
  readonly reconcileInterval: number;
  readonly storeTimeout: number;
  readonly completionTimeout: number;
  readonly retention: string;
  readonly releasedRetention: number | string;
  readonly maxReconcileLooks: number;
}

/**
 * Short, so that what a dead process left is judged within the run, and so much longer than that as the machine is busy:
 * on one that gives us a quarter of a processor everything takes four times as long.
 */
export function timesAt(pace: number, { forgets }: Pick<Plan, "forgets">): Times {
  return {
    requestTimeout: 1_200 * pace,
    lease: 1_500 * pace,
    sweepGrace: 200 * pace,
    reconcileInterval: 150,
    storeTimeout: 1_000 * pace,
    completionTimeout: 1_000 * pace,
    retention: "1h",
    releasedRetention: forgets ? 2_500 * pace : "1h",
    maxReconcileLooks: 6,
  };
}

/** Most of a request; what the bank delays goes on beyond the first renewal. */
export function bankTimesIn({ requestTimeout }: Times) {
  return { timeoutMs: requestTimeout * 0.8, delayMs: requestTimeout * 0.5 };
}

/**
 * How many times as long everything may take as on a machine of our own, a whole number up to MOST_PACE: work waits for
 * its share of a busy processor, and each message between processes for the turn of its receiver besides.
 */
export function paceOfMachine(): number {
  const fromMs = performance.now();
  const from = process.cpuUsage();
  const usedMs = () => {
    const { user, system } = process.cpuUsage(from);
    return (user + system) / 1_000;
  };
  while (usedMs() < PACE_WORK_MS) for (let turn = 0; turn < 1e5; turn++);
  const share = (performance.now() - fromMs) / usedMs();
  return Math.min(MOST_PACE, Math.max(1, Math.round(2 * share - 1)));
}

const PACE_WORK_MS = 400;
const MOST_PACE = 8;

/** Of all requests to the bank so many are lost on their way. */
export const LOST_REQUESTS = 0.1;

/** Many times what a round takes; a fault that has not happened by then does not happen any more. */
const ENOUGH_WITHIN_MS = 15 * 60_000;

const NOTHING = {
  ...{ killsAtEach: 0, kills: 0, bankKills: 0, pauses: 0, cutsOfEach: 0, crashes: 0 },
  ...{ keys: 0, forgets: false, mutant: "none", faketime: null, withinMs: ENOUGH_WITHIN_MS },
} as const;

/** What is wanted, and nothing else. */
export function planOf(plan: Pick<Plan, "database" | "seed"> & Partial<Plan>): Plan {
  const points = pointsOn(plan.database).filter((point) => plan.forgets !== true || !isOfStep(point));
  return { ...NOTHING, points, ...plan };
}

/** One round in so many forgets what was released. */
const FORGETS = 10;

export function forgetsIn(seed: number): boolean {
  return seed % FORGETS === FORGETS - 1;
}

/** A round of `npm test`, and of the long run, which has many. */
export const ROUND: Readonly<Record<DatabaseKind, Partial<Plan>>> = {
  PostgreSQL: {
    ...{ killsAtEach: 2, kills: 8, bankKills: 2, pauses: 20, cutsOfEach: 34, crashes: 5 },
    ...{ keys: 200 },
  },
  SQLite: { killsAtEach: 1, kills: 6, bankKills: 2, keys: 100 },
};
/**
 * Twenty of them, of which two forget and reach no point of a step, must come to fifty kills at each point, a thousand in all,
 * 300 pauses, a thousand replies that were cut off or swallowed, a hundred ends of the database, and 10 000 keys.
 */
export const LONG_ROUND: Readonly<Record<DatabaseKind, Partial<Plan>>> = {
  PostgreSQL: { ...ROUND.PostgreSQL, killsAtEach: 3, kills: 10, keys: 400 },
  SQLite: { ...ROUND.SQLite, killsAtEach: 2, kills: 10, keys: 200 },
};
