import type { Engine } from "../engine/engine.ts";
import type { Settling, WorkerName } from "../stores/store.ts";
import { atWork } from "./at-work.ts";
import { BOUNDS, type Bounds } from "./loop.ts";
import { type Reconciled, reconcileOnce } from "./reconciling.ts";
import { type Swept, sweepOnce } from "./sweeper.ts";

/** What one tick of each worker did. */
export interface Ticks {
  readonly sweeper: Swept;
  readonly reconciler: Reconciled;
  readonly purge: Purged;
}

/** What one tick of the purge did. */
export interface Purged {
  /** Removed, or all of it but the tombstone. */
  readonly purged: number;
  /** The tick's time was up before everything was gone. */
  readonly more: boolean;
}

/** One tick of the sweeper on this engine's store. */
export async function sweep<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  bounds: Partial<Bounds> = {},
): Promise<Swept> {
  return await atWork(engine, "sweeper", () => sweepOnce(engine.context, bounds));
}

/** One tick of the purge: removes records whose retention is over, or leaves their tombstones, batch after batch while there are any and time. */
export async function purge<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  bounds: Partial<Bounds> = {},
): Promise<Purged> {
  return await atWork(engine, "purge", () => purgeWhileAny(engine, bounds));
}

async function purgeWhileAny<Tx, Settles extends Settling>(
  { context: { runtime }, store }: Engine<Tx, Settles>,
  bounds: Partial<Bounds>,
): Promise<Purged> {
  const { limit, forMs, ending } = { ...BOUNDS, limit: PURGED_AT_ONCE, ...bounds };
  const untilMs = runtime.monotonicMs() + forMs;
  let purged = 0;
  let went = 0;
  do {
    went = await store.purge(limit);
    purged += went;
  } while (went > 0 && !ending() && runtime.monotonicMs() < untilMs);
  return { purged, more: went > 0 };
}

/** Short enough that nobody waits for the rows or the file that one batch locks. */
const PURGED_AT_ONCE = 1_000;

/** One tick of the reconciler, for the operations that this engine knows. */
export async function reconcile<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  bounds: Partial<Bounds> = {},
): Promise<Reconciled> {
  return await atWork(engine, "reconciler", () => reconcileOnce(engine, bounds));
}

/** The three of them, each as a function of what it is told while it runs. */
export function ticksOf<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
): { readonly [Name in WorkerName]: (bounds: Partial<Bounds>) => Promise<Ticks[Name]> } {
  return {
    sweeper: (bounds) => sweep(engine, bounds),
    reconciler: (bounds) => reconcile(engine, bounds),
    purge: (bounds) => purge(engine, bounds),
  };
}
