import { type Decision, decide, type Match, type OnAmbiguous } from "../core/decide.ts";
import type { InProgress, KeyRecord, RecordState, RecordWrite } from "../core/record.ts";
import { holdsSealed } from "../core/sealed.ts";
import { markedBefore } from "../core/step.ts";
import { type Claim, claim, claimAnew, doubt, seen, takeOver } from "../core/transition.ts";
import { RecordCorrupt, StoreContention } from "../errors.ts";
import type { Patience, Replaced, Standing } from "../stores/store.ts";
import { type Flow, insert, read, replace } from "./command.ts";
import { type Budget, persist } from "./retry.ts";

/** What is asked when a key arrives. */
export interface Asked {
  readonly claim: Claim;
  readonly match: (record: KeyRecord) => Match;
  /** Whether the standing claim is of the execution that asks. */
  readonly reenters: (record: KeyRecord) => boolean;
  readonly onAmbiguous: OnAmbiguous;
  readonly newId: () => string;
  /** How long a held `unknown` is kept. */
  readonly heldRetainMs: number;
}

export type Final = Exclude<Decision, { kind: "run" | "take_over" | "claim_anew" | "mark_unknown" }> | Busy;

/** Somebody is at it; the record is `null` while their claim is not committed yet. */
export interface Busy {
  readonly kind: "in_progress";
  readonly record: KeyRecord | null;
  readonly retryAfterMs: number;
}

/** A record that this request moved on its way. */
export interface Moved {
  readonly from: RecordState;
  readonly to: KeyRecord;
}

export type Claimed =
  | { readonly kind: "claimed"; readonly record: InProgress; readonly moved: readonly Moved[] }
  | { readonly kind: "final"; readonly decision: Final; readonly moved: readonly Moved[] };

/** Each round loses to somebody else's progress; more than this many in a row is not contention but a fault. */
export const ROUNDS = 12;

export function changedHands(): StoreContention {
  return new StoreContention(
    `The key changed hands ${ROUNDS} times while it was being claimed. Send the request again.`,
  );
}

/** The same claim by another write. */
export function renewed({ claim: asked, newId }: Asked): Claim {
  return { ...asked, writeId: newId() };
}

/** A row that somebody's open transaction holds is running, whatever it says. */
const LOCKED_RETRY_MS = 1_000;

/**
 * Claims, or finds out why not. Fresh, taken over and lost are one path: insert a draft; with whatever record stands,
 * decide; either answer, or replace and look again. Runs only when the standing record carries the asker's owner.
 */
export function* claimFlow(asked: Asked, budget: Budget): Flow<Claimed> {
  const draft = claim(asked.claim);
  const moved: Moved[] = [];
  let standing: Pick<Standing, "record" | "now"> | null = null;
  for (let round = 0; round < ROUNDS; round++) {
    standing ??= yield* persist(budget, () => insert(draft));
    const next = react(asked, standing);
    if (next.kind === "claimed") return { kind: next.kind, record: next.record, moved };
    if (next.kind === "final") return { kind: next.kind, decision: next.decision, moved };
    const { record, write } = next;
    const replaced: Replaced = yield* persist(
      budget,
      patiently((patience) => replace(seen(record), write, patience)),
    );
    if (replaced.kind === "locked") return { kind: "final", decision: locked(replaced.record), moved };
    if (replaced.kind === "replaced") moved.push({ from: record.state, to: replaced.record });
    standing = found(replaced);
  }
  throw changedHands();
}

/**
 * A first try never waits for somebody's open transaction. A repeat does: its first copy may be what holds the row, and
 * only the lock tells what became of it.
 */
export function patiently<T>(write: (patience: Patience) => T): () => T {
  let patience: Patience = "never";
  return () => {
    const now = patience;
    patience = "wait";
    return write(now);
  };
}

/** What to say while somebody else's claim is not committed yet. */
export function* whileBusy(asked: Asked, budget: Budget | (() => Budget)): Flow<Final> {
  const { record, now } = yield* persist(budget, () => read(asked.claim.identity));
  if (record === null) return locked(null);
  const reaction = react(asked, { record, now });
  return reaction.kind === "final" ? reaction.decision : locked(record);
}

export type Reaction =
  | { readonly kind: "claimed"; readonly record: InProgress }
  | { readonly kind: "final"; readonly decision: Final }
  | { readonly kind: "write"; readonly record: KeyRecord; readonly write: RecordWrite };

/** What to do about the record that stands: run under it, answer, or write. */
export function react(asked: Asked, standing: Pick<Standing, "record" | "now">): Reaction {
  const { record, now } = standing;
  const { owner } = asked.claim;
  // Its own record is of its own request, whatever that is.
  const match = record.owner === owner ? "same" : asked.match(record);
  const { onAmbiguous } = asked;
  const decision = decide({ record, now, owner, match, onAmbiguous, reenters: asked.reenters(record) });
  switch (decision.kind) {
    case "run":
      return { kind: "claimed", record: decision.record };
    case "take_over": {
      if (holdsSealed(decision.record)) throw keyMissing();
      const body = match === "same" ? "same" : "corrected";
      const earlier = markedBefore(decision.record, now);
      return { kind: "write", record, write: takeOver(earlier, renewed(asked), body) };
    }
    case "claim_anew":
      return { kind: "write", record, write: claimAnew(decision.record, renewed(asked)) };
    case "mark_unknown": {
      const change = { writeId: asked.newId(), doubt: decision.doubt, heldRetainMs: asked.heldRetainMs };
      return { kind: "write", record, write: doubt(decision.record, change) };
    }
    case "replay":
    case "response_not_stored":
    case "expired":
    case "in_progress":
    case "mismatch":
    case "unverifiable":
    case "outcome_unknown":
      return { kind: "final", decision };
  }
}

/** An attempt that cannot read what an earlier one kept would make its effects again. */
function keyMissing(): RecordCorrupt {
  return new RecordCorrupt(
    "what an earlier attempt kept in it is sealed, and the key is not in this process's ring",
  );
}

/** What stands after a compare-and-set, or `null` where the record is gone and must be inserted again. */
export function found(replaced: Replaced): Pick<Standing, "record" | "now"> | null {
  return replaced.record === null ? null : { record: replaced.record, now: replaced.now };
}

/** The answer to a duplicate that met somebody's open transaction. */
export function locked(record: KeyRecord | null): Busy {
  return { kind: "in_progress", record, retryAfterMs: LOCKED_RETRY_MS };
}
