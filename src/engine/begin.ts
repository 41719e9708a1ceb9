import type { OnAmbiguous } from "../core/decide.ts";
import type { Due, Effects, Identity, InProgress, StepOf } from "../core/record.ts";
import type { Claim } from "../core/transition.ts";
import { OncekeyError, RecordCorrupt } from "../errors.ts";
import { type Attempt, createAttempt } from "./attempt.ts";
import type { Asked, Claimed, Final, Moved } from "./claim.ts";
import type { Context } from "./context.ts";
import { doubtOfEarlier } from "./disclaim.ts";
import type { Outcome } from "./events.ts";
import { bindFingerprint, matchFingerprint, type Recognisable, SALT_BYTES } from "./fingerprint.ts";
import { type Budget, passes } from "./retry.ts";

/** One call that wants to be safe to repeat. */
export interface BeginRequest {
  readonly identity: Identity;
  /** What is being done, as people call it. */
  readonly operation: string;
  readonly effects: Effects;
  readonly fingerprint: Recognisable;
  readonly correlationId?: string;
  readonly onAmbiguous?: OnAmbiguous;
  /** How long the work may run, where that is not `requestTimeout`. */
  readonly maxRunMs?: number;
}

/** Why a request does not run, as a value. */
export type Answered =
  | Final
  | { readonly kind: "store_unavailable"; readonly error: Error }
  | { readonly kind: "record_corrupt"; readonly error: RecordCorrupt }
  | { readonly kind: "draining" };

/** The claim of a request as a flow asks for it. */
export function askedFor<Tx>(
  { runtime, policy }: Context<Tx>,
  request: BeginRequest,
  steps: ReadonlyMap<string, StepOf<Due>> = new Map(),
): Asked {
  const { identity, operation, effects, correlationId = null, onAmbiguous = "keep" } = request;
  const claim: Claim = {
    ...{ identity, operation, effects, correlationId, steps },
    fingerprint: bindFingerprint(request.fingerprint, runtime.randomBytes(SALT_BYTES)),
    owner: runtime.newId(),
    writeId: runtime.newId(),
    leaseMs: policy.leaseMs,
  };
  return {
    claim,
    match: (record) => matchFingerprint(request.fingerprint, record.fingerprint),
    onAmbiguous,
    newId: runtime.newId,
    heldRetainMs: policy.unknownRetentionMs,
  };
}

export type Begun<Tx> = { readonly kind: "proceed"; readonly attempt: Attempt<Tx> } | Answered;

/** Carries a claim out and turns the failures that a caller must expect into values. Nothing runs without a claim. */
export async function beginWith<Tx>(
  context: Context<Tx>,
  request: BeginRequest,
  asked: Asked,
  claiming: (budget: Budget) => Promise<Claimed>,
): Promise<Begun<Tx>> {
  if (context.draining()) return { kind: "draining" };
  const beginning = claimedBy(context, request, asked, claiming);
  context.beginning.add(beginning);
  try {
    return await beginning;
  } finally {
    context.beginning.delete(beginning);
  }
}

async function claimedBy<Tx>(
  context: Context<Tx>,
  request: BeginRequest,
  asked: Asked,
  claiming: (budget: Budget) => Promise<Claimed>,
): Promise<Begun<Tx>> {
  const { operation, identity } = request;
  const { runtime, policy, emit } = context;
  const startedMs = runtime.monotonicMs();
  try {
    const claimed = await claiming({ untilMs: startedMs + policy.storeTimeoutMs, tries: CLAIM_TRIES });
    tellMoves(context, claimed.moved);
    emit({ type: "request", operation, outcome: outcomeOf(claimed) });
    if (claimed.kind === "final") return claimed.decision;
    const attempt = adopt(context, claimed.record, startedMs, request.maxRunMs);
    if (!context.draining()) return { kind: "proceed", attempt };
    const doubted = doubtOfEarlier(claimed.record);
    await (doubted === null ? attempt.release() : attempt.doubt(doubted)); // nothing has run, nothing may start
    return { kind: "draining" };
  } catch (error) {
    if (passes(error) || isSchemaMissing(error)) {
      if (passes(error)) context.disclaim(asked, startedMs + policy.leaseMs);
      emit({ type: "failure", what: `claiming a key for ${operation}`, error });
      emit({ type: "request", operation, outcome: "store_unavailable" });
      return { kind: "store_unavailable", error };
    }
    if (!(error instanceof RecordCorrupt)) throw error;
    emit({ type: "record_corrupt", operation, identity, error });
    return { kind: "record_corrupt", error };
  }
}

/** To a client, tables that are not there are a store that is not there. */
function isSchemaMissing(error: unknown): error is OncekeyError {
  return error instanceof OncekeyError && error.code === "schema_missing";
}

/** Contention on one key is over within a few of these; the store timeout bounds them in time. */
const CLAIM_TRIES = 20;

function adopt<Tx>(
  context: Context<Tx>,
  record: InProgress,
  startedMs: number,
  maxRunMs: number | undefined,
): Attempt<Tx> {
  const attempt: Attempt<Tx> = createAttempt(context, {
    record,
    startedMs,
    maxRunMs: maxRunMs ?? context.policy.requestTimeoutMs,
    onEnded: () => context.running.delete(attempt),
  });
  context.running.add(attempt);
  return attempt;
}

function outcomeOf(claimed: Claimed): Outcome {
  if (claimed.kind === "claimed") {
    return claimed.moved.some(({ from }) => from === "in_progress") ? "stale_reclaimed" : "claimed";
  }
  switch (claimed.decision.kind) {
    case "replay":
      return "replayed";
    case "response_not_stored":
      return "response_not_stored";
    case "in_progress":
      return "in_progress_conflict";
    case "mismatch":
    case "unverifiable":
      return "fingerprint_mismatch";
    case "outcome_unknown":
      return "outcome_unknown";
  }
}

function tellMoves<Tx>({ emit }: Context<Tx>, moved: readonly Moved[]): void {
  for (const { from, to } of moved) {
    const { operation, identity, attempt } = to;
    const reason =
      to.state === "unknown" ? to.evidence.reason : "A later request with the same key took over.";
    emit({ type: "transition", by: "duplicate", operation, identity, attempt, from, to: to.state, reason });
  }
}
