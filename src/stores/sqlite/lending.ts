import { endedInside, lent, unitIsOver } from "../lent.ts";
import type { Awaitable } from "../store.ts";
import type { SqliteConnection } from "./connection.ts";
import { translated } from "./faults.ts";

/**
 * Lends a connection to the user's part of a unit: once that has returned, neither the handle nor what was prepared by it
 * does anything. What is to be committed must still be in the transaction that it began in, which a savepoint tells
 * (it ends with its transaction); asking whether any transaction is open would not.
 */
export function lending<End extends { readonly kind: string }>(
  tx: SqliteConnection,
  work: (handle: SqliteConnection) => Awaitable<End>,
): Awaitable<End> {
  plainlyOn(tx, () => tx.exec(`SAVEPOINT ${MARK}`));
  const end = lendFor(tx, work);
  if (!("then" in end) && end.kind === "commit") plainlyOn(tx, () => checkMark(tx));
  return end;
}

/** The connection itself, on which a statement is prepared once and not for each unit; throws as the handle would. */
export function behind(handle: SqliteConnection): SqliteConnection {
  return handles.get(handle)?.() ?? handle;
}

/** Runs statements of ours; what SQLite says to them comes out as an error that means something. */
export function plainlyOn<T>(tx: SqliteConnection, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw translated(error, tx);
  }
}

const MARK = "oncekey_unit";

const handles = new WeakMap<SqliteConnection, () => SqliteConnection>();

function lendFor<T>(tx: SqliteConnection, work: (handle: SqliteConnection) => T): T {
  let isOver = false;
  const refusal = () => (isOver ? unitIsOver() : undefined);
  const handle = lent(tx, refusal);
  handles.set(handle, () => {
    const reason = refusal();
    if (reason !== undefined) throw reason;
    return tx;
  });
  try {
    return work(handle);
  } finally {
    isOver = true;
  }
}

function checkMark(tx: SqliteConnection): void {
  try {
    tx.exec(`RELEASE ${MARK}`);
  } catch (error) {
    const isGone = error instanceof Error && /no such savepoint/.test(error.message);
    throw isGone ? endedInside() : error;
  }
}
