import type { Identity, RecordWrite, Seen } from "../core/record.ts";
import type {
  Awaitable,
  DueQuery,
  Fenced,
  FencedEnd,
  Ground,
  Listed,
  Looked,
  Patience,
  Replaced,
  Standing,
  UnitEnd,
} from "../stores/store.ts";

/**
 * What a flow asks of the world. Flows are generators that yield these and are resumed when `done` was called; they
 * touch neither store nor clock themselves, so that promises drive them in production and a scheduler in tests.
 */
export type Command = StoreCommand | ClockCommand | PauseCommand | CallCommand;

export type StoreCommand = InsertCommand | ReplaceCommand | ReadCommand | DueCommand;

/** What may be asked inside a transaction. */
export type UnitCommand = TryClaimCommand | InsertCommand | ReplaceCommand | ReadCommand | CallCommand;

export type Flow<T> = Generator<Command, T, void>;

/** A flow that may open transactions on a store whose handle is `Tx`. */
export type TransactionFlow<T, Tx> = Generator<Command | UnitRunning<Tx>, T, void>;

/** What runs a unit in a transaction. */
export type UnitRunning<Tx> = TransactionCommand<Tx> | FencedCommand<Tx>;

/** What runs inside one transaction. */
export type Unit<T> = Generator<UnitCommand, T, void>;

export interface InsertCommand {
  readonly op: "insert";
  readonly write: RecordWrite;
  readonly done: (standing: Standing) => void;
}

export interface ReplaceCommand {
  readonly op: "replace";
  readonly seen: Seen;
  readonly write: RecordWrite;
  readonly patience: Patience;
  readonly done: (replaced: Replaced) => void;
}

export interface ReadCommand {
  readonly op: "read";
  readonly identity: Identity;
  readonly done: (looked: Looked) => void;
}

export interface DueCommand {
  readonly op: "due";
  readonly query: DueQuery;
  readonly done: (listed: Listed) => void;
}

export interface TryClaimCommand {
  readonly op: "try_claim";
  readonly identity: Identity;
  readonly done: (claimable: boolean) => void;
}

/** Our own monotonic clock: for budgets and for giving up a lease, never compared with the store's. */
export interface ClockCommand {
  readonly op: "clock";
  readonly done: (monotonicMs: number) => void;
}

export interface PauseCommand {
  readonly op: "pause";
  /** The driver draws the pause between half of this and all of it, so that rivals drift apart. */
  readonly upToMs: number;
  readonly done: () => void;
}

/** A function of the programmer's or a provider's: everything that is not the store. */
export interface CallCommand {
  readonly op: "call";
  readonly name: string;
  readonly run: () => Awaitable<void>;
  readonly done: () => void;
}

export interface TransactionCommand<Tx> {
  readonly op: "transaction";
  readonly unit: (tx: Tx) => Unit<UnitEnd<void>>;
  /** Past this the transaction counts as lost and its commit as open. */
  readonly withinMs: number;
  readonly done: () => void;
}

/** A unit between the ground that it stands on and its own last write. */
export interface FencedCommand<Tx> {
  readonly op: "fenced";
  readonly ground: Ground;
  readonly unit: (tx: Tx, number: number | null) => Unit<FencedEnd<void>>;
  /** Past this the transaction counts as lost and its commit as open. */
  readonly withinMs: number;
  readonly done: (fenced: Fenced<void>) => void;
}

/*
 * A generator function inside another function is made anew with each call, and then has a shape of its own, which keeps
 * all that it sees until the next full collection of garbage. So every flow and unit is a function of a module.
 */

export function* insert(write: RecordWrite): Generator<InsertCommand, Standing, void> {
  const reply = slot<Standing>();
  yield { op: "insert", write, done: reply.put };
  return reply.take();
}

export function* replace(
  seen: Seen,
  write: RecordWrite,
  patience: Patience,
): Generator<ReplaceCommand, Replaced, void> {
  const reply = slot<Replaced>();
  yield { op: "replace", seen, write, patience, done: reply.put };
  return reply.take();
}

export function* read(identity: Identity): Generator<ReadCommand, Looked, void> {
  const reply = slot<Looked>();
  yield { op: "read", identity, done: reply.put };
  return reply.take();
}

export function* due(query: DueQuery): Generator<DueCommand, Listed, void> {
  const reply = slot<Listed>();
  yield { op: "due", query, done: reply.put };
  return reply.take();
}

export function* tryClaim(identity: Identity): Generator<TryClaimCommand, boolean, void> {
  const reply = slot<boolean>();
  yield { op: "try_claim", identity, done: reply.put };
  return reply.take();
}

export function* clock(): Generator<ClockCommand, number, void> {
  const reply = slot<number>();
  yield { op: "clock", done: reply.put };
  return reply.take();
}

export function* pause(upToMs: number): Generator<PauseCommand, void, void> {
  yield { op: "pause", upToMs, done: nothing };
}

export function* call<T>(name: string, run: () => Awaitable<T>): Generator<CallCommand, T, void> {
  const reply = slot<T>();
  yield { op: "call", name, run: () => following(run(), reply.put), done: nothing };
  return reply.take();
}

export function* transaction<T, Tx>(
  withinMs: number,
  unit: (tx: Tx) => Unit<UnitEnd<T>>,
): Generator<TransactionCommand<Tx>, T, void> {
  const reply = slot<T>();
  yield { op: "transaction", unit: (tx) => keptEnd(unit(tx), reply), withinMs, done: nothing };
  return reply.take();
}

function* keptEnd<T>(unit: Unit<UnitEnd<T>>, reply: Slot<T>): Unit<UnitEnd<void>> {
  const { kind, value } = yield* unit;
  reply.put(value);
  return { kind, value: undefined };
}

function* fenced<T, Tx>(
  withinMs: number,
  ground: Ground,
  unit: (tx: Tx, number: number | null) => Unit<FencedEnd<T>>,
): Generator<FencedCommand<Tx>, Fenced<T>, void> {
  const ended = slot<Fenced<void>>();
  const worked = slot<T>();
  const kept = (tx: Tx, number: number | null) => keptWork(unit(tx, number), worked);
  yield { op: "fenced", ground, unit: kept, withinMs, done: ended.put };
  const end = ended.take();
  switch (end.kind) {
    case "committed":
      return { kind: end.kind, record: end.record, now: end.now, value: worked.take() };
    case "rolled_back":
      return { kind: end.kind, value: worked.take() };
    case "refused":
    case "busy":
      return end;
  }
}

function* keptWork<T>(unit: Unit<FencedEnd<T>>, worked: Slot<T>): Unit<FencedEnd<void>> {
  const end = yield* unit;
  worked.put(end.value);
  if (end.kind === "rollback") return { kind: end.kind, value: undefined };
  return { kind: end.kind, write: end.write, value: undefined };
}

/** The same until a time on our own monotonic clock: a later try has only what is left. */
export function* fencedUntil<T, Tx>(
  untilMs: number,
  ground: Ground,
  unit: (tx: Tx, number: number | null) => Unit<FencedEnd<T>>,
): Generator<FencedCommand<Tx> | ClockCommand, Fenced<T>, void> {
  const nowMs = yield* clock();
  return yield* fenced(Math.max(1, untilMs - nowMs), ground, unit);
}

/** True for anything that must be awaited. */
export function isPromise<T>(value: Awaitable<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** Goes on with a value at once where it is there, and with a promise where it is not. */
export function following<T, U>(value: Awaitable<T>, next: (value: T) => U): Awaitable<U> {
  return isPromise(value) ? value.then(next) : next(value);
}

/** Carries a typed reply from the driver into the flow. */
interface Slot<T> {
  readonly put: (value: T) => void;
  readonly take: () => T;
}

function slot<T>(): Slot<T> {
  let held: { readonly value: T } | undefined;
  return {
    put: (value) => {
      held = { value };
    },
    take: () => {
      if (held === undefined) throw new Error("A flow was resumed before its command was carried out.");
      return held.value;
    },
  };
}

function nothing(): void {}
