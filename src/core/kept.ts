import type { Due, InProgress, KeyRecord, RecordWrite, StepOf, Unknown } from "./record.ts";
import type { Writing } from "./transition.ts";

/**
 * What every next version takes over, in an object of its own. It is named one by one here, and added to by
 * `Object.assign`: a spread of so many members with more behind it costs a hundred times as much.
 */
export function kept(record: KeyRecord, change: Writing): Kept {
  return {
    identity: record.identity,
    operation: record.operation,
    effects: record.effects,
    fingerprint: record.fingerprint,
    owner: record.owner,
    writeId: change.writeId,
    reference: record.reference,
    correlationId: record.correlationId,
    attempt: record.attempt,
    steps: standingSteps(record),
    createdAt: { at: record.createdAt },
    claimedAt: { at: record.claimedAt },
  };
}

/** What is common to the writes of every state. */
type Kept = Omit<RecordWrite, "state">;

type WriteOf<State> = Extract<RecordWrite, { readonly state: State }>;

export function standingSteps({ steps }: KeyRecord): ReadonlyMap<string, StepOf<Due>> {
  if (steps.size === 0) return NO_STEPS;
  return new Map([...steps].map(([name, step]) => [name, standingStep(step)] as const));
}

export const NO_STEPS: ReadonlyMap<string, StepOf<Due>> = new Map();

export function keptInProgress(record: InProgress, change: Writing): WriteOf<"in_progress"> {
  return Object.assign(kept(record, change), {
    state: "in_progress" as const,
    leaseUntil: { at: record.leaseUntil },
  });
}

export function keptUnknown(record: Unknown, change: Writing): WriteOf<"unknown"> {
  const { evidence, looks, disposition } = record;
  const nextLookAt = record.nextLookAt === null ? null : { at: record.nextLookAt };
  const retainUntil = record.retainUntil === null ? null : { at: record.retainUntil };
  return Object.assign(kept(record, change), {
    state: "unknown" as const,
    evidence,
    looks,
    disposition,
    nextLookAt,
    retainUntil,
  });
}

/** A step as it stands, to be written again unchanged. */
export function standingStep(step: StepOf<number>): StepOf<Due> {
  if (step.state === "clear") return step;
  const validUntil = step.validUntil === null ? null : { at: step.validUntil };
  return { ...step, openedAt: { at: step.openedAt }, validUntil };
}
