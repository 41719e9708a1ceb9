import { isBusy } from "./faults.ts";

/** Takes care that whoever waits for SQLite's one write lock freezes nobody else of this process. */
export interface Turns {
  /** Runs one write after those that were asked for before it. */
  take<T>(work: () => T): Promise<T>;
  /** Runs at once what need not queue; it tries for `atMostMs` where that is shorter than the patience of all. */
  skip<T>(work: () => T, atMostMs?: number): Promise<T>;
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
  const stretch = workingStretch();
  let last: Promise<unknown> = Promise.resolve();
  const tried = async <T>(work: () => T, untilMs: number): Promise<T> => {
    for (let tries = 1; ; tries += 1) {
      await null; // whoever calls from within a transaction's unit comes after it
      await stretch.share();
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
    skip: (work, atMostMs = patience.timeoutMs) =>
      tried(work, performance.now() + Math.min(atMostMs, patience.timeoutMs)),
  };
}

/** Long enough for a few commits of the other processes, short enough to catch the moment between two of them. */
const LONGEST_PAUSE_MS = 16;

/** Of synchronous work in a row before timers and sockets get their share. */
const STRETCH_MS = 10;

/**
 * How long this process has worked for the store since its event loop last turned. Asked right before each work and not
 * earlier, for many may have been called for at once; a lone one never waits. Once somebody waits, all others come behind:
 * a caller that asks again as soon as it is answered would else be ahead of the rest for ever.
 */
function workingStretch() {
  let sinceMs: number | null = null;
  const waiting: (() => void)[] = [];
  const isLong = () => sinceMs !== null && performance.now() - sinceMs >= STRETCH_MS;
  const serveOne = () => {
    if (isLong()) setImmediate(serveOne);
    else waiting.shift()?.();
  };
  return {
    share: async () => {
      if (waiting.length > 0 || isLong()) {
        await new Promise<void>((resolve) => {
          waiting.push(resolve);
          setImmediate(serveOne);
        });
      }
      if (sinceMs !== null) return;
      sinceMs = performance.now();
      setImmediate(() => {
        sinceMs = null;
      });
    },
  };
}

function slept(durationMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, durationMs);
  });
}
