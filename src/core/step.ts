import type { Instant, KeyRecord, Step } from "./record.ts";

/** What names of our own marks among a record's steps begin with, and no programmer's may. */
export const OWN_MARKS = "oncekey:";

export type OpenMark = Extract<Step, { state: "open" }>;

export function openMarks(steps: ReadonlyMap<string, Step>): readonly OpenMark[] {
  return [...steps.values()].filter((step) => step.state === "open");
}

/** Until when every open mark may be called again under the same downstream key; the past where one may not at all. */
export function repeatableUntil(open: readonly OpenMark[]): Instant {
  return Math.min(
    ...open.map(({ provider, openedAt, keyTtlMs }) =>
      provider === "repeatable" && keyTtlMs !== null ? openedAt + keyTtlMs : Number.NEGATIVE_INFINITY,
    ),
  );
}

/** A step that finished, or that is in doubt, binds the identity to the request it was sent for. */
export function hasProgress(record: Pick<KeyRecord, "steps">): boolean {
  return [...record.steps.values()].some(({ state }) => state === "finished" || state === "open");
}

/** An external effect has happened, whatever else is to come. */
export function hasFinished({ steps }: Pick<KeyRecord, "steps">): boolean {
  return [...steps.values()].some(({ state }) => state === "finished");
}

/**
 * The same with its open marks before `now`: one of this very instant, or of a clock that has stepped back since, would
 * pass for a mark of the claim that takes the record over. A provider's memory then counts from no later than before.
 */
export function markedBefore<R extends Pick<KeyRecord, "steps">>(record: R, now: Instant): R {
  if (openMarks(record.steps).every(({ openedAt }) => openedAt < now)) return record;
  const steps = [...record.steps].map(([name, step]): readonly [string, Step] => {
    if (step.state !== "open" || step.openedAt < now) return [name, step];
    return [name, { ...step, openedAt: now - 1 }];
  });
  return { ...record, steps: new Map(steps) };
}

/**
 * Calls of an earlier attempt are in doubt: that this one did nothing says nothing of them. Asked of an attempt that has
 * opened nothing but in its claim's own write, whose instant both have; those that it took over are put before it (`markedBefore`).
 */
export function hasInherited({ steps, claimedAt }: Pick<KeyRecord, "steps" | "claimedAt">): boolean {
  return openMarks(steps).some(({ openedAt }) => openedAt !== claimedAt);
}
