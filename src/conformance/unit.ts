import { isPromise } from "../engine/command.ts";
import { step } from "../engine/driver.ts";
import type { Awaitable, Settling, TransactionalStore, UnitEnd, Within } from "../stores/store.ts";

/** A transaction's unit that waits only where the store does: SQLite carries it out in one go, others with promises. */
export type Unit<T> = Generator<PromiseLike<void>, UnitEnd<T>, void>;

/** Runs one unit in a transaction of its own. */
export function transact<T>(
  store: TransactionalStore<unknown, Settling>,
  unit: (within: Within) => Unit<T>,
): Promise<T> {
  return store.transaction((tx) => step(unit(store.within(tx)), (promise) => promise));
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

/** Ends a unit: what it wrote is not to be kept. */
export function rollback<T>(value: T): UnitEnd<T> {
  return { kind: "rollback", value };
}
