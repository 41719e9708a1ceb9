import type { Policy } from "./policy.ts";
import type { Instant } from "./record.ts";
import type { OpenMark } from "./step.ts";

/** What a provider's "not found" is worth where nobody can cancel the effect there. */
export type NotFound =
  /** The effect did not happen, and can happen no more. */
  { readonly kind: "proved" } | { readonly kind: "inconclusive"; readonly soonestMs: number };

/** A look as it was made. */
export interface LookMade {
  /** The store's now before the provider was asked: what the answer says, it says of then or later. */
  readonly askedAt: Instant;
  /** Answered looks before this one. */
  readonly looks: number;
}

/**
 * A provider that refuses a request after its `validUntil` is believed on a second look, made after that. One that
 * refuses nothing is believed on the third look, no sooner than the grace after the first.
 */
export function judgeNotFound(
  mark: Pick<OpenMark, "validUntil"> | null,
  { askedAt, looks }: LookMade,
  { notFoundGraceMs, maxReconcileLooks }: Pick<Policy, "notFoundGraceMs" | "maxReconcileLooks">,
): NotFound {
  const validUntil = mark?.validUntil ?? null;
  if (validUntil === null) {
    if (looks + 1 >= LOOKS_OF_GRACE) return { kind: "proved" };
    return { kind: "inconclusive", soonestMs: Math.ceil(notFoundGraceMs / (LOOKS_OF_GRACE - 1)) };
  }
  if (askedAt > validUntil) return looks > 0 ? { kind: "proved" } : { kind: "inconclusive", soonestMs: 0 };
  // The last look before a person must decide is kept for when it can prove something.
  const lastIsNext = looks + 2 >= maxReconcileLooks;
  return { kind: "inconclusive", soonestMs: lastIsNext ? validUntil - askedAt + 1 : 0 };
}

const LOOKS_OF_GRACE = 3;
