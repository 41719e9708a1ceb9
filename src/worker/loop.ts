import type { Runtime } from "../engine/runtime.ts";
import { jittered } from "./jitter.ts";

/** What a tick is told while it runs. */
export interface Going {
  /** True once no further piece of work may begin. */
  readonly ending: () => boolean;
  /** Aborts when what is under way has to be given up. */
  readonly signal: AbortSignal;
}

/** How much one tick does at most. */
export interface Bounds extends Going {
  /** Records listed at a time. */
  readonly limit: number;
  /** After this no further piece of work begins, so that a tick always comes to its end. */
  readonly forMs: number;
}

/** A tick that nobody stops. */
export const BOUNDS: Bounds = {
  limit: 100,
  forMs: 10_000,
  ending: () => false,
  signal: new AbortController().signal,
};

/** Work that is done again and again, never twice at a time. */
export interface Loop {
  /** Begins no further tick and waits for the one that runs, whose calls are given up after so long. */
  readonly stop: (withinMs: number) => Promise<void>;
}

export interface Rounds {
  readonly runtime: Runtime;
  readonly intervalMs: number;
  /** Says whether work was left, which is taken up at once. */
  readonly tick: (going: Going) => Promise<{ readonly more: boolean }>;
  /** Hears of a tick that failed; the next one comes later, and later each time. */
  readonly onFailure: (error: unknown) => void;
}

/** Runs a first tick at once and others after it, so much apart that those of several processes drift apart. */
export function repeat(rounds: Rounds): Loop {
  const { runtime } = rounds;
  const giveUp = new AbortController();
  let wake = () => {};
  let stopped = false;
  const going = { ending: () => stopped, signal: giveUp.signal };
  // A promise for each sleep: one for all of them would keep something of each for as long as the loop runs.
  const sleep = (ms: number) =>
    new Promise<void>((resolve) => {
      const cancel = runtime.after(ms, resolve);
      wake = () => {
        cancel();
        resolve();
      };
    });
  const running = run(rounds, going, sleep);
  return {
    stop: async (withinMs) => {
      stopped = true;
      wake();
      const bound = runtime.timer(withinMs);
      void bound.expired.then(() => giveUp.abort(new Error("The worker had to stop.")));
      await running;
      bound.cancel();
    },
  };
}

async function run(rounds: Rounds, going: Going, sleep: (ms: number) => Promise<void>): Promise<void> {
  const { intervalMs, runtime, tick, onFailure } = rounds;
  let failures = 0;
  while (!going.ending()) {
    let waitMs = intervalMs;
    try {
      const { more } = await tick(going);
      failures = 0;
      if (more) waitMs = BREATH_MS;
    } catch (error) {
      failures += 1;
      onFailure(error);
      waitMs = backedOff(intervalMs, failures);
    }
    if (!going.ending()) await sleep(jittered(waitMs, runtime.random()));
  }
}

/** Between two ticks of which the first left work: others get their turn. */
const BREATH_MS = 10;

/** A store that comes back is met within this, or within the interval where that is longer. */
const LONGEST_BACKOFF_MS = 60_000;

function backedOff(intervalMs: number, failures: number): number {
  return Math.max(intervalMs, Math.min(LONGEST_BACKOFF_MS, intervalMs * 2 ** Math.min(failures, DOUBLINGS)));
}

/** More would only overflow. */
const DOUBLINGS = 30;
