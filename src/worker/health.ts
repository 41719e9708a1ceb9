import type { Engine } from "../engine/engine.ts";
import type { Settling, WorkerName } from "../stores/store.ts";
import { intervalsOf } from "./intervals.ts";
import { MOST_JITTER } from "./jitter.ts";

/** Whether a worker was ever seen on this store, and lately enough, by whichever process. */
export type WorkerHealth = "absent" | "ok" | "stale";

/** Reads off the store when each worker was last at work; `stale` is one that missed three of its intervals. */
export async function workersHealth<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
): Promise<Readonly<Record<WorkerName, WorkerHealth>>> {
  const beats = await engine.store.beats();
  const intervals = intervalsOf(engine);
  const { storeTimeoutMs } = engine.policy; // a tick's own calls may take as long
  const health = (worker: WorkerName): WorkerHealth => {
    const ages = beats.filter((beat) => beat.worker === worker).map(({ ageMs }) => ageMs);
    if (ages.length === 0) return "absent";
    const longestMs = MISSED_TICKS * MOST_JITTER * intervals[worker] + storeTimeoutMs;
    return Math.min(...ages) > longestMs ? "stale" : "ok";
  };
  return { sweeper: health("sweeper"), reconciler: health("reconciler"), purge: health("purge") };
}

/** One tick late is no alarm; so many are. */
const MISSED_TICKS = 3;
