import { isBusy } from "./faults.ts";

/** Takes care that whoever waits for SQLite's one write lock freezes nobody else of this process. */
export interface Turns {
  /** Runs one write after those that were asked for before it. */
  take<T>(work: () => T): Promise<T>;
  /** Runs at once what need not queue. */
  skip<T>(work: () => T): Promise<T>;
}

export interface Patience {
  /** How long a locked file is tried again, counted from the call. */
  readonly timeoutMs: number;
  /** A fraction of one. */
  readonly random: () => number;
}

/**
 * Gives each write its turn: one of this process at a time tries for the lock, asynchronously and at random moments,
 * since SQLite's own waiting would block the event loop. `work` is run again as long as it throws BUSY.
 */
export function turns(patience: Patience): Turns {
  const breathe = breathing();
  let last: Promise<unknown> = Promise.resolve();
  const tried = async <T>(work: () => T, untilMs: number): Promise<T> => {
    for (let tries = 1; ; tries += 1) {
      await breathe();
      try {
        return work();
      } catch (error) {
        if (!isBusy(error) || performance.now() >= untilMs) throw error;
      }
      await slept(1 + patience.random() * Math.min(2 ** tries, LONGEST_PAUSE_MS));
    }
  };
  return {
    take: (work) => {
      const untilMs = performance.now() + patience.timeoutMs;
      const turn = last.then(() => tried(work, untilMs));
      last = turn.catch(() => {}); // its caller hears of it; the next one has its turn all the same
      return turn;
    },
    skip: (work) => tried(work, performance.now() + patience.timeoutMs),
  };
}

/** Long enough for a few commits of the other processes, short enough to catch the moment between two of them. */
const LONGEST_PAUSE_MS = 16;

/** Of synchronous work in a row before timers and sockets get their share. */
const STRETCH_MS = 10;

/** Lets the event loop turn once a stretch of synchronous work is long enough; a lone call never waits for it. */
function breathing(): () => Promise<void> {
  let sinceMs: number | null = null;
  return async () => {
    if (sinceMs !== null && performance.now() - sinceMs >= STRETCH_MS) await new Promise<void>(setImmediate);
    if (sinceMs !== null) return;
    sinceMs = performance.now();
    setImmediate(() => {
      sinceMs = null;
    });
  };
}

function slept(durationMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, durationMs);
  });
}
