import type {
  Command,
  FencedCommand,
  TransactionCommand,
  TransactionFlow,
  Unit,
  UnitCommand,
  UnitRunning,
} from "../../src/engine/command.ts";
import { OncekeyError, StoreUnavailable } from "../../src/errors.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import type { Replaced, Standing, Store, UnitEnd } from "../../src/stores/store.ts";
import type { SeededRandom } from "../support/seed.ts";

/** The rows of the user's own that a transaction adds, all of them there or none. */
export interface Rows {
  readonly added: string[];
}

export type Asked = Command | UnitRunning<Rows>;

/** A process that asks for one thing after the other. */
export type Actor = Generator<Asked, void, void>;

/** What may become of a command; a late one is applied at some later moment, when nobody listens any more. */
export type Fate = "done" | "not applied" | "reply lost" | "late" | "crash before" | "crash after";

export interface Schedule {
  readonly random: SeededRandom;
  /** How often each fate is drawn; a schedule of its own may leave some out. */
  readonly fates: readonly Fate[];
  /** The longest leap of the clock between two commands. */
  readonly leapMs: number;
}

export interface World {
  readonly store: () => Store;
  readonly rows: () => readonly string[];
  readonly nowMs: () => number;
  readonly pass: (ms: number) => void;
  /** Interleaves the actors command by command until all have ended or crashed; counts the fates that they met. */
  readonly play: (actors: readonly Actor[], schedule: Schedule) => Promise<ReadonlyMap<Fate, number>>;
  /** Applies everything that is still late. */
  readonly settle: () => Promise<void>;
}

interface Applied {
  readonly atMs: number;
  readonly run: (store: Store) => Promise<unknown>;
}

/** A store, its rows and a clock that only the scheduler moves. A transaction works on a copy, which takes its place. */
export function createWorld(): World {
  let nowMs = 1_000_000;
  let log: readonly Applied[] = [];
  let rows: readonly string[] = [];
  let store = memoryStore({ now: () => nowMs });
  const late: Asked[] = [];
  let token = 1_000_000;

  /** The store as it stands, made again from its history. */
  const copied = async () => {
    let [atMs, replaying] = [0, true];
    const copy = memoryStore({ now: () => (replaying ? atMs : nowMs) });
    for (const applied of log) {
      atMs = applied.atMs;
      await applied.run(copy);
    }
    replaying = false;
    return copy;
  };
  const write = async <T>(run: (store: Store) => Promise<T>) => {
    log = [...log, { atMs: nowMs, run }];
    return await run(store);
  };
  const transact = async ({ unit }: TransactionCommand<Rows>) => {
    const copy = await copied();
    const tx: Rows = { added: [] };
    const writes: Applied[] = [];
    const { kind } = await unitOn(copy, unit(tx), (run) => writes.push({ atMs: nowMs, run }));
    if (kind === "rollback") return;
    [log, store, rows] = [[...log, ...writes], copy, [...rows, ...tx.added]];
  };
  const fence = async ({ ground, unit, done }: FencedCommand<Rows>) => {
    const { identity } = ground.kind === "held" ? ground.seen : ground;
    const { record, now } = await store.read(identity);
    const holds = record?.owner === ground.seen?.owner && record?.revision === ground.seen?.revision;
    if (!holds) return done({ kind: "refused", record, now });
    const tx: Rows = { added: [] };
    const end = await ended(unit(tx, ground.kind === "held" ? null : token++), () => {
      throw new Error("A fenced unit asked the store for something in between.");
    });
    if (end.kind === "rollback") return done({ kind: "rolled_back", value: undefined });
    const { seen } = ground;
    const written = await write<Standing | Replaced>((on) =>
      seen === null ? on.insert(end.write) : on.replace(seen, end.write, "wait"),
    );
    if (written.record === null) throw new Error("A version that stood was not there to be replaced.");
    rows = [...rows, ...tx.added];
    return done({ kind: "committed", record: written.record, now: written.now, value: undefined });
  };
  const apply = async (command: Asked): Promise<void> => {
    switch (command.op) {
      case "insert":
        return command.done(await write((on) => on.insert(command.write)));
      case "replace":
        return command.done(await write((on) => on.replace(command.seen, command.write, command.patience)));
      case "read":
        return command.done(await store.read(command.identity));
      case "due":
        return command.done(await store.due(command.query));
      case "transaction":
        await transact(command);
        return command.done();
      case "fenced":
        return await fence(command);
      case "clock":
        return command.done(nowMs);
      case "pause":
        nowMs += command.upToMs;
        return command.done();
      case "call":
        return await command.run();
    }
  };
  const settle = async (some = late.splice(0)) => {
    for (const command of some) await apply(command);
  };
  const play: World["play"] = async (actors, { random, fates, leapMs }) => {
    const met = new Map<Fate, number>();
    const running = new Map(actors.map((actor) => [actor, actor.next()] as const));
    while (running.size > 0) {
      const [actor, asked] = random.pick([...running]);
      if (asked.done === true) {
        running.delete(actor);
        continue;
      }
      nowMs += random.below(leapMs);
      if (late.length > 0 && random.below(4) === 0) await settle(late.splice(random.below(late.length), 1));
      const local = asked.value.op === "clock" || asked.value.op === "pause" || asked.value.op === "call";
      const fate = local ? "done" : random.pick(fates);
      met.set(fate, (met.get(fate) ?? 0) + 1);
      if (fate === "late") late.push(asked.value);
      if (fate === "done" || fate === "reply lost" || fate === "crash after") await apply(asked.value);
      if (fate === "crash before" || fate === "crash after") running.delete(actor);
      else if (fate === "done") running.set(actor, actor.next());
      else running.set(actor, actor.throw(new StoreUnavailable(`It is unknown what became of it: ${fate}.`)));
    }
    return met;
  };
  return {
    ...{ store: () => store, rows: () => rows, nowMs: () => nowMs, play, settle: () => settle() },
    pass: (ms) => {
      nowMs += ms;
    },
  };
}

/** A process that is told that the store is out of reach, and lives. */
export function* surviving(
  flow: TransactionFlow<void, Rows>,
  hear: (kind: string) => void = () => {},
): Actor {
  try {
    yield* flow;
    hear("replay");
  } catch (error) {
    if (!(error instanceof OncekeyError)) throw error;
    hear(error.code);
  }
}

async function unitOn(
  store: Store,
  unit: Unit<UnitEnd<void>>,
  wrote: (run: (store: Store) => Promise<unknown>) => void,
): Promise<UnitEnd<void>> {
  const perform = async (command: Exclude<UnitCommand, { op: "call" }>): Promise<void> => {
    switch (command.op) {
      case "try_claim":
        return command.done(true);
      case "insert":
        wrote((on) => on.insert(command.write));
        return command.done(await store.insert(command.write));
      case "replace":
        wrote((on) => on.replace(command.seen, command.write, command.patience));
        return command.done(await store.replace(command.seen, command.write, command.patience));
      case "read":
        return command.done(await store.read(command.identity));
    }
  };
  return await ended(unit, perform);
}

async function ended<T>(
  unit: Unit<T>,
  perform: (command: Exclude<UnitCommand, { op: "call" }>) => Promise<void>,
): Promise<T> {
  let next = unit.next();
  for (; next.done !== true; next = unit.next()) {
    if (next.value.op === "call") await next.value.run();
    else await perform(next.value);
  }
  return next.value;
}
