import type { InProgress, RecordWrite, Unknown } from "./record.ts";
import { doubt, look, touch, type Writing } from "./transition.ts";

/**
 * unknown, or in_progress whose lease has lapsed → unknown in a person's hand: whoever had it before is fenced. Where
 * the reconciler would look next it waits a lease; where nobody would, nobody will.
 */
export function seize(
  record: InProgress | Unknown,
  change: Writing & { readonly owner: string; readonly leaseMs: number; readonly reason: string },
): RecordWrite {
  const { writeId, owner, leaseMs, reason } = change;
  if (record.state === "in_progress") {
    const reviewed = { evidence: { reason, result: null }, disposition: "review", nextLookAt: null } as const;
    return { ...doubt(record, { writeId, doubt: reviewed, heldRetainMs: leaseMs }), owner, attempt: "next" };
  }
  if (record.disposition === "reconcile") return look(record, { writeId, owner, leaseMs });
  return { ...touch(record, { writeId }), owner, attempt: "next" };
}
