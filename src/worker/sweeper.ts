import type { InProgress, KeyRecord, RecordWrite } from "../core/record.ts";
import { doubt, release, seen } from "../core/transition.ts";
import { judgeDeath } from "../core/verdict.ts";
import { due, type Flow, replace } from "../engine/command.ts";
import type { Context } from "../engine/context.ts";

/** What one tick of the sweeper did. */
export interface Swept {
  readonly released: number;
  readonly doubted: number;
  /** Moved by somebody else in the meantime, or held by an open transaction. */
  readonly passed: number;
  /** Could not be written now; each is told to the listeners. */
  readonly failed: number;
  /** Rows that could not be read; a person must look at them. */
  readonly damaged: number;
}

/** Records judged in one tick; the next tick goes on where this one stopped. */
const BATCH = 100;

/**
 * Judges attempts that were not heard of for the lease and the grace: released where it is proved that nothing
 * happened, `unknown` where it is not. Any number of sweepers may run at once; each move is a compare-and-set.
 */
export function* sweepFlow<Tx>(context: Context<Tx>, limit: number = BATCH): Flow<Swept> {
  const { policy } = context;
  const listed = yield* due({ kind: "stale", graceMs: policy.sweepGraceMs, limit });
  let swept: Swept = { released: 0, doubted: 0, passed: 0, failed: 0, damaged: listed.damaged };
  for (const record of listed.records) {
    if (record.state === "in_progress") swept = yield* sweepOne(context, swept, record);
  }
  return swept;
}

/** A record that cannot be judged now is told, and is due again at the next tick. */
function* sweepOne<Tx>(context: Context<Tx>, swept: Swept, record: InProgress): Flow<Swept> {
  try {
    const replaced = yield* replace(seen(record), judged(context, record), "never");
    if (replaced.kind === "replaced") tell(context, record, replaced.record);
    return counted(swept, replaced.kind === "replaced" ? replaced.record : null);
  } catch (error) {
    context.emit({ type: "failure", what: `sweeping ${record.operation}`, error });
    return { ...swept, failed: swept.failed + 1 };
  }
}

function judged<Tx>({ policy, runtime }: Context<Tx>, record: InProgress): RecordWrite {
  const verdict = judgeDeath(record, "The attempt was not heard of before its lease and the grace ended.");
  const writeId = runtime.newId();
  if (verdict.kind === "release") return release(record, { writeId, retainMs: policy.releasedRetentionMs });
  return doubt(record, { writeId, doubt: verdict.doubt, heldRetainMs: policy.unknownRetentionMs });
}

function counted(swept: Swept, moved: KeyRecord | null): Swept {
  switch (moved?.state) {
    case "released":
      return { ...swept, released: swept.released + 1 };
    case "unknown":
      return { ...swept, doubted: swept.doubted + 1 };
    case "in_progress":
    case "completed":
    case "failed_permanent":
    case undefined:
      return { ...swept, passed: swept.passed + 1 };
  }
}

function tell<Tx>({ emit }: Context<Tx>, from: InProgress, to: KeyRecord): void {
  const { operation, identity, attempt } = to;
  const reason =
    to.state === "unknown" ? to.evidence.reason : "The attempt died; it is proved that nothing happened.";
  emit({
    type: "transition",
    by: "sweeper",
    operation,
    identity,
    attempt,
    from: from.state,
    to: to.state,
    reason,
  });
}
