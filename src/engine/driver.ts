import { StoreUnavailable } from "../errors.ts";
import type { Awaitable, FencedEnd, Settling, Store, TransactionalStore, Within } from "../stores/store.ts";
import {
  type Command,
  type FencedCommand,
  following,
  isPromise,
  type StoreCommand,
  type TransactionCommand,
  type UnitCommand,
  type UnitRunning,
} from "./command.ts";
import type { Runtime } from "./runtime.ts";
import type { Ours, Theirs } from "./watch.ts";

/** Carries flows out on a real store, with promises. */
export interface Driver<Tx> {
  /**
   * No command is waited for past `untilMs` on our own monotonic clock, however much of its own bound is left; of a fenced
   * unit that is its beginning.
   */
  drive<T>(flow: Generator<Command | UnitRunning<Tx>, T, void>, bound?: Bound): Promise<T>;
}

/** May depend on how far things have come. */
export interface Bound {
  readonly untilMs: number | (() => number);
}

export interface World<Tx> {
  readonly store: Store;
  /** `null` where the store has no transactions; a flow that needs them is refused before it starts. */
  readonly transactions: TransactionalStore<Tx, Settling> | null;
  readonly storeTimeoutMs: number;
  readonly runtime: Runtime;
  /** Told of a store call that failed after we had stopped waiting for it. */
  readonly onLateFailure: (error: unknown) => void;
  /** Tells what the engine asks of the store from what the programmer does in between. */
  readonly ours: Ours;
}

export function createDriver<Tx>(world: World<Tx>): Driver<Tx> {
  return {
    drive: async (flow, { untilMs } = { untilMs: Number.POSITIVE_INFINITY }) =>
      await step(flow, (command) => performCommand(world, command, untilMs)),
  };
}

/**
 * Runs a flow as far as its commands answer at once, and on with promises from the first that does not. That is how
 * one unit serves SQLite, whose transactions must not wait, and the others.
 */
export function step<C, T>(
  flow: Generator<C, T, void>,
  perform: (command: C) => Awaitable<void>,
): Awaitable<T> {
  let next = flow.next();
  while (next.done !== true) {
    let performed: Awaitable<void>;
    try {
      performed = perform(next.value);
    } catch (error) {
      next = flow.throw(error);
      continue;
    }
    if (isPromise(performed)) return stepOn(flow, performed, perform);
    next = flow.next();
  }
  return next.value;
}

async function stepOn<C, T>(
  flow: Generator<C, T, void>,
  first: PromiseLike<void>,
  perform: (command: C) => Awaitable<void>,
): Promise<T> {
  let performed: Awaitable<void> = first;
  for (;;) {
    const next = await resume(flow, performed);
    if (next.done === true) return next.value;
    performed = new Promise((resolve) => resolve(perform(next.value)));
  }
}

async function resume<C, T>(
  flow: Generator<C, T, void>,
  performed: Awaitable<void>,
): Promise<IteratorResult<C, T>> {
  try {
    await performed;
  } catch (error) {
    return flow.throw(error);
  }
  return flow.next();
}

function performCommand<Tx>(
  world: World<Tx>,
  command: Command | UnitRunning<Tx>,
  untilMs: number | (() => number),
): Awaitable<void> {
  const bounded = (ms: number) => {
    const until = typeof untilMs === "function" ? untilMs() : untilMs;
    return Math.max(1, Math.min(ms, until - world.runtime.monotonicMs()));
  };
  switch (command.op) {
    case "insert":
    case "replace":
    case "read":
    case "due":
      return inTime(world, bounded(world.storeTimeoutMs), () =>
        world.ours(() => performStore(world.store, command)),
      );
    case "transaction":
      return inTime(world, bounded(command.withinMs), (givenUp) =>
        world.ours((theirs) => performTransaction(world, command, { givenUp, theirs })),
      );
    case "fenced":
      return inTime(world, command.withinMs, (givenUp) => {
        const beginMs = bounded(Math.min(command.withinMs, world.storeTimeoutMs));
        return world.ours((theirs) => performFenced(world, command, { givenUp, theirs, beginMs }));
      });
    case "clock":
      return command.done(world.runtime.monotonicMs());
    case "pause": {
      const half = command.upToMs / 2;
      return world.runtime.sleep(half + half * world.runtime.random()).then(command.done);
    }
    case "call":
      return command.run();
  }
}

function performStore(store: Store, command: StoreCommand): Promise<void> {
  switch (command.op) {
    case "insert":
      return store.insert(command.write).then(command.done);
    case "replace":
      return store.replace(command.seen, command.write, command.patience).then(command.done);
    case "read":
      return store.read(command.identity).then(command.done);
    case "due":
      return store.due(command.query).then(command.done);
  }
}

interface Waiting {
  readonly givenUp: () => boolean;
  readonly theirs: Theirs;
}

/** A unit that nobody waits for any more is rolled back at its end: what it claimed nobody would run. */
async function performTransaction<Tx>(
  { transactions }: World<Tx>,
  command: TransactionCommand<Tx>,
  { givenUp, theirs }: Waiting,
): Promise<void> {
  if (transactions === null) throw withoutTransactions();
  const bounds = { idleMs: command.withinMs };
  await transactions.transaction((tx) => {
    const within = transactions.within(tx);
    const ended = step(command.unit(tx), (inner) => performUnit(within, inner, theirs));
    return following(ended, (end) => (givenUp() ? { kind: "rollback", value: end.value } : end));
  }, bounds);
  command.done();
}

async function performFenced<Tx>(
  world: World<Tx>,
  { ground, unit, withinMs, done }: FencedCommand<Tx>,
  { givenUp, theirs, beginMs }: Waiting & { readonly beginMs: number },
): Promise<void> {
  const { transactions } = world;
  if (transactions === null) throw withoutTransactions();
  const beginning = beginningOf(world, beginMs);
  const work = (tx: Tx, number: number | null): Awaitable<FencedEnd<void>> => {
    beginning.over();
    if (givenUp() || beginning.isLate()) return UNDONE;
    const inside = transactions.within(tx);
    const ended = step(unit(tx, number), (inner) => performUnit(inside, inner, theirs));
    return following(ended, (end) => (givenUp() ? UNDONE : end));
  };
  try {
    const fenced = transactions.fenced(ground, work, { idleMs: withinMs });
    fenced.catch(() => {}); // told by the race, or by nobody once the beginning was too late
    done(await Promise.race([fenced, beginning.late]));
  } finally {
    beginning.over();
  }
}

const UNDONE: FencedEnd<void> = { kind: "rollback", value: undefined };

function withoutTransactions(): Error {
  return new Error("A flow asked for a transaction of a store that has none.");
}

/** A unit that cannot begin within the store's time meets a store out of reach, however long its work may take. */
function beginningOf<Tx>({ runtime }: World<Tx>, boundMs: number) {
  let late = false;
  const bound = runtime.timer(boundMs);
  return {
    over: bound.cancel,
    isLate: () => late,
    late: bound.expired.then((): never => {
      late = true;
      throw new StoreUnavailable(
        `The store did not begin a transaction within ${Math.round(boundMs)} ms. Nothing was run.`,
      );
    }),
  };
}

function performUnit(within: Within, command: UnitCommand, theirs: Theirs): Awaitable<void> {
  switch (command.op) {
    case "try_claim":
      return following(within.tryClaim(command.identity), command.done);
    case "insert":
      return following(within.insert(command.write), command.done);
    case "replace":
      return following(within.replace(command.seen, command.write, command.patience), command.done);
    case "read":
      return following(within.read(command.identity), command.done);
    case "call":
      return theirs(command.run);
  }
}

/** Stops waiting at the bound. What the store does afterwards is settled by repeating the same write. */
async function inTime<Tx>(
  world: World<Tx>,
  boundMs: number,
  begin: (givenUp: () => boolean) => Promise<void>,
): Promise<void> {
  let given = false;
  const work = begin(() => given);
  work.catch((error: unknown) => {
    if (given) world.onLateFailure(error);
  });
  const bound = world.runtime.timer(boundMs);
  const late = bound.expired.then(() => {
    given = true;
    throw new StoreUnavailable(
      `The store did not answer within ${Math.round(boundMs)} ms; what it was asked to write may still happen.`,
    );
  });
  try {
    await Promise.race([work, late]);
  } finally {
    bound.cancel();
  }
}
