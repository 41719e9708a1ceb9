import { standingStep } from "../core/kept.ts";
import { keepOf } from "../core/policy.ts";
import { type Due, isConcluded, type KeyRecord, type RecordWrite, type StepOf } from "../core/record.ts";
import { type Doubt, doubt, lookAgain, release, review } from "../core/transition.ts";
import type { FencedEnd } from "../stores/store.ts";
import { call, following, pause, type TransactionFlow, type Unit } from "./command.ts";
import type { Context } from "./context.ts";
import { type Held, type Written, writeFlow } from "./ending.ts";
import type { Settler } from "./settler.ts";
import { fencedFlow, transactionFlow, type Worked } from "./transaction.ts";

/** Finishing may meet contention through no fault of its own: duplicates can lock the row by a foreign key. */
const FINISH_TRIES = 5;
const FINISH_PAUSE_MS = 20;

/** A spent finish is looked at again when its contention should be over. */
const NEXT_LOOK_MS = 1_000;

/** Back-off between two looks ends here, so that a provider that comes back is asked within the hour. */
export const LONGEST_BACKOFF_MS = 3_600_000;

/** The second budget, which writes `unknown`, is independent of the first and as small. */
const DOUBT_TRIES = 5;
const DOUBT_MS = 2_000;

/** What an operation is finished with. */
export interface Finishing {
  /** What the provider said, encoded. */
  readonly result: Uint8Array;
  /** On our own monotonic clock; a lease from now where no lease covers it. */
  readonly untilMs?: number;
}

/**
 * Finishes an operation with what the provider said: the domain's rows and the record in one transaction. Only this is
 * tried again, never `open` or `perform`. When the tries are spent, or their time, a second budget writes `unknown`, with
 * the result kept for the reconciler; when that is spent too its failure is thrown, and the sweeper will find the record.
 */
export function* finishFlow<Tx>(
  context: Context<Tx>,
  settler: Settler<Tx>,
  held: Held,
  { result, untilMs = context.runtime.monotonicMs() + context.policy.leaseMs }: Finishing,
): TransactionFlow<Written, Tx> {
  for (let tried = 1; ; tried++) {
    try {
      return yield* finishOnce(context, settler, held, { result, untilMs });
    } catch (error) {
      if (tried >= FINISH_TRIES || context.runtime.monotonicMs() >= untilMs) {
        context.emit({ type: "failure", what: `finishing ${held.operation}`, error });
        return yield* keepResult(context, held, result);
      }
      yield* pause(FINISH_PAUSE_MS * 2 ** tried);
    }
  }
}

function* finishOnce<Tx>(
  { runtime, policy }: Context<Tx>,
  settler: Settler<Tx>,
  held: Held,
  { result, untilMs }: Required<Finishing>,
): TransactionFlow<Written, Tx> {
  const run = (tx: Tx) =>
    following(settler.finish(tx, held, result), (answer): Worked<null> => {
      const refused = answer.status >= 400;
      const mark = markOf(held, settler.step, refused ? "refused" : "finished", result);
      return {
        kind: "keep",
        state: refused ? "failed_permanent" : "completed",
        answer,
        value: null,
        ...mark,
      };
    });
  const work = { name: `finish ${held.operation}`, newId: runtime.newId, keep: keepOf(policy), run };
  const end = yield* transactionFlow<Tx, null>(held, work, { untilMs: 0, tries: 1 }, untilMs);
  switch (end.kind) {
    case "committed":
      return { kind: "written", record: end.record };
    case "lost":
      return end;
    case "undone":
      throw new Error("A finish was undone although it cannot ask for that.");
  }
}

/** Writes `unknown` with the provider's word kept, so that the reconciler need not ask again. */
function* keepResult<Tx>(
  { runtime, policy }: Context<Tx>,
  held: Held,
  result: Uint8Array,
): TransactionFlow<Written, Tx> {
  const reason = "The effect happened; its finishing transaction failed.";
  const told: Doubt = {
    evidence: { reason, result },
    disposition: "reconcile",
    nextLookAt: { inMs: NEXT_LOOK_MS },
  };
  const heldRetainMs = policy.unknownRetentionMs;
  const next = (record: Held) => {
    const writeId = runtime.newId();
    if (record.state === "in_progress") return doubt(record, { writeId, doubt: told, heldRetainMs });
    const knowing = { ...record, evidence: told.evidence, disposition: told.disposition };
    if (record.looks + 1 >= policy.maxReconcileLooks) return review(knowing, { writeId, reason });
    const nextLookInMs = Math.min(LONGEST_BACKOFF_MS, NEXT_LOOK_MS * 2 ** record.looks);
    return lookAgain(knowing, { writeId, answered: true, nextLookInMs, reason });
  };
  const budget = { untilMs: runtime.monotonicMs() + DOUBT_MS, tries: DOUBT_TRIES };
  const written = yield* writeFlow(held, next, budget);
  const { record } = written;
  // The reply of a finish was lost, and it was applied after all.
  if (record?.owner === held.owner && isConcluded(record)) return { kind: "written", record };
  return written;
}

/** What is proved when an operation's effect is known not to have happened. */
export type Proof = "nothing_sent" | "cancelled" | "not_found";

/** Releases an operation whose effect did not happen: the domain's rows and the record in one transaction. */
export function* abandonFlow<Tx>(
  { runtime, policy }: Context<Tx>,
  settler: Settler<Tx>,
  held: Held,
  proof: Proof,
): TransactionFlow<Written, Tx> {
  const budget = { untilMs: runtime.monotonicMs() + policy.leaseMs, tries: FINISH_TRIES };
  const cancelled = new Set(proof === "cancelled" ? [settler.step] : []);
  const releasing = (from: Held) =>
    release(from, { writeId: runtime.newId(), retainMs: policy.releasedRetentionMs, cancelled });
  const end = yield* fencedFlow<Tx, null>(held, budget, budget.untilMs, (tx, from) =>
    abandoning(tx, from, settler, releasing),
  );
  switch (end.kind) {
    case "committed":
      return { kind: "written", record: end.record };
    case "rolled_back":
      throw new Error("An operation was not abandoned although it cannot ask for that.");
    case "lost": // of its own released record the reply was lost
      if (end.record?.owner !== held.owner || end.record.state !== "released") return end;
      return { kind: "written", record: end.record };
  }
}

function* abandoning<Tx>(
  tx: Tx,
  from: Held,
  settler: Settler<Tx>,
  releasing: (from: Held) => RecordWrite,
): Unit<FencedEnd<null>> {
  yield* call(`abandon ${from.operation}`, () => settler.abandon(tx, from));
  return { kind: "commit", write: releasing(from), value: null };
}

function markOf(
  record: KeyRecord,
  name: string,
  state: "finished" | "refused",
  result: Uint8Array,
): { readonly step?: { readonly name: string; readonly mark: StepOf<Due> } } {
  const step = record.steps.get(name);
  if (step === undefined || step.state === "clear") return {};
  return { step: { name, mark: { ...openMark(step), state, result } } };
}

function openMark(step: Parameters<typeof standingStep>[0]) {
  const mark = standingStep(step);
  if (mark.state === "clear") throw new Error("A clear step has no mark to finish.");
  return mark;
}
