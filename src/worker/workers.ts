import { type Duration, parseDuration } from "../core/policy.ts";
import type { Engine } from "../engine/engine.ts";
import { ConfigurationError } from "../errors.ts";
import type { Settling, WorkerName } from "../stores/store.ts";
import { intervalsOf } from "./intervals.ts";
import { type Going, type Loop, repeat } from "./loop.ts";
import { type Ticks, ticksOf } from "./tick.ts";

/** The workers of one process. */
export interface Workers {
  /** Begins no further tick and waits for those that run; what they still call is given up after `within`. */
  readonly stop: (options?: { readonly within?: Duration }) => Promise<void>;
}

/** Which workers run, and who hears of their ticks. */
export interface WorkersOptions {
  readonly only?: readonly WorkerName[];
  readonly onTick?: (worker: WorkerName, done: Ticks[WorkerName]) => void;
}

const ALL_WORKERS: readonly WorkerName[] = ["sweeper", "reconciler", "purge"];

/**
 * Runs sweeper, reconciler and purge in this process, each in its own rhythm. Any number of processes may do so on one
 * store, and one that is killed at any moment loses nothing: each move is a compare-and-set, and the next tick goes on.
 */
export function startWorkers<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  { only = ALL_WORKERS, onTick = () => {} }: WorkersOptions = {},
): Workers {
  const { runtime, emit } = engine.context;
  const ticks = ticksOf(engine);
  const intervals = intervalsOf(engine);
  const loops = only.map((worker): Loop => {
    const tick = async (going: Going) => {
      const done = await ticks[worker](going);
      onTick(worker, done);
      return done;
    };
    const onFailure = (error: unknown) => emit({ type: "failure", what: `a tick of the ${worker}`, error });
    return repeat({ runtime, tick, onFailure, intervalMs: intervals[worker] });
  });
  return {
    stop: async ({ within = LONGEST_STOP_MS } = {}) => {
      const duration = parseDuration(within);
      if (duration.kind === "bad") throw new ConfigurationError("within", `must be ${duration.reason}`);
      await Promise.all(loops.map((loop) => loop.stop(duration.ms)));
    },
  };
}

/** As long as a close drains. */
const LONGEST_STOP_MS = 10_000;
