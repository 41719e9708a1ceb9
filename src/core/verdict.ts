import { hasBegun } from "./begun.ts";
import type { KeyRecord } from "./record.ts";
import { openMarks, repeatableUntil } from "./step.ts";
import type { Doubt } from "./transition.ts";

/** What follows for the record when its attempt ended without bringing an outcome. */
export type Verdict = { readonly kind: "release" } | { readonly kind: "doubt"; readonly doubt: Doubt };

/**
 * Judges an attempt that died, by what it may have done and never by its age: local effects rolled back with its
 * transaction, a step without an open mark sent nothing, an open mark is judged by what its provider offers, and an
 * undeclared effect is ruled out only before the handler said that its effects begin.
 */
export function judgeDeath(
  record: Pick<KeyRecord, "effects" | "steps" | "claimedAt">,
  reason: string,
): Verdict {
  switch (record.effects) {
    case "transaction":
      return { kind: "release" };
    case "declared":
      return judgeOpenMarks(record, reason);
    case "none":
      return hasBegun(record) ? doubtful(reason, "hold", null) : { kind: "release" };
  }
}

/** Judges by the open marks alone: none left means that nothing is in doubt. */
export function judgeOpenMarks(record: Pick<KeyRecord, "steps">, reason: string): Verdict {
  const open = openMarks(record.steps);
  if (open.length === 0) return { kind: "release" };
  if (open.some((mark) => mark.provider === "blind")) return doubtful(reason, "review", null);
  if (open.some((mark) => mark.provider !== "repeatable")) return doubtful(reason, "reconcile", { inMs: 0 });
  return doubtful(reason, "reconcile", { at: Math.max(0, repeatableUntil(open)) });
}

/** Nobody knows what became of the effect; whoever the disposition names is to find out. */
export function doubtful(
  reason: string,
  disposition: Doubt["disposition"],
  nextLookAt: Doubt["nextLookAt"],
): Verdict {
  return { kind: "doubt", doubt: { evidence: { reason, result: null }, disposition, nextLookAt } };
}
