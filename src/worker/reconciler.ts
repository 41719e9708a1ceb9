import type { KeyRecord, RecordWrite, Unknown } from "../core/record.ts";
import { look, lookAgain, review, seen } from "../core/transition.ts";
import { call, due, type Flow, replace, type TransactionFlow } from "../engine/command.ts";
import type { Context } from "../engine/context.ts";
import type { Settler, Sighting } from "../engine/settler.ts";
import { abandonFlow, finishFlow, LONGEST_BACKOFF_MS } from "../engine/settling.ts";
import type { Listed } from "../stores/store.ts";
import { BOUNDS, type Bounds } from "./loop.ts";
import { type Bounded, hasKnownSteps, type KnownSteps, lookAtSteps, type StepsLooked } from "./steps.ts";

/** What one tick of the reconciler did. */
export interface Reconciled {
  /** Ended with the provider's truth. */
  readonly settled: number;
  /** Ended because it is proved that nothing happened. */
  readonly released: number;
  /** Looked at, and to be looked at again. */
  readonly waiting: number;
  /** Left to a person. */
  readonly reviewed: number;
  /** Taken by another worker or moved in the meantime. */
  readonly passed: number;
  /** The provider could not be reached, or a record could not be handled; it spends no look. */
  readonly failed: number;
  readonly damaged: number;
  /** The tick's time was up before everything was looked at. */
  readonly more: boolean;
}

export interface Reconciler<Tx> {
  readonly context: Context<Tx>;
  readonly settlers: ReadonlyMap<string, Settler<Tx>>;
  readonly steps: KnownSteps;
}

/**
 * Finds out what became of effects in doubt. Takes each record over first, so that a late original is fenced; asks
 * outside any transaction; ends it by a fenced write. One record that cannot be handled never stops the others.
 */
export function* reconcileFlow<Tx>(
  reconciler: Reconciler<Tx>,
  bounds: Partial<Bounds> = {},
): TransactionFlow<Reconciled, Tx> {
  const { limit } = { ...BOUNDS, ...bounds };
  const listed = yield* listKnown(reconciler, limit);
  const counts = {
    settled: 0,
    released: 0,
    waiting: 0,
    reviewed: 0,
    passed: 0,
    failed: 0,
    damaged: listed.damaged,
  };
  for (const record of listed.records) {
    if (record.state !== "unknown") continue;
    counts[yield* reconcileOne(reconciler, record)]++;
  }
  return { ...counts, more: listed.records.length === limit };
}

/**
 * Records of operations that this worker does not know are left, as they are, to those that do: to put them off would
 * keep them from the others. Up to MOST_ASKED of them do not crowd out the ones that it knows.
 */
function* listKnown<Tx>(
  { settlers, steps }: Reconciler<Tx>,
  limit: number,
): Flow<Pick<Listed, "records" | "damaged">> {
  for (let asked = limit; ; asked *= 2) {
    const { records, damaged } = yield* due({ kind: "looks", limit: asked });
    const known = records
      .filter((record) => settlers.has(record.operation) || hasKnownSteps(steps, record))
      .slice(0, limit);
    const all = records.length + damaged < asked;
    if (all || known.length === limit || asked >= MOST_ASKED) return { records: known, damaged };
  }
}

const MOST_ASKED = 10_000;

type Result = Exclude<keyof Reconciled, "damaged" | "more">;

function* reconcileOne<Tx>(
  { context, settlers, steps }: Reconciler<Tx>,
  record: Unknown,
): TransactionFlow<Result, Tx> {
  const { emit, runtime, policy } = context;
  const settler = settlers.get(record.operation);
  try {
    const change = { writeId: runtime.newId(), owner: runtime.newId(), leaseMs: policy.leaseMs };
    const taken = yield* replace(seen(record), look(record, change), "never");
    if (taken.kind !== "replaced" || taken.record.state !== "unknown") return "passed";
    if (settler !== undefined) return yield* settle(context, settler, taken.record);
    const bounded: Bounded = (asked) => answered(context, asked);
    const { record: held, now } = taken;
    return yield* afterLook(
      context,
      yield* lookAtSteps(context, steps, { record: held, now }, bounded),
      held,
    );
  } catch (error) {
    emit({ type: "failure", what: `reconciling ${record.operation}`, error });
    return "failed";
  }
}

const SAID = {
  not_found: "The provider knows nothing of it; that alone is no proof.",
  pending: "The provider has not decided yet.",
  unreachable: "The provider could not be reached.",
  cannot_ask: "The provider cannot be asked.",
} as const;

function* settle<Tx>(
  context: Context<Tx>,
  settler: Settler<Tx>,
  record: Unknown,
): TransactionFlow<Result, Tx> {
  const sighting = yield* sight(context, settler, record);
  switch (sighting.kind) {
    case "found":
      return yield* finish(context, settler, record, sighting.result);
    case "cancelled":
      return yield* abandon(context, settler, record);
    case "not_found":
      return yield* postpone(context, record, true, SAID.not_found);
    case "pending":
      return yield* postpone(context, record, true, SAID.pending);
    case "unreachable":
      context.emit({
        type: "failure",
        what: `asking the provider of ${record.operation}`,
        error: sighting.error,
      });
      yield* postpone(context, record, false, SAID.unreachable);
      return "failed";
    case "cannot_ask":
      return yield* leaveToPerson(context, record, SAID.cannot_ask);
  }
}

/** Brings on the record of a route or a function whose declared steps were asked about. */
function* afterLook<Tx>(
  context: Context<Tx>,
  looked: StepsLooked,
  taken: Unknown,
): TransactionFlow<Result, Tx> {
  switch (looked.kind) {
    case "passed":
      return "passed";
    case "released":
      return tell(context, taken, looked.record) ? "released" : "passed";
    case "in_doubt":
      if (looked.said === "cannot_ask") return yield* leaveToPerson(context, looked.record, SAID.cannot_ask);
      if (looked.said !== "unreachable")
        return yield* postpone(context, looked.record, true, SAID[looked.said]);
      context.emit({
        type: "failure",
        what: `asking a provider of ${taken.operation}`,
        error: looked.error,
      });
      yield* postpone(context, looked.record, false, SAID.unreachable);
      return "failed";
  }
}

/** Releases what the provider has cancelled; a release that fails counts as a look, so that a person hears of it. */
function* abandon<Tx>(
  context: Context<Tx>,
  settler: Settler<Tx>,
  record: Unknown,
): TransactionFlow<Result, Tx> {
  try {
    const written = yield* abandonFlow(context, settler, record, "cancelled");
    const released = written.record?.state === "released" && written.record.owner === record.owner;
    return released && tell(context, record, written.record) ? "released" : "passed";
  } catch (error) {
    context.emit({ type: "failure", what: `abandoning ${record.operation}`, error });
    yield* postpone(context, record, true, "The effect did not happen; its release failed.");
    return "failed";
  }
}

function* finish<Tx>(
  context: Context<Tx>,
  settler: Settler<Tx>,
  record: Unknown,
  result: Uint8Array,
): TransactionFlow<Result, Tx> {
  const written = yield* finishFlow(context, settler, record, { result });
  if (written.kind === "lost") return "passed";
  if (tell(context, record, written.record)) return "settled";
  const left = written.record.state === "unknown" && written.record.disposition === "review";
  return left ? "reviewed" : "waiting";
}

/** Tells the listeners of a record that a look has ended; false when it is still unknown. */
function tell<Tx>(
  { emit }: Context<Tx>,
  { operation, identity, attempt }: Unknown,
  ended: KeyRecord,
): boolean {
  if (ended.state === "unknown") return false;
  const move = { from: "unknown", to: ended.state, reason: "The provider was asked." } as const;
  emit({ type: "transition", by: "reconciler", operation, identity, attempt, ...move });
  return true;
}

type Sighted =
  | Sighting
  | { readonly kind: "cancelled" }
  | { readonly kind: "unreachable"; readonly error: unknown }
  | { readonly kind: "cannot_ask" };

/** What is kept already, else what the provider says; not found there means to cancel where that can be. */
function* sight<Tx>(
  context: Context<Tx>,
  { look: ask, cancel }: Settler<Tx>,
  record: Unknown,
): TransactionFlow<Sighted, Tx> {
  const { result } = record.evidence;
  if (result !== null) return { kind: "found", result };
  if (ask === null) return { kind: "cannot_ask" };
  try {
    const seenThere = yield* call(`look for ${record.operation}`, () => answered(context, ask(record)));
    if (seenThere.kind !== "not_found" || cancel === null) return seenThere;
    return yield* call(`cancel ${record.operation}`, () => answered(context, cancel(record)));
  } catch (error) {
    return { kind: "unreachable", error };
  }
}

/** A provider that says nothing for the whole lease of a look is out of reach; it must not keep the others waiting. */
async function answered<Tx, T>({ runtime, policy }: Context<Tx>, asked: Promise<T>): Promise<T> {
  const bound = runtime.timer(policy.leaseMs);
  const late = bound.expired.then(() => {
    throw new Error(`The provider did not answer within ${policy.leaseMs} ms.`);
  });
  try {
    return await Promise.race([asked, late]);
  } finally {
    bound.cancel();
  }
}

function* postpone<Tx>(
  context: Context<Tx>,
  record: Unknown,
  answered: boolean,
  reason: string,
): TransactionFlow<Result, Tx> {
  const { policy, runtime } = context;
  if (answered && record.looks + 1 >= policy.maxReconcileLooks)
    return yield* leaveToPerson(context, record, reason);
  const nextLookInMs = Math.min(LONGEST_BACKOFF_MS, policy.reconcileIntervalMs * 2 ** record.looks);
  const write = lookAgain(record, { writeId: runtime.newId(), answered, nextLookInMs, reason });
  return yield* moved(record, write, "waiting");
}

function* leaveToPerson<Tx>(
  { runtime }: Context<Tx>,
  record: Unknown,
  reason: string,
): TransactionFlow<Result, Tx> {
  return yield* moved(record, review(record, { writeId: runtime.newId(), reason }), "reviewed");
}

function* moved<Tx>(record: KeyRecord, write: RecordWrite, result: Result): TransactionFlow<Result, Tx> {
  const replaced = yield* replace(seen(record), write, "never");
  return replaced.kind === "replaced" ? result : "passed";
}
