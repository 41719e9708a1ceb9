import { BEGIN_STEP, NOT_BEGUN } from "../core/begun.ts";
import type { OnAmbiguous } from "../core/decide.ts";
import { NO_STEPS } from "../core/kept.ts";
import type { Due, Effects, Identity, InProgress, StepOf } from "../core/record.ts";
import { keyIdOf } from "../core/sealed.ts";
import { ConfigurationError, OncekeyError, RecordCorrupt } from "../errors.ts";
import { type Attempt, createAttempt, type Ended } from "./attempt.ts";
import { type Asked, type Claimed, type Final, type Moved, react } from "./claim.ts";
import { read } from "./command.ts";
import type { Context } from "./context.ts";
import { doubtOfEarlier } from "./disclaim.ts";
import type { Held } from "./ending.ts";
import type { EngineEvent, Outcome } from "./events.ts";
import { isReentered, withExecution } from "./execution.ts";
import {
  addFingerprint,
  BINDING,
  bindFingerprint,
  matchFingerprint,
  type Recognisable,
  SALT_BYTES,
} from "./fingerprint.ts";
import { tellMismatch } from "./mismatch.ts";
import { once } from "./once.ts";
import { createOneCommitAttempt } from "./one-attempt.ts";
import { rerunsOf } from "./override.ts";
import { type Budget, passes } from "./retry.ts";
import { claimedInTime, type StandingBy } from "./standing-by.ts";

/** One call that wants to be safe to repeat. */
export interface BeginRequest {
  readonly identity: Identity;
  /** What is being done, as people call it. */
  readonly operation: string;
  readonly effects: Effects;
  readonly fingerprint: Recognisable;
  readonly correlationId?: string;
  readonly onAmbiguous?: Exclude<OnAmbiguous, "replay">;
  /** Says that the work runs although the store is out of reach: a claim given up is no proof then that nothing ran. */
  readonly runsAnyway?: boolean;
  /** The work says itself when its effects begin: an attempt that died before has made none (effects `none` only). */
  readonly effectsBegin?: boolean;
  /** How long the work may run, where that is not `requestTimeout`. */
  readonly maxRunMs?: number;
  /** A copy waits for the end of a running request, and is not told at once that it runs (claims of their own only). */
  readonly standBy?: StandingBy;
  /** `one`: the claim is made in the effect's own commit, and nothing stands before (effects `transaction` only). */
  readonly commits?: Commits;
  /** The execution that asks, as `RunRequest` says it. */
  readonly execution?: string;
  /** Nothing is protected: what would have become of the request is counted. */
  readonly observed?: boolean;
}

/** In how many commits a local effect is claimed and made. */
export type Commits = "one" | "two";

/** Why a request does not run, as a value. */
export type Answered =
  | Final
  | { readonly kind: "store_unavailable"; readonly error: Error }
  | { readonly kind: "record_corrupt"; readonly error: RecordCorrupt }
  | { readonly kind: "draining" };

const AT_THE_BEGINNING: ReadonlyMap<string, StepOf<Due>> = new Map([[BEGIN_STEP, NOT_BEGUN]]);

/** The claim of a request as a flow asks for it. */
export function askedFor<Tx>(
  { runtime, policy, keyed }: Context<Tx>,
  request: BeginRequest,
  steps: ReadonlyMap<string, StepOf<Due>> = request.effectsBegin === true ? AT_THE_BEGINNING : NO_STEPS,
): Asked {
  const { identity, operation, effects, correlationId = null, onAmbiguous = "keep" } = request;
  const fingerprint = keyed(request.fingerprint);
  const owner = runtime.newId();
  const claim = {
    identity,
    operation,
    effects,
    correlationId,
    steps: withExecution(steps, request, owner),
    owner,
    writeId: runtime.newId(),
    leaseMs: policy.leaseMs,
    [BINDING]: once(() => bindFingerprint(fingerprint, runtime.randomBytes(SALT_BYTES))),
  };
  addFingerprint(claim);
  return {
    claim,
    match: (record) => matchFingerprint(fingerprint, record.fingerprint),
    reenters: (record) => isReentered(record, request),
    onAmbiguous,
    newId: runtime.newId,
    heldRetainMs: policy.unknownRetentionMs,
  };
}

export type Begun<Tx> = { readonly kind: "proceed"; readonly attempt: Attempt<Tx> } | Answered;

/** Carries a claim out and turns the failures that a caller must expect into values. Nothing runs without a claim. */
export function beginWith<Tx>(
  context: Context<Tx>,
  request: BeginRequest,
  asked: Asked,
  claiming: (budget: Budget) => Promise<Claimed>,
  undo: Undo | null = null,
): Promise<Begun<Tx>> {
  const beginning = context.draining()
    ? answeredWhileDraining(context, asked)
    : claimedBy(context, request, asked, { claiming, undo });
  context.beginning.add(beginning);
  const over = () => void context.beginning.delete(beginning);
  beginning.then(over, over);
  return beginning;
}

async function claimedBy<Tx>(
  context: Context<Tx>,
  request: BeginRequest,
  asked: Asked,
  { claiming, undo }: Claiming,
): Promise<Begun<Tx>> {
  const { runtime, policy, emit } = context;
  let startedMs = 0;
  const claim = () => {
    startedMs = runtime.monotonicMs();
    return claiming({ untilMs: startedMs + policy.storeTimeoutMs, tries: CLAIM_TRIES });
  };
  try {
    const claimed = await claimedInTime(context, { asked, standBy: request.standBy }, claim);
    tellMoves(context, claimed.moved);
    for (const override of rerunsOf(request, claimed.moved)) await context.tellOverride(override);
    emit(counted(request, outcomeOf(claimed)));
    if (claimed.kind === "final") {
      tellMismatch(context, request, claimed.decision);
      tellSealed(context, claimed.decision);
      return claimed.decision;
    }
    const attempt = adopt(context, claimed.record, { startedMs, asked, maxRunMs: request.maxRunMs });
    if (!context.draining()) return { kind: "proceed", attempt };
    await giveBack(attempt, claimed.record, undo);
    return { kind: "draining" };
  } catch (error) {
    const given = passes(error) && request.runsAnyway !== true;
    if (given) context.disclaim(asked, undo);
    return answeredFailure(context, request, error);
  }
}

/** Ends an operation that has opened and not begun: its domain's rows with its record. */
export type Undo = (held: Held) => Promise<Ended>;

interface Claiming {
  readonly claiming: (budget: Budget) => Promise<Claimed>;
  readonly undo: Undo | null;
}

/** Nothing has run yet under this claim, and nothing may start any more. */
async function giveBack<Tx>(attempt: Attempt<Tx>, record: InProgress, undo: Undo | null): Promise<void> {
  const doubted = doubtOfEarlier(record);
  if (doubted !== null) await attempt.doubt(doubted);
  else await (undo === null ? attempt.release() : attempt.endBy(undo));
}

/** A store out of reach and a damaged record are answers; any other error is thrown. */
export function answeredFailure<Tx>({ emit }: Context<Tx>, request: BeginRequest, error: unknown): Answered {
  const { operation, identity } = request;
  if (passes(error) || isSchemaMissing(error)) {
    emit({ type: "failure", what: `claiming a key for ${operation}`, error });
    emit(counted(request, "store_unavailable"));
    return { kind: "store_unavailable", error };
  }
  if (!(error instanceof RecordCorrupt)) throw error;
  emit({ type: "record_corrupt", operation, identity, error });
  return { kind: "record_corrupt", error };
}

/** A process that shuts down claims nothing more, and still answers what needs no claim. */
async function answeredWhileDraining<Tx>({ driver }: Context<Tx>, asked: Asked): Promise<Answered> {
  try {
    const { record, now } = await driver.drive(read(asked.claim.identity));
    const reaction = record === null ? null : react(asked, { record, now });
    return reaction?.kind === "final" ? reaction.decision : { kind: "draining" };
  } catch (error) {
    if (passes(error) || isSchemaMissing(error) || error instanceof RecordCorrupt)
      return { kind: "draining" };
    throw error;
  }
}

/** To a client, tables that are not there are a store that is not there. */
function isSchemaMissing(error: unknown): error is OncekeyError {
  return error instanceof OncekeyError && error.code === "schema_missing";
}

/** Contention on one key is over within a few of these; the store timeout bounds them in time. */
export const CLAIM_TRIES = 20;

/** Begins what makes its claim in its own commit: nothing is written, nothing can be in the way yet. */
export async function beginOne<Tx>(context: Context<Tx>, request: BeginRequest): Promise<Begun<Tx>> {
  if (request.effects !== "transaction")
    throw new ConfigurationError("commits", 'can be "one" only with effects: "transaction"');
  const asked = askedFor(context, request);
  if (context.draining()) return await answeredWhileDraining(context, asked);
  const { maxRunMs = context.policy.requestTimeoutMs } = request;
  const onEnded = () => context.running.delete(attempt);
  const attempt: Attempt<Tx> = createOneCommitAttempt(context, { request, asked, maxRunMs, onEnded });
  context.running.add(attempt);
  return { kind: "proceed", attempt };
}

interface Adopting {
  readonly startedMs: number;
  readonly asked: Asked;
  readonly maxRunMs: number | undefined;
}

function adopt<Tx>(
  context: Context<Tx>,
  record: InProgress,
  { startedMs, asked, maxRunMs = context.policy.requestTimeoutMs }: Adopting,
): Attempt<Tx> {
  const attempt: Attempt<Tx> = createAttempt(context, {
    record,
    startedMs,
    maxRunMs,
    match: asked.match,
    onEnded: () => {
      context.running.delete(attempt);
      context.lookout.ended(record.identity);
    },
  });
  context.running.add(attempt);
  return attempt;
}

/** How one request counts. Where nothing is kept because it is only observed, an answer would have been. */
function counted({ operation, observed = false }: BeginRequest, outcome: Outcome): EngineEvent {
  if (!observed) return { type: "request", operation, outcome };
  return {
    ...{ type: "request", operation, observed },
    outcome: outcome === "response_not_stored" ? "replayed" : outcome,
  };
}

/** Its client hears that the answer was not kept; why is for the operators to know. */
export function tellSealed<Tx>({ emit }: Context<Tx>, decision: Final): void {
  if (decision.kind !== "response_not_stored") return;
  const { answer, record } = decision;
  if (answer.sealed === undefined) return;
  const key = JSON.stringify(keyIdOf(answer.sealed));
  const message = `The answer is kept, and sealed by the key ${key}, which is not in the ring of this process. Give sealedStore that key again.`;
  const error = new OncekeyError("response_not_stored", message);
  emit({ type: "failure", what: `opening the answer of ${record.operation}`, error });
}

/** What of a claim is counted: how it went, and which records it moved on its way. */
type Counted =
  | { readonly kind: "claimed"; readonly moved: readonly Moved[] }
  | Extract<Claimed, { readonly kind: "final" }>;

export function outcomeOf(claimed: Counted): Outcome {
  if (claimed.kind === "claimed") {
    return claimed.moved.some(({ from }) => from === "in_progress") ? "stale_reclaimed" : "claimed";
  }
  switch (claimed.decision.kind) {
    case "replay":
      return "replayed";
    case "response_not_stored":
      return "response_not_stored";
    case "expired":
      return "key_expired";
    case "in_progress":
      return "in_progress_conflict";
    case "mismatch":
    case "unverifiable":
      return "fingerprint_mismatch";
    case "outcome_unknown":
      return "outcome_unknown";
  }
}

export function tellMoves<Tx>({ emit }: Context<Tx>, moved: readonly Moved[]): void {
  for (const { from, to } of moved) {
    const { operation, identity, attempt } = to;
    const reason =
      to.state === "unknown" ? to.evidence.reason : "A later request with the same key took over.";
    emit({ type: "transition", by: "duplicate", operation, identity, attempt, from, to: to.state, reason });
  }
}
