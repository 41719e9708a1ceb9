import type { Identity, RecordWrite, Seen } from "../../core/record.ts";
import type { Looked, Patience, Replaced, Standing, Within } from "../store.ts";
import { row, run, type SqliteConnection } from "./connection.ts";
import { isBusy, isOutdated } from "./faults.ts";
import { behind, plainlyOn } from "./lending.ts";
import { insertRecord, judged, readRecord, replaceRecord } from "./records.ts";

/** The verbs inside an open transaction: each answers before it returns. */
export interface SqliteWithin extends Within {
  tryClaim(identity: Identity): boolean;
  insert(write: RecordWrite): Standing;
  replace(seen: Seen, write: RecordWrite, patience: Patience): Replaced;
  read(identity: Identity): Looked;
}

/** The verbs on a connection whose transaction somebody else begins and ends. */
export function within(handle: SqliteConnection): SqliteWithin {
  const plainly = <T>(work: (tx: SqliteConnection) => T): T => {
    const tx = behind(handle);
    return plainlyOn(tx, () => work(tx));
  };
  return {
    tryClaim: () => plainly(takesWriteLock),
    insert: (write) => plainly((tx) => insertRecord(tx, write)),
    replace: (seen, write, patience) =>
      plainly((tx) => {
        // Whoever has the write lock has every row: nobody else can be claiming or holding this one.
        if (patience === "never" && !takesWriteLock(tx))
          return judged(readRecord(tx, seen.identity), seen, write);
        return replaceRecord(tx, seen, write);
      }),
    read: (identity) => plainly((tx) => readRecord(tx, identity)),
  };
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
