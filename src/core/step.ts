import type { Instant, KeyRecord, Step } from "./record.ts";

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
 * Calls of an earlier attempt are in doubt: that this one did nothing says nothing of them. Asked of an attempt that has
 * opened nothing but in its claim's own write, whose instant both have; a clock that stepped back makes no other one equal.
 */
export function hasInherited({ steps, claimedAt }: Pick<KeyRecord, "steps" | "claimedAt">): boolean {
  return openMarks(steps).some(({ openedAt }) => openedAt !== claimedAt);
}
