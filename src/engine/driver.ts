import { StoreUnavailable } from "../errors.ts";
import type {
  Awaitable,
  Fenced,
  FencedEnd,
  Settling,
  Store,
  TransactionalStore,
  Within,
} from "../stores/store.ts";
import {
  type Command,
  type FencedCommand,
  following,
  type StoreCommand,
  type TransactionCommand,
  type UnitCommand,
  type UnitRunning,
} from "./command.ts";
import type { Runtime } from "./runtime.ts";
import { step } from "./step.ts";
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
    drive: async (flow, { untilMs } = UNBOUND) =>
      await step(flow, (command) => performCommand(world, command, untilMs)),
  };
}

const UNBOUND: Bound = { untilMs: Number.POSITIVE_INFINITY };

function performCommand<Tx>(
  world: World<Tx>,
  command: Command | UnitRunning<Tx>,
  untilMs: Bound["untilMs"],
): Awaitable<void> {
  const { runtime, ours, storeTimeoutMs } = world;
  switch (command.op) {
    case "insert":
    case "replace":
    case "read":
    case "due": {
      const work = ours(() => performStore(world.store, command));
      return inTime(world, bounded(world, storeTimeoutMs, untilMs), work);
    }
    case "transaction":
      return performTransaction(world, command, bounded(world, command.withinMs, untilMs));
    case "fenced": {
      const beginMs = bounded(world, Math.min(command.withinMs, storeTimeoutMs), untilMs);
      return performFenced(world, command, beginMs);
    }
    case "clock":
      return command.done(runtime.monotonicMs());
    case "pause": {
      const half = command.upToMs / 2;
      return runtime.sleep(half + half * runtime.random()).then(command.done);
    }
    case "call":
      return command.run();
  }
}

/** What a command may take, where no more than the time until then is left. */
function bounded<Tx>({ runtime }: World<Tx>, ms: number, untilMs: Bound["untilMs"]): number {
  const until = typeof untilMs === "function" ? untilMs() : untilMs;
  if (until === Number.POSITIVE_INFINITY) return Math.max(1, ms);
  return Math.max(1, Math.min(ms, until - runtime.monotonicMs()));
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

/** A unit that nobody waits for any more is rolled back at its end: what it claimed nobody would run. */
function performTransaction<Tx>(
  world: World<Tx>,
  { unit, withinMs, done }: TransactionCommand<Tx>,
  boundMs: number,
): Promise<void> {
  const { transactions } = world;
  if (transactions === null) throw withoutTransactions();
  let givenUp = false;
  const giveUp = () => {
    givenUp = true;
  };
  const work = (theirs: Theirs) => (tx: Tx) => {
    const inside = transactions.within(tx);
    const ended = step(unit(tx), (inner) => performUnit(inside, inner, theirs));
    return following(ended, (end) => (givenUp ? { kind: "rollback" as const, value: end.value } : end));
  };
  const transacted = world.ours((theirs) => transactions.transaction(work(theirs), { idleMs: withinMs }));
  return inTime(world, boundMs, transacted.then(done), giveUp);
}

/** How far a fenced unit has come for whoever waits for it. */
interface Stage {
  now: "beginning" | "begun" | "too late" | "given up";
}

/**
 * A unit that cannot begin within the store's time meets a store out of reach, however long its work may take. One timer
 * serves both bounds: when it rings for the first one, nearly every unit has ended.
 */
function performFenced<Tx>(world: World<Tx>, command: FencedCommand<Tx>, beginMs: number): Promise<void> {
  const { runtime, onLateFailure } = world;
  const { withinMs, done } = command;
  const untilMs = runtime.monotonicMs() + withinMs;
  const stage: Stage = { now: "beginning" };
  return new Promise((resolve, reject) => {
    const fenced = fencedIn(world, command, stage);
    const giveUp = () => {
      stage.now = "given up";
      reject(unanswered(withinMs));
    };
    let cancel = runtime.after(beginMs, () => {
      if (stage.now === "begun") {
        cancel = runtime.after(Math.max(0, untilMs - runtime.monotonicMs()), giveUp);
        return;
      }
      stage.now = "too late";
      reject(notBegun(beginMs));
    });
    const ended = (end: Fenced<void>) => {
      cancel();
      done(end);
      resolve();
    };
    const failed = (error: unknown) => {
      cancel();
      reject(error);
      if (stage.now === "given up") onLateFailure(error); // one that began too late did nothing
    };
    fenced.then(ended, failed);
  });
}

function fencedIn<Tx>(
  { transactions, ours }: World<Tx>,
  { ground, unit, withinMs }: FencedCommand<Tx>,
  stage: Stage,
): Promise<Fenced<void>> {
  if (transactions === null) throw withoutTransactions();
  const isLeft = () => stage.now === "too late" || stage.now === "given up";
  const work = (theirs: Theirs) => (tx: Tx, number: number | null) => {
    if (isLeft()) return UNDONE;
    stage.now = "begun";
    const inside = transactions.within(tx);
    const ended = step(unit(tx, number), (inner) => performUnit(inside, inner, theirs));
    return following(ended, (end) => (isLeft() ? UNDONE : end));
  };
  return ours((theirs) => transactions.fenced(ground, work(theirs), { idleMs: withinMs }));
}

const UNDONE: FencedEnd<void> = { kind: "rollback", value: undefined };

function withoutTransactions(): Error {
  return new Error("A flow asked for a transaction of a store that has none.");
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
function inTime<Tx>(
  { runtime, onLateFailure }: World<Tx>,
  boundMs: number,
  work: Promise<void>,
  onGivenUp: () => void = () => {},
): Promise<void> {
  return new Promise((resolve, reject) => {
    let givenUp = false;
    const cancel = runtime.after(boundMs, () => {
      givenUp = true;
      onGivenUp();
      reject(unanswered(boundMs));
    });
    work.then(
      () => {
        cancel();
        resolve();
      },
      (error: unknown) => {
        cancel();
        reject(error);
        if (givenUp) onLateFailure(error);
      },
    );
  });
}

function unanswered(boundMs: number): StoreUnavailable {
  return new StoreUnavailable(
    `The store did not answer within ${Math.round(boundMs)} ms; what it was asked to write may still happen.`,
  );
}

function notBegun(boundMs: number): StoreUnavailable {
  return new StoreUnavailable(
    `The store did not begin a transaction within ${Math.round(boundMs)} ms. Nothing was run.`,
  );
}
