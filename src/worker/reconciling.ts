import type { KeyRecord, Unknown } from "../core/record.ts";
import { clock, type TransactionFlow } from "../engine/command.ts";
import type { Context } from "../engine/context.ts";
import type { Settler } from "../engine/settler.ts";
import { noticeOutage } from "./away.ts";
import { allEnded } from "./lanes.ts";
import { listUnmet, type Met, nobodyMet } from "./listing.ts";
import { BOUNDS, type Bounds } from "./loop.ts";
import { type Ender, type Result, reconcileOne } from "./reconciler.ts";
import { hasKnownSteps, type KnownSteps } from "./steps.ts";

/** What one tick of the reconciler did: so many records by what became of them. */
export interface Reconciled extends Readonly<Record<Result, number>> {
  readonly damaged: number;
  /** The tick's time was up before everything was looked at. */
  readonly more: boolean;
}

/** Whoever knows operations. */
export interface Knowing<Tx> {
  readonly context: Context<Tx>;
  readonly settlers: ReadonlyMap<string, Settler<Tx>>;
  readonly steps: KnownSteps;
}

/**
 * Looks at what is due, batch after batch while there is any and time. Operations do not wait for one another: a
 * provider that hangs holds up its own records only, and after a few of them they are left to the next tick. Records of
 * operations that are not known here are left, as they are, to those who know them.
 */
export async function reconcileOnce<Tx>(
  { context, settlers, steps }: Knowing<Tx>,
  bounds: Partial<Bounds>,
): Promise<Reconciled> {
  const { driver, runtime } = context;
  const { limit, forMs, ending, signal } = { ...BOUNDS, ...bounds };
  const untilMs = runtime.monotonicMs() + forMs;
  const met = nobodyMet();
  const counts = { ...NOTHING };
  const round = {
    context,
    settlers,
    steps,
    untilMs,
    ending,
    signal,
    met,
    counts,
    silent: new Map<string, number>(),
  };
  const mine = (record: KeyRecord): record is Unknown =>
    record.state === "unknown" && (settlers.has(record.operation) || hasKnownSteps(steps, record));
  const isOver = () => ending() || runtime.monotonicMs() >= untilMs;
  const wanted = { query: { kind: "looks" }, mine, limit, isOver } as const;
  for (;;) {
    const { records, damaged } = await driver.drive(listUnmet(wanted, met));
    counts.damaged += damaged;
    if (records.length === 0) return { ...counts, more: !met.atEnd };
    if (isOver()) return { ...counts, more: true };
    await allEnded(lanesOf(records).map((lane) => driver.drive(laneFlow(round, lane))));
  }
}

const NOTHING = {
  ...{ settled: 0, released: 0, waiting: 0, reviewed: 0, passed: 0, unreachable: 0, failed: 0, damaged: 0 },
};

/** What the lanes of one tick have between them. */
interface Round<Tx> extends Knowing<Tx>, Pick<Bounds, "ending" | "signal"> {
  readonly untilMs: number;
  readonly met: Met;
  readonly counts: Record<Result, number>;
  /** How often in a row an operation's provider was out of reach. */
  readonly silent: Map<string, number>;
}

/** So many looks of one operation are under way at once. */
const LANES = 2;

function lanesOf(records: readonly Unknown[]): readonly (readonly Unknown[])[] {
  const lanes = new Map<string, Unknown[]>();
  const dealt = new Map<string, number>();
  for (const record of records) {
    const turn = dealt.get(record.operation) ?? 0;
    dealt.set(record.operation, turn + 1);
    const name = `${turn % LANES} ${record.operation}`;
    lanes.set(name, [...(lanes.get(name) ?? []), record]);
  }
  return [...lanes.values()];
}

/** So many times in a row without an answer, and the rest is left, untouched, to the next tick. */
const OUT_OF_REACH = 3;

function* laneFlow<Tx>(round: Round<Tx>, records: readonly Unknown[]): TransactionFlow<void, Tx> {
  const { settlers, steps, untilMs, ending, met, counts, silent } = round;
  const heard = noticeOutage();
  for (const record of records) {
    const settler = settlers.get(record.operation);
    if (ending() || (yield* clock()) >= untilMs) return;
    met.add(record);
    const inARow = () => silent.get(record.operation) ?? 0;
    if (inARow() >= OUT_OF_REACH) continue;
    const ender: Ender<Tx> =
      settler === undefined ? { kind: "steps", steps } : { kind: "operation", settler };
    const { result, error } = yield* handled(round, ender, record);
    counts[result]++;
    silent.set(record.operation, result === "unreachable" ? inARow() + 1 : 0);
    heard(error);
  }
}

function* handled<Tx>(
  { context, signal }: Round<Tx>,
  ender: Ender<Tx>,
  record: Unknown,
): TransactionFlow<{ readonly result: Result; readonly error?: unknown }, Tx> {
  try {
    return { result: yield* reconcileOne(context, ender, record, signal) };
  } catch (error) {
    context.emit({ type: "failure", what: `reconciling ${record.operation}`, error });
    return { result: "failed", error };
  }
}
