import type { Identity } from "../core/record.ts";
import type { Settling, Store, TransactionalStore } from "../stores/store.ts";
import type { Law } from "./law.ts";

/**
 * A store on trial, with its tables in place. Nobody else may be using it: the laws write, purge and leave records
 * behind. They may run on it one after the other, never side by side.
 */
export interface StoreSubject {
  readonly store: Store;
  /** A second handle on the same data, over a connection of its own; the laws do not close it. */
  readonly another: () => Promise<Store>;
  /** Lets time pass, on the store's clock too. */
  readonly pause: (durationMs: number) => Promise<void>;
  /** At least 0 and less than 1, seeded by the caller. A second run on the same data needs another seed. */
  readonly random: () => number;
  /** Spoils what is kept for the identity so that it cannot be read any more, its state and its times excepted. */
  readonly damage?: (identity: Identity) => Promise<void>;
}

/** What not every store offers, or not every subject. */
export type StoreNeed =
  /** Record and other rows in one commit. */
  | "transactions"
  /** Two transactions open at a time, which a store with synchronous units cannot have in one process. */
  | "simultaneous transactions"
  /** Ended records stay until `purge` removes them. */
  | "purge"
  | "damage";

export type StoreLaw = Law<StoreSubject, StoreNeed>;

/** What this subject does not offer; the laws that need it do not apply. */
export function unmetNeeds({ store, damage }: StoreSubject): readonly StoreNeed[] {
  const transactional = isTransactional(store);
  const met: Readonly<Record<StoreNeed, boolean>> = {
    transactions: transactional,
    "simultaneous transactions": transactional && store.settles === "async",
    purge: !store.capabilities.nativeExpiry,
    damage: damage !== undefined,
  };
  return ALL_NEEDS.filter((need) => !met[need]);
}

/** The store as one with transactions; throws where a law asks for them without naming the need. */
export function transactional(store: Store): TransactionalStore<unknown, Settling> {
  if (!isTransactional(store)) throw new Error(`The store "${store.name}" offers no transactions.`);
  return store;
}

const ALL_NEEDS: readonly StoreNeed[] = ["transactions", "simultaneous transactions", "purge", "damage"];

function isTransactional(store: Store): store is TransactionalStore<unknown, Settling> {
  return store.capabilities.transactions && "transaction" in store && "within" in store && "settles" in store;
}
