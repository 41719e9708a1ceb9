import type { Instant, KeyRecord, RecordWrite, Unknown } from "../core/record.ts";
import { holdsSealed } from "../core/sealed.ts";
import { judgeNotFound } from "../core/silence.ts";
import { look, lookAgain, review, seen } from "../core/transition.ts";
import { replace, type TransactionFlow } from "../engine/command.ts";
import type { Context } from "../engine/context.ts";
import type { Settler } from "../engine/settler.ts";
import { abandonFlow, finishFlow, LONGEST_BACKOFF_MS, type Proof } from "../engine/settling.ts";
import { OncekeyError } from "../errors.ts";
import { jittered } from "./jitter.ts";
import { type Sighted, sight } from "./sighting.ts";
import { type KnownSteps, lookAtSteps, type StepsLooked } from "./steps.ts";

/** What became of one record in doubt. */
export type Result =
  /** Ended with the provider's truth. */
  | "settled"
  /** Ended because it is proved that nothing happened. */
  | "released"
  /** Looked at, and to be looked at again. */
  | "waiting"
  /** Left to a person. */
  | "reviewed"
  /** Taken by another worker or moved in the meantime. */
  | "passed"
  /** The provider could not be reached; it spends no look. */
  | "unreachable"
  /** Could not be handled; told to the listeners, and met again later. */
  | "failed";

/** A record under a look: taken over, so that whoever had it before is fenced. */
interface Looking<Tx> {
  readonly context: Context<Tx>;
  readonly record: Unknown;
  /** The store's now when it was taken over, before anybody was asked. */
  readonly askedAt: Instant;
  /** How long it had been put off the last time. */
  readonly waitedMs: number;
}

/** The same of an operation's record. */
interface Settling<Tx> extends Looking<Tx> {
  readonly settler: Settler<Tx>;
}

/** How a record in doubt is ended: by the operation that it is of, or by what is known of its declared steps. */
export type Ender<Tx> =
  | { readonly kind: "operation"; readonly settler: Settler<Tx> }
  | { readonly kind: "steps"; readonly steps: KnownSteps };

/**
 * Finds out what became of one effect in doubt. Takes the record over first, so that a late original is fenced; asks
 * outside any transaction; ends it by a fenced write. Whatever a worker in a better position did meanwhile stands.
 */
export function* reconcileOne<Tx>(
  context: Context<Tx>,
  ender: Ender<Tx>,
  due: Unknown,
  signal: AbortSignal,
): TransactionFlow<Result, Tx> {
  const { runtime, policy } = context;
  const change = { writeId: runtime.newId(), owner: runtime.newId(), leaseMs: policy.leaseMs };
  const taken = yield* replace(seen(due), look(due, change), "never");
  if (taken.kind !== "replaced" || taken.record.state !== "unknown") return "passed";
  const waitedMs = due.nextLookAt === null ? 0 : Math.max(0, due.nextLookAt - due.updatedAt);
  const looking = { context, record: taken.record, waitedMs, askedAt: taken.now };
  switch (ender.kind) {
    case "steps":
      return yield* afterLook(looking, yield* lookAtSteps({ context, signal }, ender.steps, looking));
    case "operation": {
      const { settler } = ender;
      if (holdsSealed(taken.record)) return yield* keyMissing(looking);
      const { sighted, record } = yield* sight(context, settler, taken.record, signal);
      return yield* settle({ ...looking, settler, record }, sighted);
    }
  }
}

/** Another worker may have the key; where none has, a person hears of it once the looks are spent. */
function* keyMissing<Tx>(looking: Looking<Tx>): TransactionFlow<Result, Tx> {
  const { context, record } = looking;
  const error = new OncekeyError("record_corrupt", SAID.sealed);
  context.emit({ type: "failure", what: `reading what is kept of ${record.operation}`, error });
  return yield* postpone(looking, 0, SAID.sealed);
}

const SAID = {
  sealed: "What is kept of it is sealed, and the key is not in the ring of the worker that looked.",
  not_found: "The provider knows nothing of it; that alone is no proof.",
  pending: "The provider has not decided yet.",
  cannot_ask: "The provider cannot be asked.",
} as const;

/** Brings on the record of a route or a function whose declared steps were asked about. */
function* afterLook<Tx>(taken: Looking<Tx>, looked: StepsLooked): TransactionFlow<Result, Tx> {
  const { context } = taken;
  switch (looked.kind) {
    case "passed":
      return "passed";
    case "released":
      return tell(context, taken.record, looked.record) ? "released" : "passed";
    case "in_doubt": {
      const looking = { ...taken, record: looked.record };
      switch (looked.said) {
        case "cannot_ask":
          return yield* leaveToPerson(looking, SAID.cannot_ask);
        case "unreachable":
          return yield* backOff(looking, looked.error);
        case "given_up":
          return yield* putBack(looking, 0, "waiting");
        case "not_found":
        case "pending":
          return yield* postpone(looking, looked.soonestMs, SAID[looked.said]);
      }
    }
  }
}

function* settle<Tx>(looking: Settling<Tx>, sighted: Sighted): TransactionFlow<Result, Tx> {
  switch (sighted.kind) {
    case "found":
      return yield* finish(looking, sighted.result);
    case "cancelled":
      return yield* abandon(looking, "cancelled");
    case "not_found":
      return yield* silence(looking);
    case "pending":
      return yield* postpone(looking, soonestMs(looking), SAID.pending);
    case "unreachable":
      return yield* backOff(looking, sighted.error);
    case "given_up":
      return yield* putBack(looking, 0, "waiting");
    case "cannot_ask":
      return yield* leaveToPerson(looking, SAID.cannot_ask);
    case "lost":
      return "passed";
  }
}

function* silence<Tx>(looking: Settling<Tx>): TransactionFlow<Result, Tx> {
  const judged = judge(looking);
  if (judged.kind === "proved") return yield* abandon(looking, "not_found");
  return yield* postpone(looking, judged.soonestMs, SAID.not_found);
}

function judge<Tx>({ context: { policy }, settler, record, askedAt }: Settling<Tx>) {
  const step = record.steps.get(settler.step);
  const mark = step?.state === "open" ? step : null;
  return judgeNotFound(mark, { askedAt, looks: record.looks }, policy);
}

/** Looks at a provider that can be waited for only by the calendar keep their distance, whatever they bring. */
function soonestMs<Tx>(looking: Settling<Tx>): number {
  if (looking.settler.cancel !== null) return 0;
  const judged = judge(looking);
  return judged.kind === "inconclusive" ? judged.soonestMs : 0;
}

/** Releases what did not happen; a release that fails counts as a look, so that a person hears of it. */
function* abandon<Tx>(looking: Settling<Tx>, proof: Proof): TransactionFlow<Result, Tx> {
  const { context, settler, record } = looking;
  try {
    const written = yield* abandonFlow(context, settler, record, proof);
    const released = written.record?.state === "released" && written.record.owner === record.owner;
    return released && tell(context, record, written.record) ? "released" : "passed";
  } catch (error) {
    context.emit({ type: "failure", what: `abandoning ${record.operation}`, error });
    yield* postpone(looking, 0, proof === "cancelled" ? CANCELLED : UNPROVED_RELEASE);
    return "failed";
  }
}

/** Kept as the reason, so that the next look knows what the provider had promised. */
const CANCELLED = "The provider has cancelled it; its release failed.";
const UNPROVED_RELEASE = "The effect did not happen; its release failed.";

function* finish<Tx>(looking: Settling<Tx>, result: Uint8Array): TransactionFlow<Result, Tx> {
  const { context, settler, record } = looking;
  const { operation, identity, attempt, evidence } = record;
  if (evidence.reason === CANCELLED) {
    const reason = "The provider had cancelled it, and now says that it happened.";
    context.emit({ type: "contradiction", operation, identity, attempt, reason });
  }
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

function* postpone<Tx>(
  looking: Looking<Tx>,
  notBeforeMs: number,
  reason: string,
): TransactionFlow<Result, Tx> {
  const { policy, runtime } = looking.context;
  const { record } = looking;
  if (record.looks + 1 >= policy.maxReconcileLooks) return yield* leaveToPerson(looking, reason);
  const backoffMs = Math.min(LONGEST_BACKOFF_MS, policy.reconcileIntervalMs * 2 ** record.looks);
  const nextLookInMs = Math.max(notBeforeMs, jittered(backoffMs, runtime.random()));
  const write = lookAgain(record, { writeId: runtime.newId(), answered: true, nextLookInMs, reason });
  return yield* moved(record, write, "waiting");
}

/** Twice as long as the last time, though nobody answered then either: the record counts answered looks only. */
function* backOff<Tx>(looking: Looking<Tx>, error: unknown): TransactionFlow<Result, Tx> {
  const { policy, runtime, emit } = looking.context;
  emit({ type: "failure", what: `asking the provider of ${looking.record.operation}`, error });
  const longerMs = Math.max(policy.reconcileIntervalMs, 2 * looking.waitedMs);
  const backoffMs = Math.min(LONGEST_BACKOFF_MS, jittered(longerMs, runtime.random()));
  return yield* putBack(looking, backoffMs, "unreachable");
}

/** Nothing was learnt: all stays as it was but the time of the next look. */
function* putBack<Tx>(
  { context: { runtime }, record }: Looking<Tx>,
  nextLookInMs: number,
  result: Result,
): TransactionFlow<Result, Tx> {
  const { reason } = record.evidence;
  const write = lookAgain(record, { writeId: runtime.newId(), answered: false, nextLookInMs, reason });
  return yield* moved(record, write, result);
}

function* leaveToPerson<Tx>(
  { context: { runtime }, record }: Looking<Tx>,
  reason: string,
): TransactionFlow<Result, Tx> {
  return yield* moved(record, review(record, { writeId: runtime.newId(), reason }), "reviewed");
}

function* moved<Tx>(record: KeyRecord, write: RecordWrite, result: Result): TransactionFlow<Result, Tx> {
  const replaced = yield* replace(seen(record), write, "never");
  return replaced.kind === "replaced" ? result : "passed";
}
