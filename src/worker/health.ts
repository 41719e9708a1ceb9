import type { Engine } from "../engine/engine.ts";
import type { Settling, WorkerName } from "../stores/store.ts";
import { intervalsOf } from "./workers.ts";

/** Whether a worker was ever seen on this store, and lately enough, by whichever process. */
export type WorkerHealth = "absent" | "ok" | "stale";

/** Reads off the store when each worker was last at work. */
export async function workersHealth<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
): Promise<Readonly<Record<WorkerName, WorkerHealth>>> {
  const beats = await engine.store.beats();
  const intervals = intervalsOf(engine);
  const health = (worker: WorkerName): WorkerHealth => {
    const ages = beats.filter((beat) => beat.worker === worker).map(({ ageMs }) => ageMs);
    if (ages.length === 0) return "absent";
    return Math.min(...ages) > intervals[worker] * MISSED_TICKS + LONGEST_TICK_MS ? "stale" : "ok";
  };
  return { sweeper: health("sweeper"), reconciler: health("reconciler"), purge: health("purge") };
}

/** One tick late is no alarm; so many are. */
const MISSED_TICKS = 4;

/** A tick with much to do, or with a provider that hangs, comes back within this. */
const LONGEST_TICK_MS = 60_000;
