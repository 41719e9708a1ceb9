import type { InProgress, KeyRecord, RecordWrite, Unknown } from "../core/record.ts";
import { seen } from "../core/transition.ts";
import { type Flow, replace } from "./command.ts";
import { type Budget, persist } from "./retry.ts";

/** What became of a write that an attempt made about its own record. */
export type Written =
  | { readonly kind: "written"; readonly record: KeyRecord }
  /** The attempt no longer owns its key; what stands instead, if anything does. */
  | { readonly kind: "lost"; readonly record: KeyRecord | null };

/** The versions that an attempt may still write over. */
export type Held = InProgress | Unknown;

/**
 * Writes the attempt's next version and settles a lost reply by repeating the same write: its id says whether it was
 * applied. A version of this owner that we had not seen is our own late write, or the sweeper's doubt about us, and is
 * written over; anything else means that the key is lost. Throws the store's failure when the budget is spent.
 */
export function* writeFlow(held: Held, next: (record: Held) => RecordWrite, budget: Budget): Flow<Written> {
  let current = held;
  for (;;) {
    const write = next(current);
    const replaced = yield* persist(budget, () => replace(seen(current), write, "wait"));
    if (replaced.kind === "replaced") return { kind: "written", record: replaced.record };
    const stands = replaced.record;
    const ours = stands !== null && ownedStill(stands, held);
    if (!ours || stands.revision === current.revision) return { kind: "lost", record: stands };
    current = stands;
  }
}

/** Nobody has taken the record over, and it is not final. */
export function ownedStill(record: KeyRecord, held: Pick<Held, "owner">): record is Held {
  return record.owner === held.owner && (record.state === "in_progress" || record.state === "unknown");
}
