import { setMaxListeners } from "node:events";
import type { ProviderKind } from "../../src/core/record.ts";
import { type Choices, picked } from "./choices.ts";
import { createDatabase, type Database } from "./database.ts";
import { createJudge, type Judge, scopeOf, type Violation } from "./judge.ts";
import {
  type Asking,
  createServer,
  isLocal,
  KEY_TTL_MS,
  type Kind,
  providerKindOf,
  SETTINGS,
  type Server,
} from "./kinds.ts";
import { drained, type Library } from "./library.ts";
import { createProvider, type Provider } from "./provider.ts";
import { simulatedStore } from "./simulated-store.ts";
import {
  addProcess,
  crash,
  createWorld,
  type Happening,
  happens,
  nextMs,
  type Process,
  type Rates,
  ready,
  storeNow,
  taken,
  type World,
} from "./world.ts";

/** One client: what it asks for, when it comes, and how often it asks again. */
export interface Client {
  readonly name: string;
  readonly asking: Asking;
  readonly arrivesMs: number;
  readonly tries: number;
  /** The server that it always asks; any where nothing is said. */
  readonly at?: number;
}

/** What may be done to the processes, the clocks and the workers between two steps. */
export type Disturbance =
  | "time"
  | "a lease"
  | "a retention"
  | "crash"
  | "pause"
  | "suspend"
  | "resume"
  | "clock ahead"
  | "clock back"
  | "sweep"
  | "reconcile"
  | "purge"
  | "close";

/** One schedule before its first step. */
export interface Setup {
  readonly kind: Kind;
  readonly servers: number;
  readonly workers: number;
  readonly clients: readonly Client[];
  readonly rates: Rates;
  /** Whether what is late comes when all faults have stopped, and no sooner. */
  readonly withheld: boolean;
  /** How often something is done between two steps, and what. */
  readonly disturbed: number;
  readonly disturbances: readonly Disturbance[];
  /** `null` picks any; else processes have priorities, which change so many times. */
  readonly changes: number | null;
  readonly steps: number;
}

export interface Trial {
  readonly library: Library;
  readonly choices: Choices;
  readonly trace?: World["trace"];
  /** What a store does that breaks its promises. */
  readonly flaw?: (right: Database) => Database;
  readonly storeOnTrial?: boolean;
}

export interface Outcome {
  readonly violation: Violation | null;
  readonly steps: number;
  readonly met: ReadonlyMap<string, number>;
  readonly ends: readonly string[];
}

/** A process with its engine; `role` says whether clients ask it or it does the workers' ticks. */
export interface Host {
  readonly process: Process;
  readonly server: () => Server;
  readonly busy: Set<string>;
}

interface Waiting {
  readonly client: Client;
  tries: number;
  at: Host | null;
  done: boolean;
}

/** Everything of one schedule. */
export interface Play {
  readonly setup: Setup;
  readonly trial: Trial;
  readonly world: World;
  readonly database: Database;
  readonly provider: Provider;
  readonly judge: Judge;
  readonly servers: Host[];
  readonly workers: Host[];
  readonly waiting: Waiting[];
  /** Of its own, because a look that nobody hears the end of listens to it for ever. */
  readonly signal: AbortSignal;
}

export function createPlay(setup: Setup, trial: Trial): Play {
  const { library, choices, trace = null, storeOnTrial = false } = trial;
  const world = createWorld(choices, trace);
  world.rates = setup.rates;
  world.withheld = setup.withheld;
  const latestMs = () => world.latestMs;
  const judge = createJudge({
    ...{ graceMs: SETTINGS.sweepGrace, latestMs, storeOnTrial, local: isLocal(setup.kind) },
    ...{ isWorker: (name: string) => name.startsWith("w"), repeats: isLocal(setup.kind) },
  });
  const now = () => storeNow(world);
  const database = createDatabase({
    ...{ now, onCommit: judge.onCommit, onPurge: judge.onPurge },
    onChange: (change, by) => {
      if (trace !== null) trace(`    ${change.from?.state ?? "absent"} -> ${change.to.state} by ${by}`);
      judge.onChange(change, by);
    },
  });
  const kind: ProviderKind = providerKindOf(setup.kind);
  const provider = createProvider({
    world,
    library,
    kind,
    keyTtlMs: KEY_TTL_MS,
    onExecuted: judge.onExecuted,
  });
  const waiting = setup.clients.map((client) => ({ client, tries: client.tries, at: null, done: false }));
  const { signal } = new AbortController();
  setMaxListeners(0, signal);
  const rest = { servers: [], workers: [], waiting, signal };
  const play: Play = { setup, trial, world, database, provider, judge, ...rest };
  for (let number = 0; number < setup.servers; number += 1) play.servers.push(host(play, `s${number}`));
  for (let number = 0; number < setup.workers; number += 1) play.workers.push(host(play, `w${number}`));
  for (const one of waiting) asksLater(play, one, one.client.arrivesMs);
  return play;
}

/** A new process on the one store; its engine is made when it is first asked for. */
function host(play: Play, name: string): Host {
  const process = addProcess(play.world, name);
  let made: Server | null = null;
  return {
    process,
    busy: new Set(),
    server: () => {
      made ??= serverOf(play, process);
      return made;
    },
  };
}

function serverOf(play: Play, process: Process): Server {
  const { world, database, provider, judge, setup, trial } = play;
  const { library, flaw } = trial;
  const store = simulatedStore({ world, database: flaw?.(database) ?? database, process, library });
  const engine = library.createEngine({ ...SETTINGS, store, runtime: process.runtime, production: false });
  return createServer({ kind: setup.kind, world, library, provider, judge, process, engine });
}

function asksLater(play: Play, one: Waiting, inMs: number): void {
  if (one.tries <= 0) {
    one.done = true;
    return;
  }
  happens(play.world, `${one.client.name} asks`, null, () => asks(play, one), play.world.nowMs + inMs);
}

function asks(play: Play, one: Waiting): void {
  const { servers, judge, world } = play;
  const at = servers[one.client.at ?? -1] ?? picked(world.choices, servers);
  if (at.process.state !== "live") {
    asksLater(play, one, RETRY_MS);
    return;
  }
  one.tries -= 1;
  one.at = at;
  const { asking, name } = one.client;
  const scope = scopeOf(asking);
  const since = judge.epochOf(scope);
  world.trace?.(`${name} asks ${at.process.name} for ${scope} with ${asking.input}`);
  world.heard?.(at.process, name, asking.input);
  at.server()
    .ask(asking)
    .then(
      (reply) => {
        one.at = null;
        world.trace?.(`${name} is told ${reply.kind === "final" ? reply.value : reply.why}`);
        if (reply.kind === "not now") {
          if (world.met.size === 0 && !CALM.has(reply.why))
            judge.report("L5", `${reply.why} where nothing had gone wrong`);
          return asksLater(play, one, RETRY_MS);
        }
        judge.told({ scope, input: asking.input, value: reply.value, since });
        one.done = true;
      },
      (error: unknown) => judge.report("L5", `a door threw ${String(error)}`),
    );
}

const RETRY_MS = 50;

/** What a copy may be told although all goes well. */
const CALM: ReadonlySet<string> = new Set(["in_progress", "key_reused", "mismatch"]);

/** The process is gone; its clients ask again, and a new one takes its place. */
export function crashes(play: Play, hosts: Host[], at: number): void {
  const { world, waiting } = play;
  const gone = hosts[at];
  if (gone === undefined) return;
  world.trace?.(`${gone.process.name} crashes`);
  crash(world, gone.process, () => world.choices.flag(0.5));
  hosts[at] = host(play, `${gone.process.name}'`);
  for (const one of waiting) {
    if (one.at !== gone) continue;
    one.at = null;
    asksLater(play, one, RETRY_MS);
  }
}

/** One tick of a worker, unless one of its kind runs in that process already. */
export function ticks(play: Play, at: Host, what: "sweep" | "reconcile" | "purge"): void {
  const { library } = play.trial;
  const { busy, server, process } = at;
  if (busy.has(what) || process.state !== "live") return;
  busy.add(what);
  play.world.trace?.(`${process.name} begins to ${what}`);
  play.world.heard?.(process, what, null);
  const over = () => void busy.delete(what);
  const failed = (error: unknown) => {
    over();
    if (!(error instanceof library.OncekeyError)) play.judge.report("L5", `a tick threw ${String(error)}`);
  };
  library[what](server().engine, { signal: play.signal }).then(over, failed);
}

/** Carries out one happening and everything that follows from it without time and without a reply. */
export function carryOut({ world, judge }: Play, happening: Happening): void {
  taken(world, happening);
  world.trace?.(`${world.nowMs} ${happening.from?.name ?? ""} ${happening.what}`);
  happening.run();
  drained();
  void judge;
}

/** Until nothing happens any more but by a worker or a client to come; the oldest first. */
export function settles(play: Play, most: number): number {
  const { world, judge } = play;
  const candidates: Happening[] = [];
  for (let step = 0; step < most; step += 1) {
    if (judge.violation() !== null) return step;
    const [first] = ready(world, candidates);
    if (first !== undefined) {
      carryOut(play, first);
      continue;
    }
    const next = nextMs(world);
    if (next === null) return step;
    world.nowMs = next;
  }
  judge.report("L1", "it never came to rest");
  return most;
}
