import {
  type Answer,
  type InProgress,
  type Instant,
  isConcluded,
  type KeyRecord,
  type Released,
  type Unknown,
} from "./record.ts";
import { hasProgress, openMarks, repeatableUntil } from "./step.ts";
import type { Doubt } from "./transition.ts";
import { judgeDeath } from "./verdict.ts";

/** How a request compares with the kept fingerprint, judged under the record's own salt and version. */
export type Match = "same" | "other" | "unverifiable";

/** What the programmer said about an `unknown` in so many words; `keep` is to say nothing. */
export type OnAmbiguous = "keep" | "rerun" | "replay";

export interface Situation {
  readonly record: KeyRecord;
  readonly match: Match;
  /** The attempt that asks. */
  readonly owner: string;
  /** The store's now, from the same trip as the record. */
  readonly now: Instant;
  readonly onAmbiguous: OnAmbiguous;
  /** The claim that stands is of the very execution that asks, which has come back to go on. */
  readonly reenters: boolean;
}

export type Decision =
  /** The standing record carries the asker's own claim. */
  | { readonly kind: "run"; readonly record: InProgress }
  | { readonly kind: "take_over"; readonly record: Released | InProgress | Unknown }
  /** Its retention is over, and its tombstone's time too: the identity starts again as if never seen. */
  | { readonly kind: "claim_anew"; readonly record: KeyRecord }
  | { readonly kind: "mark_unknown"; readonly record: InProgress; readonly doubt: Doubt }
  | { readonly kind: "replay"; readonly record: KeyRecord; readonly answer: Answer }
  | { readonly kind: "response_not_stored"; readonly record: KeyRecord; readonly answer: Answer }
  /** Its retention is over, and its tombstone still stands: only that the key was used is remembered. */
  | { readonly kind: "expired"; readonly record: KeyRecord }
  | { readonly kind: "in_progress"; readonly record: KeyRecord; readonly retryAfterMs: number }
  | { readonly kind: "mismatch"; readonly record: KeyRecord }
  | { readonly kind: "unverifiable"; readonly record: KeyRecord }
  | { readonly kind: "outcome_unknown"; readonly record: KeyRecord; readonly retryAfterMs: number | null };

/** Whole seconds are the finest that `Retry-After` can say. */
const SHORTEST_RETRY_MS = 1_000;

/** The whole behaviour towards a record that stands: the state table of the specification is this function. */
export function decide(situation: Situation): Decision {
  const { record, match, now } = situation;
  if (isRemembered(record, now)) return { kind: "expired", record };
  if (retentionIsOver(record, now)) return { kind: "claim_anew", record };
  switch (record.state) {
    case "in_progress":
      return decideInProgress(record, situation);
    case "released":
      return match === "same" || !hasProgress(record)
        ? { kind: "take_over", record }
        : refused(record, match);
    case "unknown":
      return decideUnknown(record, situation);
    case "completed":
    case "failed_permanent": {
      if (match !== "same") return refused(record, match);
      const { answer } = record;
      return { kind: answer.body === null ? "response_not_stored" : "replay", record, answer };
    }
  }
}

/** True once a retention is over; never for what is running, nor for an `unknown` that somebody will end. */
export function retentionIsOver(record: KeyRecord, now: Instant): boolean {
  return record.state !== "in_progress" && record.retainUntil !== null && record.retainUntil <= now;
}

/**
 * True from the end of a finished record's retention to the end of its tombstone, whether or not the purge has been there.
 * No fingerprint has a say in it: the hashes go with the answer, for good, even if the store's clock steps back behind it.
 */
export function isRemembered(record: KeyRecord, now: Instant): boolean {
  if (!isConcluded(record) || record.tombstoneMs === null) return false;
  const isTombstone = record.fingerprint.canonical.length === 0;
  if (!isTombstone && !retentionIsOver(record, now)) return false;
  return now < record.retainUntil + record.tombstoneMs;
}

function decideInProgress(record: InProgress, { match, owner, now, reenters }: Situation): Decision {
  const lapsed = record.leaseUntil <= now;
  const own = record.owner === owner;
  if (own && !lapsed) return { kind: "run", record };
  if (own) return { kind: "take_over", record }; // it asks before it has run anything
  if (match !== "same") return refused(record, match);
  if (!lapsed && !reenters) {
    const retryAfterMs = atLeastOneSecond(Math.min(now - record.claimedAt, record.leaseUntil - now));
    return { kind: "in_progress", record, retryAfterMs };
  }
  // What it did not declare it runs again by the word of whoever gave it a name.
  if (reenters && record.effects === "none") return { kind: "take_over", record };
  const verdict = judgeDeath(
    record,
    reenters ? LEFT : "The attempt was not heard of before its lease ended.",
  );
  if (verdict.kind === "release") return { kind: "take_over", record };
  return { kind: "mark_unknown", record, doubt: verdict.doubt };
}

const LEFT = "The execution came back without saying what had become of its last attempt.";

function decideUnknown(record: Unknown, { match, now, onAmbiguous, reenters }: Situation): Decision {
  if (match !== "same") return refused(record, match);
  if (reenters && record.disposition === "hold") return { kind: "take_over", record };
  if (onAmbiguous === "rerun" || isRepeatable(record, now)) return { kind: "take_over", record };
  const { nextLookAt } = record;
  const retryAfterMs = nextLookAt === null ? null : atLeastOneSecond(nextLookAt - now);
  return { kind: "outcome_unknown", record, retryAfterMs };
}

/** Every call in doubt may be made again, because its provider will know our key, and has not been heard yet. */
export function isRepeatable(record: Unknown, now: Instant): boolean {
  const open = openMarks(record.steps);
  return record.evidence.result === null && open.length > 0 && now < repeatableUntil(open);
}

function refused(record: KeyRecord, match: "other" | "unverifiable"): Decision {
  return { kind: match === "other" ? "mismatch" : "unverifiable", record };
}

function atLeastOneSecond(durationMs: number): number {
  return Math.max(SHORTEST_RETRY_MS, durationMs);
}
