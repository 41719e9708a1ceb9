import { randomBytes, randomUUID } from "node:crypto";
import type { Runtime } from "../../src/engine/runtime.ts";

/** Time that passes only where a test lets it: exact, and as fast as the work it waits for. */
export interface VirtualTime {
  readonly runtime: Runtime;
  /** For a store that is to live in the same time; no two clocks begin alike. */
  readonly now: () => number;
  readonly elapsedMs: () => number;
  /** Lets time pass from timer to timer until `work` has settled. */
  readonly until: <T>(work: Promise<T>) => Promise<T>;
  readonly pass: (ms: number) => Promise<void>;
  /** As a stopped process: time passes, its timers are late. */
  readonly stop: () => void;
  /** What was late happens now, all at once. */
  readonly resume: () => void;
}

const STORE_EPOCH_MS = 1_800_000_000_000;

interface Alarm {
  readonly atMs: number;
  readonly ring: () => void;
}

export function virtualTime(): VirtualTime {
  let nowMs = 0;
  let stopped = false;
  const alarms = new Set<Alarm>();
  const earliest = () => [...alarms].sort((one, other) => one.atMs - other.atMs)[0];
  const ring = (alarm: Alarm) => {
    nowMs = Math.max(nowMs, alarm.atMs);
    alarms.delete(alarm);
    alarm.ring();
  };
  const after = (ms: number, ring: () => void) => {
    const alarm = { atMs: nowMs + ms, ring };
    alarms.add(alarm);
    return () => void alarms.delete(alarm);
  };
  const timer = (ms: number) => {
    let cancel = () => {};
    const expired = new Promise<void>((resolve) => {
      cancel = after(ms, resolve);
    });
    return { expired, cancel };
  };
  const pass = async (ms: number) => {
    const endMs = nowMs + ms;
    for (;;) {
      await turn();
      const next = earliest();
      if (stopped || next === undefined || next.atMs > endMs) break;
      ring(next);
    }
    nowMs = endMs;
  };
  const until = async <T>(work: Promise<T>): Promise<T> => {
    let settled = false;
    const settle = () => {
      settled = true;
    };
    work.then(settle, settle);
    for (await turn(); !settled; await turn()) {
      const next = earliest();
      if (next === undefined) throw new Error("The work waits for nothing that time could bring.");
      ring(next);
    }
    return await work;
  };
  return {
    runtime: {
      ...{ monotonicMs: () => nowMs, random: () => 1, newId: () => randomUUID() },
      ...{ randomBytes: (length) => randomBytes(length), timer, after, sleep: (ms) => timer(ms).expired },
    },
    ...{ now: () => STORE_EPOCH_MS + nowMs, elapsedMs: () => nowMs, until, pass },
    stop: () => {
      stopped = true;
    },
    resume: () => {
      stopped = false;
    },
  };
}

/** Everything that needs no time has happened after this. */
async function turn(): Promise<void> {
  for (let times = 0; times < 3; times += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}
