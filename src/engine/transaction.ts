import type { Answer, Due, KeyRecord, RecordWrite, StepOf } from "../core/record.ts";
import { conclude, seen, touch } from "../core/transition.ts";
import type { Awaitable, UnitEnd } from "../stores/store.ts";
import { call, replace, type TransactionFlow, transaction, type Unit } from "./command.ts";
import { type Held, ownedStill } from "./ending.ts";
import { type Budget, persist } from "./retry.ts";

/** What the programmer's part of a transaction came to: an answer to keep, or a refusal that undoes its effects. */
export type Worked<T> =
  | {
      readonly kind: "keep";
      readonly state: "completed" | "failed_permanent";
      readonly answer: Answer;
      readonly value: T;
      /** The step that the answer rests on, when it ends in the same write. */
      readonly step?: { readonly name: string; readonly mark: StepOf<Due> };
    }
  | { readonly kind: "undo"; readonly value: T };

export type Transacted<T> =
  | { readonly kind: "committed"; readonly record: KeyRecord; readonly value: T | null }
  | { readonly kind: "undone"; readonly value: T }
  /** The fence kept the effects out: the key belongs to somebody else by now. */
  | { readonly kind: "lost"; readonly record: KeyRecord | null };

export interface Work<Tx, T> {
  readonly name: string;
  readonly run: (tx: Tx) => Awaitable<Worked<T>>;
  readonly newId: () => string;
  readonly retainMs: number;
}

/**
 * Commits the effect, the record and the answer together: the fenced record first, the effect second, the answer in
 * the same commit. A conflict or a lost reply runs the whole unit again under the same claim; if the commit had
 * happened after all, the fence finds our finished record and nothing runs twice.
 */
export function* transactionFlow<Tx, T>(
  held: Held,
  work: Work<Tx, T>,
  budget: Budget,
  withinMs: number,
): TransactionFlow<Transacted<T>, Tx> {
  let current = held;
  for (;;) {
    const from = current;
    const end = yield* persist(budget, () => transaction(withinMs, (tx: Tx) => unit(tx, from, work)));
    if (end.kind !== "lost" || end.record === null) return end;
    if (end.record.owner === held.owner && isConcluded(end.record)) {
      return { kind: "committed", record: end.record, value: null };
    }
    if (!ownedStill(end.record, held) || end.record.revision === from.revision) return end;
    current = end.record;
  }
}

function* unit<Tx, T>(tx: Tx, held: Held, work: Work<Tx, T>): Unit<UnitEnd<Transacted<T>>> {
  const fenced = yield* replace(seen(held), touch(held, { writeId: work.newId() }), "wait");
  if (fenced.kind !== "replaced") return { kind: "rollback", value: { kind: "lost", record: fenced.record } };
  const worked = yield* call(work.name, () => work.run(tx));
  if (worked.kind === "undo") return { kind: "rollback", value: { kind: "undone", value: worked.value } };
  if (!ownedStill(fenced.record, held))
    throw new Error("A store handed back another version than it was given.");
  const write = concluding(fenced.record, worked, work);
  const done = yield* replace(seen(fenced.record), write, "wait");
  if (done.kind !== "replaced") return { kind: "rollback", value: { kind: "lost", record: done.record } };
  return { kind: "commit", value: { kind: "committed", record: done.record, value: worked.value } };
}

function concluding<Tx, T>(
  held: Held,
  { state, answer, step }: Extract<Worked<T>, { kind: "keep" }>,
  { newId, retainMs }: Work<Tx, T>,
): RecordWrite {
  const change = { writeId: newId(), state, answer, retainMs };
  return conclude(held, step === undefined ? change : { ...change, step });
}

function isConcluded(record: KeyRecord): boolean {
  return record.state === "completed" || record.state === "failed_permanent";
}
