import type { Identity, RecordWrite, Seen } from "../../core/record.ts";
import type { Looked, Patience, Replaced, Standing, Within } from "../store.ts";
import { row, run, type SqliteConnection } from "./connection.ts";
import { isBusy, isOutdated, translated } from "./faults.ts";
import { insertRecord, judged, readRecord, replaceRecord } from "./records.ts";

/** The verbs inside an open transaction: each answers before it returns. */
export interface SqliteWithin extends Within {
  tryClaim(identity: Identity): boolean;
  insert(write: RecordWrite): Standing;
  replace(seen: Seen, write: RecordWrite, patience: Patience): Replaced;
  read(identity: Identity): Looked;
}

/** The verbs on a connection whose transaction somebody else begins and ends. */
export function within(tx: SqliteConnection): SqliteWithin {
  const plainly = <T>(work: () => T): T => plainlyOn(tx, work);
  return {
    tryClaim: () => plainly(() => takesWriteLock(tx)),
    insert: (write) => plainly(() => insertRecord(tx, write)),
    replace: (seen, write, patience) =>
      plainly(() => {
        // Whoever has the write lock has every row: nobody else can be claiming or holding this one.
        if (patience === "never" && !takesWriteLock(tx))
          return judged(readRecord(tx, seen.identity), seen, write);
        return replaceRecord(tx, seen, write);
      }),
    read: (identity) => plainly(() => readRecord(tx, identity)),
  };
}

/** Runs statements of ours; what SQLite says to them comes out as an error that means something. */
export function plainlyOn<T>(tx: SqliteConnection, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw translated(error, tx);
  }
}

/** True once this transaction is the one that writes, in which no other can be claiming anything; never waits. */
function takesWriteLock(tx: SqliteConnection): boolean {
  const { timeout } = row(tx, "PRAGMA busy_timeout");
  tx.exec("PRAGMA busy_timeout = 0");
  try {
    run(tx, "UPDATE oncekey_counter SET last = last");
    return true;
  } catch (error) {
    if (isBusy(error) && !isOutdated(error)) return false;
    throw error;
  } finally {
    tx.exec(`PRAGMA busy_timeout = ${Number(timeout)}`);
  }
}
