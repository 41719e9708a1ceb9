import type { Case } from "./cases.ts";
import type { Rule } from "./rule.ts";

/** What the processes may say that they did. */
export const traceRules: readonly Rule[] = [
  {
    guarantee: "G1",
    promise: "an attempt runs once",
    faults: ({ runs }) => {
      const seen = new Set<number>();
      return runs.flatMap(({ attempt }) => {
        if (seen.has(attempt)) return [`ran attempt ${attempt} twice`];
        seen.add(attempt);
        return [];
      });
    },
  },
  {
    guarantee: "G7",
    promise: "attempts are numbered in the order of their claims",
    faults: ({ runs }) =>
      runs.flatMap((run, index) =>
        runs
          .slice(0, index)
          .filter((earlier) => earlier.atMs < run.arrivedMs && earlier.attempt >= run.attempt)
          .map((earlier) => `ran attempt ${run.attempt} after attempt ${earlier.attempt}`),
      ),
  },
  {
    guarantee: "G3",
    promise: "nothing runs for a key that has its answer",
    faults: ({ finals: [first], runs }) =>
      first === undefined
        ? []
        : runs
            .filter(({ arrivedMs }) => arrivedMs > first.call.toMs)
            .map(({ attempt }) => `ran attempt ${attempt} when its answer had been given`),
  },
  {
    guarantee: "G2",
    promise: "an effect is of an attempt that ran",
    faults: ({ effects, runs }) =>
      effects
        .filter(({ attempt }) => attempt !== null && !runs.some((run) => run.attempt === attempt))
        .map(({ attempt }) => `has an effect of attempt ${attempt}, which never ran`),
  },
  {
    guarantee: "G3",
    promise: "nobody moves a record that is concluded",
    faults: ({ moves }) =>
      moves
        .filter(({ from }) => from === "completed" || from === "failed_permanent")
        .map(({ by, from, to }) => `was moved from ${from} to ${to} by the ${by}`),
  },
  {
    guarantee: "G5",
    promise: "a dead attempt whose effect may have happened is never released unasked",
    faults: ({ asked, moves }) =>
      moves
        .filter(({ by, to }) => isJudge(by) && to === "released" && mayBeInDoubt(asked))
        .map(({ by, attempt }) => `was released by the ${by}, which asked nobody (attempt ${attempt})`),
  },
  {
    guarantee: "G5",
    promise: "a step that has finished is never called by a later attempt",
    faults: ({ runs, stepped }) => calledAgainIn(runs, stepped),
  },
  {
    guarantee: "G7",
    promise: "nobody is judged dead before the lease is over, nor swept before the grace is",
    faults: (one) => one.moves.flatMap((move) => hastyIn(one, move)),
  },
];

type Move = Case["moves"][number];

function isJudge(by: Move["by"]): boolean {
  return by === "sweeper" || by === "duplicate";
}

/** An attempt that dies between two declared steps has nothing in doubt; what its calls came to is judged by executions. */
function mayBeInDoubt({ effect }: Case["asked"]): boolean {
  return effect !== "local" && effect !== "declared";
}

/** An attempt that began before may call late; its provider refuses that, or knows the key. */
function calledAgainIn(runs: Case["runs"], stepped: Case["stepped"]): readonly string[] {
  const kept = stepped.filter(({ kind }) => kind === "kept");
  return stepped.flatMap(({ kind, step, attempt }) => {
    const run = runs.find((one) => one.attempt === attempt);
    if (kind !== "called" || run === undefined) return [];
    const earlier = kept.find((one) => one.step === step && one.atMs < run.arrivedMs);
    if (earlier === undefined) return [];
    return [`called its step ${step} in attempt ${attempt}; attempt ${earlier.attempt} had its result`];
  });
}

/** Two clocks are in it, the database's and ours, and one of them may be slewed. */
const CLOCKS_MS = 50;

function hastyIn({ runs, times }: Case, move: Move): readonly string[] {
  if (move.from !== "in_progress" || !isJudge(move.by)) return [];
  const run = runs.find(({ attempt }) => attempt === move.attempt);
  if (run === undefined || run.atMs > move.atMs) return [];
  const aliveMs = times.leaseMs + (move.by === "sweeper" ? times.sweepGraceMs : 0);
  const heardMs = move.atMs - run.arrivedMs;
  if (heardMs >= aliveMs - CLOCKS_MS) return [];
  return [`attempt ${move.attempt} was judged dead by the ${move.by} after ${Math.round(heardMs)} ms`];
}
