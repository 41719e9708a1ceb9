import type { RecordWrite } from "../core/record.ts";
import { isPromise } from "../engine/command.ts";
import { step } from "../engine/step.ts";
import type {
  Awaitable,
  Fenced,
  FencedEnd,
  Ground,
  Settling,
  TransactionalStore,
  UnitEnd,
  Within,
} from "../stores/store.ts";

/** A transaction's unit that waits only where the store does: SQLite carries it out in one go, others with promises. */
export type Unit<T> = Generator<PromiseLike<void>, UnitEnd<T>, void>;

/** Runs one unit in a transaction of its own. */
export function transact<T>(
  store: TransactionalStore<unknown, Settling>,
  unit: (within: Within) => Unit<T>,
): Promise<T> {
  return store.transaction((tx) => step(unit(store.within(tx)), (promise) => promise));
}

/** A unit that stands on a ground, and ends with a write in its place. */
export type FencedUnit<T> = Generator<PromiseLike<void>, FencedEnd<T>, void>;

/** Runs one unit on its ground in a transaction of its own. */
export function fence<T>(
  store: TransactionalStore<unknown, Settling>,
  ground: Ground,
  unit: (within: Within, number: number | null) => FencedUnit<T>,
): Promise<Fenced<T>> {
  return store.fenced(ground, (tx, number) => step(unit(store.within(tx), number), (promise) => promise));
}

/** The value of a verb inside a unit, at once or once it is there. */
export function* settled<T>(value: Awaitable<T>): Generator<PromiseLike<void>, T, void> {
  if (!isPromise(value)) return value;
  const kept: T[] = [];
  yield value.then((arrived) => {
    kept.push(arrived);
  });
  for (const arrived of kept) return arrived;
  throw new Error("A unit went on before the promise that it waited for was settled.");
}

/** Ends a unit: what it wrote is to be kept. */
export function commit<T>(value: T): UnitEnd<T> {
  return { kind: "commit", value };
}

/** Ends a unit on a ground: this write is to be kept in its place, and what the unit wrote besides. */
export function commitWith<T>(write: RecordWrite, value: T): FencedEnd<T> {
  return { kind: "commit", write, value };
}

/** Ends a unit, on a ground or without one: what it wrote is not to be kept. */
export function rollback<T>(value: T): Extract<FencedEnd<T>, { readonly kind: "rollback" }> {
  return { kind: "rollback", value };
}
