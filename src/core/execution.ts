import type { Due, KeyRecord, StepOf } from "./record.ts";

/**
 * How a record shows which execution made its claim: a step of no provider, with a name that no programmer's step can
 * have, refused in the claim's own write. It names the claim's owner, too, since it stays when others take the key over.
 */
export const EXECUTION_STEP = "oncekey:execution";

/** Goes into the claim's write; `said` is what `executionWord` makes of it, as bytes. */
export function executionMark(said: Uint8Array): StepOf<Due> {
  return {
    state: "refused",
    provider: "blind",
    generation: 0,
    openedAt: { inMs: 0 },
    keyTtlMs: null,
    validUntil: null,
    result: said,
  };
}

/** An owner id has no blank in it, so that no two pairs look alike. */
export function executionWord(owner: string, execution: string): string {
  return `${owner} ${execution}`;
}

/** What stands of the execution that made the standing claim, or `null` where it named none. */
export function markedExecution({ steps }: Pick<KeyRecord, "steps">): Uint8Array | null {
  const mark = steps.get(EXECUTION_STEP);
  return mark?.state === "refused" ? mark.result : null;
}
