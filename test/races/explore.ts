import type { Choices } from "./choices.ts";
import type { Violation } from "./judge.ts";
import { type Kind, SETTINGS } from "./kinds.ts";
import type { Library } from "./library.ts";
import { heals, resumes, stops } from "./play.ts";
import {
  carryOut,
  crashes,
  createPlay,
  type Host,
  type Play,
  type Setup,
  type Trial,
  ticks,
} from "./schedule.ts";
import {
  type CallFate,
  type Happening,
  meet,
  nextMs,
  type Process,
  ready,
  type StoreFate,
  storeNow,
} from "./world.ts";

/** A small world that is searched to its end. */
export interface Configuration {
  readonly name: string;
  readonly kind: Kind;
  /** Each on a server of its own, all at once, with these inputs. */
  readonly clients: readonly string[];
  readonly tries: number;
  /** Ticks that workers may do, each at any moment. */
  readonly ticks: readonly ("sweep" | "reconcile" | "purge")[];
  /** At most so many faults in one run, of these. */
  readonly faults: number;
  readonly storeFates: readonly StoreFate[];
  readonly callFates: readonly CallFate[];
  readonly disturbances: readonly ("crash" | "pause")[];
  /** At most so many times in one run a clock moves by one of these: time itself, or the store's alone. */
  readonly jumps: number;
  readonly passesMs: readonly number[];
  readonly jumpsMs: readonly number[];
  /** Whether transactions may stay open between their work and their commit, which counts as a fault. */
  readonly splits: boolean;
}

export interface Explored {
  readonly runs: number;
  readonly states: number;
  /** Whether everything was seen that the bounds allow. */
  readonly exhausted: boolean;
  readonly found: { readonly violation: Violation; readonly choices: readonly number[] } | null;
}

/** What is left to be spent in one run. */
interface Purse {
  faults: number;
  jumps: number;
  readonly ticks: string[];
}

/** Makes the choices of a prefix again, then always the first one, and tells what else could have been chosen. */
interface Walk extends Choices {
  readonly made: number[];
  readonly limits: number[];
  readonly purse: Purse;
  readonly isNew: () => boolean;
}

/**
 * Depth first over everything that the scheduler may choose, with the real engine: each run makes a prefix of choices again
 * and goes on, and yields before it does. A state that was reached before on another way (all that each process has heard, all that stands or is under
 * way) is not gone on from.
 */
export function* explored(
  configuration: Configuration,
  library: Library,
  most: number,
): Generator<void, Explored, void> {
  const visited = new Set<string>();
  const stack: number[][] = [[]];
  let runs = 0;
  const ended = (exhausted: boolean, found: Explored["found"] = null) => {
    return { runs, states: visited.size, exhausted, found };
  };
  for (let prefix = stack.pop(); prefix !== undefined; prefix = stack.pop()) {
    yield;
    if (runs >= most) return ended(false);
    runs += 1;
    const { walk, violation } = walked(configuration, library, prefix, visited);
    if (violation !== null) return ended(false, { violation, choices: walk.made });
    for (let at = prefix.length; at < walk.made.length; at += 1) {
      for (let other = (walk.limits[at] ?? 1) - 1; other > 0; other -= 1)
        stack.push([...walk.made.slice(0, at), other]);
    }
  }
  return ended(true);
}

/** One run; `trace` tells it. */
export function walked(
  configuration: Configuration,
  library: Library,
  prefix: readonly number[],
  visited: Set<string> | null,
  trace: Trial["trace"] = null,
): { readonly walk: Walk; readonly violation: Violation | null } {
  const walk = walking(prefix, {
    faults: configuration.faults,
    jumps: configuration.jumps,
    ticks: [...configuration.ticks],
  });
  const play = createPlay(setupOf(configuration), { library, choices: walk, trace });
  const heard = hearingAll(play);
  const candidates: Happening[] = [];
  while (play.judge.violation() === null) {
    if (visited !== null && walk.isNew()) {
      const state = stateOf(play, walk.purse, heard);
      if (visited.has(state)) return { walk, violation: null };
      visited.add(state);
    }
    const options = optionsOf(configuration, play, walk.purse, ready(play.world, candidates));
    const option = options[walk.below(options.length)];
    if (option === undefined) break;
    option();
  }
  walk.purse.faults = 0;
  heals(play);
  return { walk, violation: play.judge.violation() };
}

function walking(prefix: readonly number[], purse: Purse): Walk {
  const made: number[] = [];
  const limits: number[] = [];
  const below = (limit: number) => {
    if (limit <= 1) return 0;
    const choice = prefix[made.length] ?? 0;
    made.push(choice);
    limits.push(limit);
    return choice;
  };
  const flag = (chance: number) => {
    if (chance <= 0 || purse.faults <= 0) return false;
    const happens = below(2) === 1;
    if (happens) purse.faults -= 1;
    return happens;
  };
  return { below, flag, made, limits, purse, isNew: () => made.length >= prefix.length };
}

function setupOf({ kind, clients, tries, storeFates, callFates, splits }: Configuration): Setup {
  const rates = { store: storeFates.length, call: callFates.length, split: splits ? 1 : 0, hide: 0, fail: 0 };
  return {
    ...{
      kind,
      servers: clients.length,
      workers: 1,
      withheld: false,
      disturbed: 0,
      disturbances: [],
      changes: null,
      steps: 0,
    },
    rates: { ...rates, storeFates, callFates },
    clients: clients.map((input, number) => ({
      ...{ name: `client ${number}`, arrivesMs: 0, tries, at: number },
      asking: { principal: "alice", key: "k", input },
    })),
  };
}

type Option = () => void;

function optionsOf(
  { disturbances, passesMs, jumpsMs }: Configuration,
  play: Play,
  purse: Purse,
  now: readonly Happening[],
): readonly (Option | undefined)[] {
  const { world, servers, workers } = play;
  const options: (Option | undefined)[] = now.map((happening) => () => carryOut(play, happening));
  if (now.length === 0)
    options.push(nextMs(world) === null ? undefined : () => (world.nowMs = nextMs(world) ?? 0));
  const [worker] = workers;
  for (const what of new Set(purse.ticks)) {
    if (worker !== undefined && !worker.busy.has(what) && hasWork(play, what))
      options.push(() => begins(play, worker, what, purse));
  }
  if (purse.faults > 0) {
    for (const [at, host] of [...servers, ...workers].entries()) {
      if (!play.waiting.some((one) => one.at === host) && host.busy.size === 0) continue;
      for (const what of disturbances) options.push(...disturbing(play, purse, { host, at, what }));
    }
  }
  for (const host of [...servers, ...workers])
    if (host.process.state === "paused") options.push(() => resumes(play, host));
  if (purse.jumps > 0) {
    for (const ms of passesMs) options.push(() => spends(play, purse, () => (world.nowMs += ms)));
    for (const ms of jumpsMs) options.push(() => spends(play, purse, () => jumped(play, ms)));
  }
  return options;
}

/** A tick that begins before there is anything due is as good as one that begins later. */
function hasWork({ database, world }: Play, what: string): boolean {
  const now = storeNow(world);
  return [...database.records.values()].some((record) => {
    if (record.state === "in_progress")
      return what === "sweep" && record.leaseUntil + SETTINGS.sweepGrace <= now;
    if (record.state === "unknown") return what === "reconcile" && (record.nextLookAt ?? now + 1) <= now;
    return what === "purge" && record.retainUntil <= now;
  });
}

function spends({ world }: Play, purse: Purse, act: () => void): void {
  meet(world, "a jump");
  purse.jumps -= 1;
  act();
}

function jumped({ world }: Play, ms: number): void {
  storeNow(world);
  world.aheadMs += ms;
  world.backMs += Math.max(0, -ms);
  storeNow(world);
}

function begins(play: Play, worker: Host, what: string, purse: Purse): void {
  purse.ticks.splice(purse.ticks.indexOf(what), 1);
  if (what === "sweep" || what === "reconcile" || what === "purge") ticks(play, worker, what);
}

interface Disturbing {
  readonly host: Host;
  readonly at: number;
  readonly what: "crash" | "pause";
}

function disturbing(play: Play, purse: Purse, { host, at, what }: Disturbing): readonly Option[] {
  if (host.process.state !== "live") return [];
  const { servers, workers } = play;
  const spent = (act: () => void) => () => {
    meet(play.world, what);
    purse.faults -= 1;
    act();
  };
  if (what === "pause") return [spent(() => stops(play, host, false))];
  const crash =
    at < servers.length
      ? () => crashes(play, servers, at)
      : () => crashes(play, workers, at - servers.length);
  return [spent(crash)];
}

/** Everything that a process has heard, in its order, as a number. */
function hearingAll({ world }: Play): ReadonlyMap<Process, string> {
  const heard = new Map<Process, string>();
  world.heard = (process, what, value) => {
    heard.set(process, digested(`${heard.get(process) ?? ""}|${world.nowMs} ${what} ${textOf(value)}`));
  };
  return heard;
}

function textOf(value: unknown): string {
  if (value instanceof Error) return value.message;
  return JSON.stringify(value, (_, part: unknown) => (part instanceof Map ? [...part] : part)) ?? "";
}

/** 64 bits in two halves: states are counted in hundreds of thousands. */
function digested(text: string): string {
  let [one, two] = [0x811c_9dc5, 0x1234_5678];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    one = Math.imul(one ^ code, 0x0100_0193);
    two = Math.imul(two ^ code, 0x85eb_ca6b) ^ (two >>> 13);
  }
  return `${(one >>> 0).toString(36)}.${(two >>> 0).toString(36)}`;
}

function stateOf(play: Play, purse: Purse, heard: ReadonlyMap<Process, string>): string {
  const { world, database, provider, judge, waiting } = play;
  const processes = world.processes.map((process) => `${process.state} ${heard.get(process) ?? ""}`);
  const coming = world.happenings.map(({ what, owner, from, atMs, blockedBy }) =>
    [what, owner?.name, from?.name, atMs, blockedBy?.state].join(" "),
  );
  const clients = waiting.map(({ tries, done, at }) => `${tries} ${done} ${at?.process.name}`);
  const clocks = `${world.nowMs} ${world.aheadMs} ${world.latestMs}`;
  const rest = [
    clocks,
    purse.faults,
    purse.jumps,
    purse.ticks,
    database.digest(),
    provider.digest(),
    judge.digest(),
  ];
  return digested([...rest, ...processes, ...coming.sort(), ...clients].join("\n"));
}
