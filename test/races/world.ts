import type { Runtime } from "../../src/engine/runtime.ts";
import type { Choices } from "./choices.ts";
import type { OpenTx } from "./open-tx.ts";

/** A process of the simulation: it lives, stands still, or is gone with all that it was about to do. */
export interface Process {
  readonly name: string;
  readonly number: number;
  readonly runtime: Runtime;
  state: "live" | "paused" | "dead";
  /** How long its own clock has stood still: a machine that was suspended. */
  frozenMs: number;
  /** Since when it has stood still together with its clock. */
  stoodSince: number | null;
  readonly alarms: Alarm[];
}

interface Alarm {
  readonly atMs: number;
  readonly ring: () => void;
}

/** Something that will happen, at a moment which the scheduler chooses. */
export interface Happening {
  readonly what: string;
  /** Whose it is: happens only while that one lives; `null` for what is under way already. */
  readonly owner: Process | null;
  /** Who sent it. */
  readonly from: Process | null;
  /** Not before. */
  readonly atMs: number;
  /** Waits for this transaction's end. */
  blockedBy?: OpenTx;
  /** Not as long as this one lives. */
  onceGone?: Process;
  /** A copy that nobody waits for any more. */
  isLate?: boolean;
  readonly run: () => void;
}

/** How likely what is; every schedule draws its own, zero among them. */
export interface Rates {
  /** That a store call does not simply succeed. */
  readonly store: number;
  readonly storeFates: readonly StoreFate[];
  /** That a provider's call does not simply succeed. */
  readonly call: number;
  readonly callFates: readonly CallFate[];
  /** That a transaction stays open between its work and its commit. */
  readonly split: number;
  /** That a provider hides what it did, or has not decided yet. */
  readonly hide: number;
  /** That the programmer's own part fails after its effect. */
  readonly fail: number;
}

/** What may become of a store call beside its simple success. */
export type StoreFate = "not applied" | "reply lost" | "late" | "slow" | "silent" | "twice" | "contention";
export type CallFate =
  | "not sent"
  | "not arrived"
  | "reply lost"
  | "late"
  | "slow"
  | "silent"
  | "twice"
  | "declined";

export const NO_FAULTS: Rates = {
  ...{ store: 0, storeFates: [], call: 0, callFates: [], split: 0, hide: 0, fail: 0 },
};

export interface World {
  readonly choices: Choices;
  readonly happenings: Happening[];
  readonly processes: Process[];
  rates: Rates;
  nowMs: number;
  /** What the store's clock is ahead of true time. */
  aheadMs: number;
  /** By how much it has stepped back in all. */
  backMs: number;
  /** The furthest that the store's clock has ever been. */
  latestMs: number;
  /** Faults met, by their names. */
  readonly met: Map<string, number>;
  readonly trace: ((line: string) => void) | null;
  /** What is late stays under way. */
  withheld: boolean;
  /** Hears of everything that reaches a process: what it does next depends on nothing else. */
  heard: ((process: Process, what: string, value: unknown) => void) | null;
}

const EPOCH_MS = 1_800_000_000_000;

export function createWorld(choices: Choices, trace: World["trace"] = null): World {
  return {
    ...{ choices, happenings: [], processes: [], rates: NO_FAULTS, nowMs: 0, aheadMs: 0, backMs: 0 },
    ...{ latestMs: EPOCH_MS, met: new Map(), trace, heard: null, withheld: false },
  };
}

/** The store's now. */
export function storeNow(world: World): number {
  const now = EPOCH_MS + world.nowMs + world.aheadMs;
  if (now > world.latestMs) world.latestMs = now;
  return now;
}

export function meet(world: World, what: string): void {
  world.met.set(what, (world.met.get(what) ?? 0) + 1);
}

export function happens(
  world: World,
  what: string,
  owner: Process | null,
  run: () => void,
  atMs = 0,
): Happening {
  const happening = { what, owner, from: owner, atMs, run };
  world.happenings.push(happening);
  return happening;
}

/** A copy of something that nobody waits for any more; it may arrive long after everything else is over. */
export function late(world: World, what: string, run: () => void): void {
  underWay(world, `${what}, late`, null, run).isLate = true;
}

/** Comes about even if who sent it is gone by then. */
export function underWay(world: World, what: string, from: Process | null, run: () => void): Happening {
  const happening = { what, owner: null, from, atMs: 0, run };
  world.happenings.push(happening);
  return happening;
}

export function addProcess(world: World, name: string): Process {
  const alarms: Alarm[] = [];
  const process: Process = {
    ...{ name, number: world.processes.length, state: "live", frozenMs: 0, stoodSince: null, alarms },
    runtime: runtimeOf(name, alarms, () => world.nowMs - process.frozenMs),
  };
  world.processes.push(process);
  return process;
}

const SALT = new Uint8Array(64).fill(7);

function runtimeOf(name: string, alarms: Alarm[], monotonicMs: () => number): Runtime {
  let ids = 0;
  const after = (ms: number, ring: () => void) => {
    const alarm = { atMs: monotonicMs() + ms, ring };
    alarms.push(alarm);
    return () => {
      const at = alarms.indexOf(alarm);
      if (at >= 0) alarms.splice(at, 1);
    };
  };
  const timer = (ms: number) => {
    let cancel = () => {};
    const expired = new Promise<void>((resolve) => {
      cancel = after(ms, resolve);
    });
    return { expired, cancel };
  };
  return {
    monotonicMs,
    random: () => 1,
    randomBytes: (length) => SALT.subarray(0, length),
    newId: () => {
      ids += 1;
      return `${name}.${ids}`;
    },
    sleep: (ms) => timer(ms).expired,
    timer,
    after,
  };
}

/** Both ends of a call that somebody waits for. */
export interface Waiting<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

/** The same, and whatever comes is heard of. */
export function hearing<T>(
  world: World,
  process: Process,
  what: string,
  { resolve, reject }: Waiting<T>,
): Waiting<T> {
  const { heard } = world;
  if (heard === null) return { resolve, reject };
  return {
    resolve: (value) => {
      heard(process, what, value);
      resolve(value);
    },
    reject: (error) => {
      heard(process, what, error);
      reject(error);
    },
  };
}

/** The one whose id it is, by the name in front. */
export function processOf(id: string): string {
  return id.slice(0, id.indexOf("."));
}

/** Everything that may happen now, the oldest first. */
export function ready(world: World, into: Happening[]): Happening[] {
  const { happenings, processes, nowMs, heard, withheld } = world;
  into.length = 0;
  for (const happening of happenings) {
    const { owner, atMs, blockedBy, onceGone, isLate = false } = happening;
    if (isLate && withheld) continue;
    if (atMs > nowMs || (owner !== null && owner.state !== "live") || onceGone?.state === "live") continue;
    if (blockedBy === undefined || blockedBy.state !== "open") into.push(happening);
  }
  for (const process of processes) {
    const alarm = process.state === "live" ? earliest(process) : undefined;
    if (alarm !== undefined && alarm.atMs <= nowMs - process.frozenMs)
      into.push(ringing(process, alarm, heard));
  }
  return into;
}

function earliest({ alarms }: Process): Alarm | undefined {
  let first: Alarm | undefined;
  for (const alarm of alarms) if (first === undefined || alarm.atMs < first.atMs) first = alarm;
  return first;
}

function ringing(process: Process, alarm: Alarm, heard: World["heard"]): Happening {
  const run = () => {
    process.alarms.splice(process.alarms.indexOf(alarm), 1);
    heard?.(process, "alarm", alarm.atMs);
    alarm.ring();
  };
  return { what: "alarm", owner: process, from: process, atMs: 0, run };
}

/** Takes it out of what is to happen; an alarm is in no list. */
export function taken(world: World, happening: Happening): void {
  const at = world.happenings.indexOf(happening);
  if (at >= 0) world.happenings.splice(at, 1);
}

/** When something will be ready that is not yet; `null` where time alone brings nothing. */
export function nextMs({ happenings, processes, nowMs }: World): number | null {
  let next = Number.POSITIVE_INFINITY;
  for (const { owner, atMs } of happenings) {
    if (atMs > nowMs && owner?.state !== "dead" && owner?.state !== "paused") next = Math.min(next, atMs);
  }
  for (const process of processes) {
    const alarm = process.state === "live" ? earliest(process) : undefined;
    if (alarm !== undefined) next = Math.min(next, alarm.atMs + process.frozenMs);
  }
  return next === Number.POSITIVE_INFINITY ? null : Math.max(next, nowMs);
}

/** Gone at once: what it had sent may still arrive, and what it was waiting for is heard by nobody. */
export function crash(world: World, process: Process, arrives: (happening: Happening) => boolean): void {
  process.state = "dead";
  process.alarms.length = 0;
  const left = world.happenings.filter(
    (each) => each.owner !== process && (each.from !== process || arrives(each)),
  );
  world.happenings.splice(0, world.happenings.length, ...left);
}
