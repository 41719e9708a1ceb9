import type { Due, KeyRecord, StepOf } from "./record.ts";

/**
 * How a record shows that a handler which says when its effects begin has not said so yet: a step of no provider, with a
 * name that no programmer's step can have, refused in the claim's own write. It speaks of that claim alone. A later one
 * that says nothing is taken for one whose effects have begun, whatever an earlier one left.
 */
export const BEGIN_STEP = "oncekey:begin";

/** Goes into the claim's write. */
export const NOT_BEGUN: StepOf<Due> = {
  state: "refused",
  provider: "blind",
  generation: 0,
  openedAt: { inMs: 0 },
  keyTtlMs: null,
  validUntil: null,
  result: new Uint8Array(0),
};

/** Takes its place before the first effect. */
export const BEGUN: StepOf<Due> = { state: "clear", generation: 0 };

/** True unless the record proves, by a mark of the claim's own instant, that this attempt has made no effect yet. */
export function hasBegun({ steps, claimedAt }: Pick<KeyRecord, "steps" | "claimedAt">): boolean {
  const mark = steps.get(BEGIN_STEP);
  return mark?.state !== "refused" || mark.openedAt !== claimedAt;
}
