import type { Keep } from "../core/policy.ts";
import {
  type Answer,
  type Due,
  isConcluded,
  type KeyRecord,
  type RecordWrite,
  type StepOf,
} from "../core/record.ts";
import { conclude, seen } from "../core/transition.ts";
import type { Awaitable, Fenced, FencedEnd } from "../stores/store.ts";
import { call, fencedUntil, type TransactionFlow, type Unit } from "./command.ts";
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
  readonly keep: Keep;
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
  untilMs: number,
): TransactionFlow<Transacted<T>, Tx> {
  const end = yield* fencedFlow<Tx, Worked<T>>(held, budget, untilMs, (tx, from) => unit(tx, from, work));
  switch (end.kind) {
    case "committed":
      return { kind: "committed", record: end.record, value: end.value?.value ?? null };
    case "rolled_back":
      return { kind: "undone", value: end.value.value };
    case "lost":
      if (end.record === null || end.record.owner !== held.owner || !isConcluded(end.record)) return end;
      return { kind: "committed", record: end.record, value: null };
  }
}

/** How a fenced unit of an attempt ended; `lost` tells what stands instead, which may be its own lost commit. */
export type FencedOutcome<T> =
  | Omit<Extract<Fenced<T>, { kind: "committed" }>, "now">
  | Extract<Fenced<T>, { kind: "rolled_back" }>
  | { readonly kind: "lost"; readonly record: KeyRecord | null };

/** Runs a unit on the version that the attempt holds, and again on a later one that is still its own, until `untilMs`. */
export function* fencedFlow<Tx, T>(
  held: Held,
  budget: Budget,
  untilMs: number,
  unitOn: (tx: Tx, from: Held) => Unit<FencedEnd<T>>,
): TransactionFlow<FencedOutcome<T>, Tx> {
  for (let current = held; ; ) {
    const from = current;
    const ground = { kind: "held", seen: seen(from), from } as const;
    const end = yield* persist(budget, () => fencedUntil(untilMs, ground, (tx: Tx) => unitOn(tx, from)));
    if (end.kind === "busy") throw new Error("A store was busy with a version that a unit waits for.");
    if (end.kind !== "refused") return end;
    const { record } = end;
    if (record === null || !ownedStill(record, held) || record.revision === from.revision)
      return { kind: "lost", record };
    current = record;
  }
}

function* unit<Tx, T>(tx: Tx, held: Held, work: Work<Tx, T>): Unit<FencedEnd<Worked<T>>> {
  const worked = yield* call(work.name, () => work.run(tx));
  if (worked.kind === "undo") return { kind: "rollback", value: worked };
  return { kind: "commit", write: concluding(held, worked, work), value: worked };
}

function concluding<Tx, T>(
  held: Held,
  { state, answer, step }: Extract<Worked<T>, { kind: "keep" }>,
  { newId, keep }: Work<Tx, T>,
): RecordWrite {
  const change = { writeId: newId(), state, answer, keep };
  return conclude(held, step === undefined ? change : { ...change, step });
}
