import { randomBytes, randomUUID } from "node:crypto";

/** Time and randomness of this process, as arguments: the engine reads no clock of its own. */
export interface Runtime {
  /** Never goes backwards; its zero means nothing. */
  monotonicMs(): number;
  /** Between 0 and 1. */
  random(): number;
  randomBytes(length: number): Uint8Array;
  newId(): string;
  sleep(ms: number): Promise<void>;
  timer(ms: number): Timer;
  /** Calls `act` when the time is up, unless the returned cancel was called before. */
  after(ms: number, act: () => void): () => void;
}

export interface Timer {
  /** Settles when the time is up; never settles once cancelled. */
  readonly expired: Promise<void>;
  cancel(): void;
}

/** The runtime of Node itself. A running attempt keeps the process alive; everything else cancels its timers. */
export function nodeRuntime(): Runtime {
  const after = (ms: number, act: () => void) => {
    const handle = setTimeout(act, Math.min(ms, LONGEST_TIMER_MS));
    return () => clearTimeout(handle);
  };
  const timer = (ms: number): Timer => {
    let cancel = () => {};
    const expired = new Promise<void>((resolve) => {
      cancel = after(ms, resolve);
    });
    return { expired, cancel };
  };
  return {
    monotonicMs: () => performance.now(),
    random: Math.random,
    randomBytes: randomPool(),
    newId: () => randomUUID(),
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    timer,
    after,
  };
}

/** Asks the system for randomness in portions: a salt for each request costs a system call otherwise. */
function randomPool(): (length: number) => Uint8Array {
  let portion = Buffer.alloc(0);
  return (length) => {
    if (portion.length < length) portion = randomBytes(Math.max(length, RANDOM_PORTION));
    const taken = Uint8Array.prototype.slice.call(portion, 0, length);
    portion = portion.subarray(length);
    return taken;
  };
}

const RANDOM_PORTION = 4_096;

/** Node turns longer ones into 1 ms. */
const LONGEST_TIMER_MS = 2_147_483_647;
