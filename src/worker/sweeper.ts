import type { InProgress, KeyRecord, RecordWrite } from "../core/record.ts";
import { doubt, release, seen } from "../core/transition.ts";
import { judgeDeath } from "../core/verdict.ts";
import { type Flow, replace } from "../engine/command.ts";
import type { Context } from "../engine/context.ts";
import { noticeOutage } from "./away.ts";
import { allEnded } from "./lanes.ts";
import { listUnmet, type Met, nobodyMet } from "./listing.ts";
import { BOUNDS, type Bounds } from "./loop.ts";

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
  /** The tick's time was up before everything was judged. */
  readonly more: boolean;
}

/**
 * Judges attempts that were not heard of for the lease and the grace: released where it is proved that nothing
 * happened, `unknown` where it is not; batch after batch while there are any and time, a few of a batch at once. Any
 * number of sweepers may run at once: each move is a compare-and-set. One that cannot be judged is met once in a tick and
 * stands in nobody's way.
 */
export async function sweepOnce<Tx>(context: Context<Tx>, bounds: Partial<Bounds> = {}): Promise<Swept> {
  const { driver, runtime, policy } = context;
  const { limit, forMs, ending } = { ...BOUNDS, ...bounds };
  const { sweepGraceMs: graceMs } = policy;
  const untilMs = runtime.monotonicMs() + forMs;
  const isOver = () => ending() || runtime.monotonicMs() >= untilMs;
  const wanted = { query: { kind: "stale", graceMs }, mine, limit, isOver } as const;
  const met = nobodyMet();
  const counts = { released: 0, doubted: 0, passed: 0, failed: 0, damaged: 0 };
  const heard = noticeOutage();
  for (;;) {
    const { records, damaged } = await driver.drive(listUnmet(wanted, met));
    counts.damaged += damaged;
    if (records.length === 0) return { ...counts, more: !met.atEnd };
    const left = [...records];
    const batch = { context, left, isOver, met, counts, heard };
    await allEnded(Array.from({ length: LANES }, () => driver.drive(laneFlow(batch))));
    if (left.length > 0) return { ...counts, more: true };
  }
}

/** Commits that come together share the disk's time. More of them end a great heap no sooner, and slow the traffic beside it down. */
const LANES = 2;

/** What the lanes of one batch have between them. */
interface Batch<Tx> {
  readonly context: Context<Tx>;
  /** The records that no lane has taken, in their order. */
  readonly left: InProgress[];
  readonly isOver: () => boolean;
  readonly met: Met;
  readonly counts: Record<One["result"], number>;
  readonly heard: ReturnType<typeof noticeOutage>;
}

function* laneFlow<Tx>({ context, left, isOver, met, counts, heard }: Batch<Tx>): Flow<void> {
  for (;;) {
    const [record] = left;
    if (record === undefined || isOver()) return;
    left.shift();
    met.add(record);
    const { result, error } = yield* sweepOne(context, record);
    counts[result]++;
    heard(error);
  }
}

function mine(record: KeyRecord): record is InProgress {
  return record.state === "in_progress";
}

interface One {
  readonly result: "released" | "doubted" | "passed" | "failed";
  readonly error?: unknown;
}

/** A record that cannot be judged now is told, and is due again at the next tick. */
function* sweepOne<Tx>(context: Context<Tx>, record: InProgress): Flow<One> {
  try {
    const replaced = yield* replace(seen(record), judged(context, record), "never");
    if (replaced.kind !== "replaced") return { result: "passed" };
    tell(context, record, replaced.record);
    return { result: replaced.record.state === "released" ? "released" : "doubted" };
  } catch (error) {
    context.emit({ type: "failure", what: `sweeping ${record.operation}`, error });
    return { result: "failed", error };
  }
}

function judged<Tx>({ policy, runtime }: Context<Tx>, record: InProgress): RecordWrite {
  const verdict = judgeDeath(record, "The attempt was not heard of before its lease and the grace ended.");
  const writeId = runtime.newId();
  if (verdict.kind === "release") return release(record, { writeId, retainMs: policy.releasedRetentionMs });
  return doubt(record, { writeId, doubt: verdict.doubt, heldRetainMs: policy.unknownRetentionMs });
}

function tell<Tx>({ emit }: Context<Tx>, from: InProgress, to: KeyRecord): void {
  const { operation, identity, attempt } = to;
  const reason =
    to.state === "unknown" ? to.evidence.reason : "The attempt died; it is proved that nothing happened.";
  const move = { from: from.state, to: to.state, reason } as const;
  emit({ type: "transition", by: "sweeper", operation, identity, attempt, ...move });
}
