import { type Learnt, learn } from "../core/learning.ts";
import type { Instant, KeyRecord, Unknown } from "../core/record.ts";
import { type OpenMark, repeatableUntil } from "../core/step.ts";
import { release, seen } from "../core/transition.ts";
import { call, replace, type TransactionFlow } from "../engine/command.ts";
import type { Context } from "../engine/context.ts";
import { downstreamKey } from "../engine/downstream-key.ts";
import type { DeclaredStep } from "../engine/settler.ts";

/** Steps as this process knows them, by the operation's name. */
export type KnownSteps = ReadonlyMap<string, ReadonlyMap<string, DeclaredStep>>;

/** What a look at the steps of one record came to, after what was learnt is on record. */
export type StepsLooked =
  /** No call is in doubt any more: the record is released, and the next request goes on. */
  | { readonly kind: "released"; readonly record: KeyRecord }
  /** Somebody else has moved the record. */
  | { readonly kind: "passed" }
  /** Calls that are still in doubt; the most hopeful word about them decides what follows. */
  | { readonly kind: "in_doubt"; readonly record: Unknown; readonly said: Said; readonly error: unknown };

/** Of a call in doubt: what stands in the way of its end. */
export type Said = "unreachable" | "pending" | "not_found" | "cannot_ask";

/**
 * True for the records that a look at declared steps may bring on: of a route or a function (an operation has opened with
 * a reference), whose every open call this process can ask about, or which nobody can be asked about.
 */
export function hasKnownSteps(known: KnownSteps, record: KeyRecord): boolean {
  if (record.effects !== "declared" || record.reference !== null) return false;
  const steps = known.get(record.operation);
  return [...record.steps].every(([name, step]) => {
    if (step.state !== "open") return true;
    return step.provider === "repeatable" || step.provider === "blind" || steps?.get(name)?.look != null;
  });
}

/** Asks a provider, and gives up in time. */
export type Bounded = <T>(asked: Promise<T>) => Promise<T>;

/**
 * Asks about every call in doubt of a record that this worker has taken over, outside any transaction, and keeps what it
 * learns call by call. There is nothing to finish: with no call in doubt the record is released.
 */
export function* lookAtSteps<Tx>(
  context: Context<Tx>,
  known: KnownSteps,
  taken: { readonly record: Unknown; readonly now: Instant },
  bounded: Bounded,
): TransactionFlow<StepsLooked, Tx> {
  const inDoubt: Doubted[] = [];
  let { record } = taken;
  for (const [name, mark] of taken.record.steps) {
    if (mark.state !== "open") continue;
    const step = known.get(record.operation)?.get(name) ?? null;
    const asked = yield* ask(context, { record, now: taken.now, name, mark, step, bounded });
    if (asked.kind === "in_doubt") {
      inDoubt.push(asked);
      continue;
    }
    const change = { writeId: context.runtime.newId(), step: name, learnt: asked };
    const written = yield* replace(seen(record), learn(record, change), "never");
    if (written.kind !== "replaced" || written.record.state !== "unknown") return { kind: "passed" };
    record = written.record;
  }
  const [first, ...others] = inDoubt;
  if (first === undefined) return yield* released(context, record);
  return {
    ...others.reduce((one, other) => (HOPE[other.said] < HOPE[one.said] ? other : one), first),
    record,
  };
}

/** As long as one call can still be asked about, nobody need decide about the others. */
const HOPE: Readonly<Record<Said, number>> = { unreachable: 0, pending: 1, not_found: 2, cannot_ask: 3 };

type Doubted = Omit<Extract<StepsLooked, { readonly kind: "in_doubt" }>, "record">;

interface Asking {
  readonly record: Unknown;
  readonly now: Instant;
  readonly name: string;
  readonly mark: OpenMark;
  readonly step: DeclaredStep | null;
  readonly bounded: Bounded;
}

/** What the provider says of one call; not found there means to cancel where that can be. */
function* ask<Tx>(
  { namespace }: Context<Tx>,
  { record, now, name, mark, step, bounded }: Asking,
): TransactionFlow<Learnt | Doubted, Tx> {
  const [look, cancel] = [step?.look ?? null, step?.cancel ?? null];
  if (look === null) return doubted(isCalledAgain(mark, now) ? "pending" : "cannot_ask");
  const attempt = { number: record.attempt, downstreamKey: downstreamKey(namespace, record, name) };
  try {
    const sighted = yield* call(`look for ${name} of ${record.operation}`, () => bounded(look(attempt)));
    if (sighted.kind === "finished" || sighted.kind === "refused") return sighted;
    if (sighted.kind === "pending" || cancel === null) return doubted(sighted.kind);
    return yield* call(`cancel ${name} of ${record.operation}`, () => bounded(cancel(attempt)));
  } catch (error) {
    return { ...doubted("unreachable"), error };
  }
}

/** By the next request, under the same key. */
function isCalledAgain(mark: OpenMark, now: Instant): boolean {
  return now < repeatableUntil([mark]);
}

function doubted(said: Said): Doubted {
  return { kind: "in_doubt", said, error: null };
}

function* released<Tx>({ runtime, policy }: Context<Tx>, record: Unknown): TransactionFlow<StepsLooked, Tx> {
  const change = { writeId: runtime.newId(), retainMs: policy.releasedRetentionMs };
  const written = yield* replace(seen(record), release(record, change), "never");
  return written.kind === "replaced" ? { kind: "released", record: written.record } : { kind: "passed" };
}
