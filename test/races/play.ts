import type { KeyRecord } from "../../src/core/record.ts";
import { picked } from "./choices.ts";
import { scopeOf } from "./judge.ts";
import { SETTINGS } from "./kinds.ts";
import { asksAgain, mayStayUnknown } from "./last-word.ts";
import {
  carryOut,
  crashes,
  createPlay,
  type Disturbance,
  type Host,
  type Outcome,
  type Play,
  type Setup,
  settles,
  type Trial,
  ticks,
} from "./schedule.ts";
import { type Happening, meet, NO_FAULTS, nextMs, ready, storeNow } from "./world.ts";

/** Plays one schedule: first everything goes wrong, then nothing does any more, and all must come to an end. */
export function played(setup: Setup, trial: Trial): Outcome {
  const play = createPlay(setup, trial);
  const steps = disturbedSteps(play);
  heals(play);
  const ends = [...play.database.records.values()].map(({ state }) => state);
  return { violation: play.judge.violation(), steps, met: play.world.met, ends };
}

function disturbedSteps(play: Play): number {
  const { setup, world, judge } = play;
  const { choices } = world;
  const pick = setup.changes === null ? anyOf(play) : byPriority(play, setup.changes);
  const candidates: Happening[] = [];
  let step = 0;
  for (; step < setup.steps && judge.violation() === null; step += 1) {
    if (choices.flag(setup.disturbed)) {
      disturbs(play, picked(choices, setup.disturbances));
      continue;
    }
    const now = ready(world, candidates);
    if (now.length > 0) carryOut(play, pick(now));
    else if (!goesOn(play)) break;
  }
  return step;
}

/** Where nothing is ready, time passes; where time brings nothing, whoever stands still goes on. */
function goesOn(play: Play): boolean {
  const { world } = play;
  const next = nextMs(world);
  if (next !== null) {
    world.nowMs = next;
    return true;
  }
  const still = world.processes.filter(({ state }) => state === "paused");
  for (const process of still) process.state = "live";
  return still.length > 0;
}

function anyOf({ world: { choices } }: Play) {
  return (now: readonly Happening[]): Happening => picked(choices, now);
}

/** Each process as a priority of its own; now and then the first becomes the last. */
function byPriority({ world: { choices }, setup }: Play, changes: number) {
  const priorities = new Map<string, number>();
  const moments = new Set(Array.from({ length: changes }, () => choices.below(setup.steps)));
  const priorityOf = ({ from }: Happening) => {
    const name = from?.name ?? "";
    const known = priorities.get(name) ?? choices.below(1_000);
    priorities.set(name, known);
    return known;
  };
  let step = 0;
  return (now: readonly Happening[]): Happening => {
    step += 1;
    const first = now.reduce((one, other) => (priorityOf(other) > priorityOf(one) ? other : one));
    if (moments.has(step)) priorities.set(first.from?.name ?? "", -step);
    return first;
  };
}

function disturbs(play: Play, what: Disturbance): void {
  const { world } = play;
  const { choices } = world;
  meet(world, what);
  switch (what) {
    case "time":
      passes(play, picked(choices, [1, 20, 150, 310, 650]));
      return;
    case "a lease":
      passes(play, picked(choices, [901, 1_250]));
      return;
    case "a retention":
      passes(play, 20_003);
      return;
    case "clock ahead":
      jumps(play, picked(choices, [7, 1_003, 3_011]));
      return;
    case "clock back":
      jumps(play, -picked(choices, [7, 1_009, 3_019]));
      return;
    case "crash":
      onSome(play, (hosts, at) => crashes(play, hosts, at));
      return;
    case "pause":
    case "suspend":
      onSome(play, (hosts, at) => stops(play, hosts[at], what === "suspend"));
      return;
    case "resume":
      onSome(play, (hosts, at) => resumes(play, hosts[at]));
      return;
    case "close":
      closes(play);
      return;
    case "sweep":
    case "reconcile":
    case "purge":
      ticks(play, picked(choices, play.workers), what);
      return;
  }
}

function passes({ world }: Play, ms: number): void {
  world.trace?.(`${ms} ms pass`);
  world.nowMs += ms;
}

function jumps({ world }: Play, ms: number): void {
  world.trace?.(`the store's clock jumps by ${ms} ms`);
  storeNow(world);
  world.aheadMs += ms;
  world.backMs += Math.max(0, -ms);
  storeNow(world);
}

function onSome(play: Play, act: (hosts: Host[], at: number) => void): void {
  const { choices } = play.world;
  const hosts = choices.flag(0.3) ? play.workers : play.servers;
  act(hosts, choices.below(hosts.length));
}

/** A process stands still; a machine that is suspended loses its clock's time, too. */
export function stops({ world }: Play, host: Host | undefined, suspended: boolean): void {
  if (host === undefined || host.process.state !== "live") return;
  world.trace?.(`${host.process.name} stands still`);
  host.process.state = "paused";
  if (suspended) host.process.stoodSince = world.nowMs;
}

export function resumes({ world }: Play, host: Host | undefined): void {
  if (host === undefined || host.process.state !== "paused") return;
  const { process } = host;
  world.trace?.(`${process.name} goes on`);
  process.state = "live";
  if (process.stoodSince !== null) process.frozenMs += world.nowMs - process.stoodSince;
  process.stoodSince = null;
}

/** A server is told to stop: it drains, and what is left of it is judged by itself. */
function closes(play: Play): void {
  const { world, servers, judge } = play;
  const host = servers[world.choices.below(servers.length)];
  if (host === undefined || host.process.state !== "live" || host.busy.has("close")) return;
  world.trace?.(`${host.process.name} closes`);
  host.busy.add("close");
  host
    .server()
    .engine.close({ drain: 100 })
    .then(
      () => {
        const at = servers.indexOf(host);
        if (at >= 0) crashes(play, servers, at);
      },
      (error: unknown) => judge.report("L5", `a close threw ${String(error)}`),
    );
}

const ROUNDS = 30;
const MOST_STEPS = 3_000;

/** Faults stop. Workers and a client that keeps asking must bring everything to its end. */
export function heals(play: Play): void {
  const { world, judge, database, setup } = play;
  if (judge.violation() !== null) return;
  world.withheld = world.choices.flag(0.5);
  world.trace?.(world.withheld ? "all faults stop; what is late comes last" : "all faults stop");
  world.rates = NO_FAULTS;
  for (const host of [...play.servers, ...play.workers]) resumes(play, host);
  play.servers.forEach(({ busy }, at) => {
    if (busy.has("close")) crashes(play, play.servers, at);
  });
  settles(play, MOST_STEPS);
  for (let round = 0; round < ROUNDS && judge.violation() === null; round += 1) {
    const due = [...database.records.values()].map(dueOf).filter((at) => at !== null);
    if (due.length === 0) break;
    world.nowMs += Math.max(0, Math.min(...due) + 1 - storeNow(world));
    works(play);
  }
  if (judge.violation() !== null) return;
  for (const record of database.records.values()) {
    if (dueOf(record) !== null) judge.report("L1", `a record is still ${record.state}`);
    if (record.state === "unknown") judgeUnknown(play, record);
  }
  for (const one of distinct(setup)) if (judge.violation() === null) asksAgain(play, one, () => works(play));
  if (!world.withheld) return;
  world.withheld = false;
  settles(play, MOST_STEPS);
}

function works(play: Play): void {
  const [worker] = play.workers;
  if (worker === undefined) return;
  ticks(play, worker, "sweep");
  settles(play, MOST_STEPS);
  ticks(play, worker, "reconcile");
  settles(play, MOST_STEPS);
}

/** When a worker will see to it; `null` for what is at its end, or at a person's. */
function dueOf(record: KeyRecord): number | null {
  if (record.state === "in_progress") return record.leaseUntil + SETTINGS.sweepGrace;
  return record.state === "unknown" && record.disposition === "reconcile" ? record.nextLookAt : null;
}

/** Only effects about which nobody can be asked may be left to a person. */
function judgeUnknown(
  { judge, setup }: Play,
  { disposition }: Extract<KeyRecord, { state: "unknown" }>,
): void {
  if (!mayStayUnknown(setup.kind)) judge.report("L1", `an outcome is left ${disposition}`);
}

/** One client for every principal that has asked, with the first input that it asked with. */
function distinct({ clients }: Setup): Setup["clients"] {
  const byScope = new Map(clients.toReversed().map((client) => [scopeOf(client.asking), client]));
  return [...byScope.values()];
}
