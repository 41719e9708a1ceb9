import { ConfigurationError } from "../../errors.ts";
import type { Awaitable, UnitEnd } from "../store.ts";
import type { SqliteConnection } from "./connection.ts";
import { isBusy, translated } from "./faults.ts";
import type { Session } from "./session.ts";

/** A unit that the user wrote. */
export type Unit<T> = (tx: SqliteConnection) => Awaitable<UnitEnd<T>>;

/** How it went; `threw` keeps the user's own error apart from what SQLite says to us. */
export type Ran<T> =
  | { readonly kind: "ended"; readonly value: T }
  | { readonly kind: "threw"; readonly error: unknown };

/**
 * Runs the user's unit in one transaction. Throws BUSY only while nothing of it has run; from then on a lock in the way
 * is contention, since the unit is not ours to repeat.
 */
export function runUnit<T>(units: Session, unit: Unit<T>): Ran<T> {
  let begun = false;
  try {
    return units.immediately<Ran<T>>((tx) => {
      begun = true;
      return endOf(units, () => unit(tx));
    });
  } catch (error) {
    throw begun ? translated(error, units.current()) : error;
  }
}

function endOf<T>(units: Session, unit: () => Awaitable<UnitEnd<T>>): UnitEnd<Ran<T>> {
  try {
    const { kind, value } = settled(units, unit());
    return { kind, value: { kind: "ended", value } };
  } catch (error) {
    return {
      kind: "rollback",
      value: { kind: "threw", error: isBusy(error) ? translated(error, units.current()) : error },
    };
  }
}

function settled<T>(units: Session, end: Awaitable<UnitEnd<T>>): UnitEnd<T> {
  if (!("then" in end)) return end;
  // What the unit still does finds its connection closed: it could only go round the transaction. That it fails so is
  // our doing, and the error below tells it.
  units.drop();
  end.then(undefined, () => {});
  const reason =
    "must be given a function that returns its end and not a promise of it: on SQLite a transaction that";
  throw new ConfigurationError(
    "transaction",
    `${reason} waits stops every other writer. Everything was rolled back`,
  );
}
