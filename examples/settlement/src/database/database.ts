import type { Returned, Settling, TransactionalStore } from "oncekey";
import type { Unit } from "./statement.ts";

/** The service's database: its own tables and, beside them, the records of its keys. */
export interface Database<Tx, Settles extends Settling> {
  /** For people: which one, and where it is, without a password. */
  readonly description: string;
  /** The records, in the same database, so that a record and what it stands for are one commit. */
  readonly store: TransactionalStore<Tx, Settles>;
  /** Makes the tables that are missing, ours and the library's; several processes may do so at once. */
  readonly migrate: () => Promise<void>;
  /** Runs a unit inside a transaction that the library has open. */
  readonly within: <T>(tx: Tx, unit: Unit<T>) => Returned<Settles, T>;
  /** Runs a unit that only looks, on what is committed. */
  readonly read: <T>(unit: Unit<T>) => Promise<T>;
  readonly close: () => Promise<void>;
}
