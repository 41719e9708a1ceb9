import { kept, keptInProgress, keptUnknown, NO_STEPS, standingSteps } from "./kept.ts";
import type { Keep } from "./policy.ts";
import type {
  Answer,
  Disposition,
  Due,
  Effects,
  Evidence,
  Fingerprint,
  Identity,
  InProgress,
  KeyRecord,
  RecordWrite,
  Released,
  Seen,
  StepOf,
  Unknown,
} from "./record.ts";
import { hasProgress } from "./step.ts";

/**
 * One function per legal move. Each returns the whole next version for the store's compare-and-set; an illegal move
 * (renewing an `unknown`, say) does not compile.
 */

/** What a new attempt brings to its claim. */
export interface Claim {
  readonly identity: Identity;
  readonly operation: string;
  readonly effects: Effects;
  readonly fingerprint: Fingerprint;
  readonly owner: string;
  readonly writeId: string;
  readonly correlationId: string | null;
  readonly leaseMs: number;
  /** Open marks that stand in the claim's own commit. */
  readonly steps: ReadonlyMap<string, StepOf<Due>>;
}

/** The id of one write; every write has its own. */
export interface Writing {
  readonly writeId: string;
}

const NOW: Due = { inMs: 0 };

/** (absent) → in_progress */
export function claim(request: Claim): Extract<RecordWrite, { state: "in_progress" }> {
  return {
    identity: request.identity,
    operation: request.operation,
    effects: request.effects,
    fingerprint: request.fingerprint,
    owner: request.owner,
    writeId: request.writeId,
    correlationId: request.correlationId,
    steps: request.steps,
    state: "in_progress",
    attempt: "next",
    reference: null,
    createdAt: NOW,
    claimedAt: NOW,
    leaseUntil: { inMs: request.leaseMs },
  };
}

/** (absent) → released: a claim that was given up; should it arrive after all, it finds its key taken. */
export function renounce(request: Claim, change: { readonly retainMs: number }): RecordWrite {
  return {
    identity: request.identity,
    operation: request.operation,
    effects: request.effects,
    fingerprint: request.fingerprint,
    owner: request.owner,
    writeId: request.writeId,
    correlationId: request.correlationId,
    steps: NO_STEPS,
    state: "released",
    attempt: "next",
    reference: null,
    createdAt: NOW,
    claimedAt: NOW,
    retainUntil: { inMs: change.retainMs },
  };
}

/**
 * released, lapsed or unknown → in_progress, as the next attempt: the first request's correlation id, the reference, the
 * steps and the operation's name (a downstream key is made of it) stay. A released record without progress may be
 * bound to another operation; then only the generations of its downstream keys stay, so that a dead one is never revived.
 * What was refused to one body is not refused to a corrected one, which is called for under the next downstream key: under
 * the same a provider would repeat its refusal.
 */
export function takeOver(
  record: Released | InProgress | Unknown,
  request: Claim,
  body: "same" | "corrected" = "same",
): RecordWrite {
  const { operation, reference } = record;
  const carriesOn = operation === request.operation || record.state !== "released" || hasProgress(record);
  const standing = standingSteps(record);
  const earlier = body === "same" ? standing : withoutRefusals(standing);
  const steps = new Map<string, StepOf<Due>>(carriesOn ? earlier : generations(earlier));
  for (const [name, opened] of request.steps) steps.set(name, reopened(opened, steps.get(name)));
  const write = Object.assign(claim(request), { steps, createdAt: { at: record.createdAt } });
  if (!carriesOn) return write;
  const correlationId = record.correlationId ?? request.correlationId;
  return Object.assign(write, { operation, reference, correlationId });
}

/** A record whose retention is over → in_progress: nothing of it carries on but the row. */
export function claimAnew(_ended: KeyRecord, request: Claim): RecordWrite {
  return claim(request);
}

/** in_progress → in_progress with a later end of the lease. */
export function renew(record: InProgress, change: Writing & { readonly leaseMs: number }): RecordWrite {
  return Object.assign(kept(record, change), {
    state: "in_progress" as const,
    leaseUntil: { inMs: change.leaseMs },
  });
}

/** The same version again under a new write id: the fence that a transaction sets before it touches anything else. */
export function touch(record: InProgress | Unknown, change: Writing): RecordWrite {
  return record.state === "unknown" ? keptUnknown(record, change) : keptInProgress(record, change);
}

/** in_progress → in_progress that remembers what `open` returned. */
export function refer(record: InProgress, change: Writing & { readonly reference: Uint8Array }): RecordWrite {
  return Object.assign(keptInProgress(record, change), { reference: change.reference });
}

/** in_progress → in_progress with one step changed: opened, finished, refused or cleared. */
export function checkpoint(
  record: InProgress,
  change: Writing & { readonly step: string; readonly mark: StepOf<Due> },
): RecordWrite {
  const write = keptInProgress(record, change);
  return Object.assign(write, { steps: new Map(write.steps).set(change.step, change.mark) });
}

/** in_progress or unknown → completed (the work finished) or failed_permanent (a definite refusal, no effect). */
export function conclude(
  record: InProgress | Unknown,
  change: Writing & {
    readonly state: "completed" | "failed_permanent";
    readonly answer: Answer;
    readonly keep: Keep;
    /** The step that the answer rests on, when it ends in the same write. */
    readonly step?: { readonly name: string; readonly mark: StepOf<Due> };
  },
): RecordWrite {
  const write = kept(record, change);
  const steps =
    change.step === undefined ? write.steps : new Map(write.steps).set(change.step.name, change.step.mark);
  const { state, answer, keep } = change;
  const { retainMs, tombstoneMs } = keep;
  return Object.assign(write, { steps, state, answer, retainUntil: { inMs: retainMs }, tombstoneMs });
}

/** A claim and its outcome in one write: (absent), released, … → completed or failed_permanent, without a state between. */
export function concludeClaim(
  claimed: RecordWrite,
  change: Writing & {
    readonly state: "completed" | "failed_permanent";
    readonly attempt: number;
    readonly answer: Answer;
    readonly keep: Keep;
  },
): RecordWrite {
  if (claimed.state !== "in_progress") throw new Error(`A claim cannot be ${claimed.state}.`);
  return {
    state: change.state,
    attempt: change.attempt,
    answer: change.answer,
    writeId: change.writeId,
    identity: claimed.identity,
    operation: claimed.operation,
    effects: claimed.effects,
    fingerprint: claimed.fingerprint,
    owner: claimed.owner,
    correlationId: claimed.correlationId,
    steps: claimed.steps,
    reference: claimed.reference,
    createdAt: claimed.createdAt,
    claimedAt: claimed.claimedAt,
    retainUntil: { inMs: change.keep.retainMs },
    tombstoneMs: change.keep.tombstoneMs,
  };
}

/**
 * in_progress or unknown → released: it is proved that nothing happened. Open marks become clear; those that the
 * provider has cancelled go on with the next generation of their downstream key.
 */
export function release(
  record: InProgress | Unknown,
  change: Writing & { readonly retainMs: number; readonly cancelled?: ReadonlySet<string> },
): RecordWrite {
  const write = kept(record, change);
  const steps = new Map<string, StepOf<Due>>();
  for (const [name, step] of write.steps) {
    const generation = step.generation + (change.cancelled?.has(name) ? 1 : 0);
    steps.set(name, step.state === "open" ? { state: "clear", generation } : step);
  }
  return Object.assign(write, { steps, state: "released" as const, retainUntil: { inMs: change.retainMs } });
}

/** How an outcome came to be unknown, and who is to end it. */
export interface Doubt {
  readonly evidence: Evidence;
  readonly disposition: Disposition;
  /** When the reconciler may look first; `null` where nobody will. */
  readonly nextLookAt: Due | null;
}

/** in_progress → unknown: an effect may have happened and nobody knows. Keeps the owner, whose late result still counts. */
export function doubt(
  record: InProgress,
  change: Writing & { readonly doubt: Doubt; readonly heldRetainMs: number },
): RecordWrite {
  const { evidence, disposition, nextLookAt } = change.doubt;
  const retainUntil = disposition === "hold" ? { inMs: change.heldRetainMs } : null;
  return Object.assign(kept(record, change), {
    state: "unknown" as const,
    evidence,
    disposition,
    nextLookAt,
    retainUntil,
    looks: 0,
  });
}

/** unknown → unknown taken over by a reconciler: the former owner is fenced, other reconcilers wait for its lease. */
export function look(
  record: Unknown,
  change: Writing & { readonly owner: string; readonly leaseMs: number },
): RecordWrite {
  const nextLookAt = { inMs: change.leaseMs };
  return { ...keptUnknown(record, change), owner: change.owner, attempt: "next", nextLookAt };
}

/** unknown → unknown after a look that settled nothing; a look that found nobody at home leaves the count alone. */
export function lookAgain(
  record: Unknown,
  change: Writing & { readonly answered: boolean; readonly nextLookInMs: number; readonly reason: string },
): RecordWrite {
  return {
    ...keptUnknown(record, change),
    looks: record.looks + (change.answered ? 1 : 0),
    nextLookAt: { inMs: change.nextLookInMs },
    evidence: { ...record.evidence, reason: change.reason },
  };
}

/** unknown → unknown that a person must decide. */
export function review(record: Unknown, change: Writing & { readonly reason: string }): RecordWrite {
  const evidence = { ...record.evidence, reason: change.reason };
  return {
    ...keptUnknown(record, change),
    disposition: "review",
    nextLookAt: null,
    retainUntil: null,
    evidence,
  };
}

/** The version that a compare-and-set on `record` must still find. */
export function seen(record: KeyRecord): Seen {
  return { identity: record.identity, owner: record.owner, revision: record.revision };
}

function reopened(opened: StepOf<Due>, earlier: StepOf<Due> | undefined): StepOf<Due> {
  if (earlier === undefined) return opened;
  // An open mark stays: the provider's memory of our key began with the first call, and that call is still in doubt.
  if (earlier.state === "finished" || earlier.state === "open") return earlier;
  return { ...opened, generation: earlier.generation };
}

function withoutRefusals(steps: ReadonlyMap<string, StepOf<Due>>): ReadonlyMap<string, StepOf<Due>> {
  return new Map(
    [...steps].map(([name, step]) => [
      name,
      step.state === "refused" ? { state: "clear", generation: step.generation + 1 } : step,
    ]),
  );
}

function generations(steps: ReadonlyMap<string, StepOf<Due>>): ReadonlyMap<string, StepOf<Due>> {
  return new Map([...steps].map(([name, { generation }]) => [name, { state: "clear", generation }] as const));
}
