import type { Duration } from "../../core/policy.ts";
import { ownRecordId, recordId } from "../codec.ts";
import type { AuditEntry, Capabilities, TransactionalStore } from "../store.ts";
import { access } from "./access.ts";
import { run, type SqliteConnection } from "./connection.ts";
import { fenced } from "./fenced.ts";
import { lending } from "./lending.ts";
import { countRecords, listAudits, listBeats, listDue, listRecords } from "./lists.ts";
import { checkSchema } from "./migrations.ts";
import { purger } from "./purge.ts";
import { insertRecord, judged, NOW, readRecord, replaceRecord } from "./records.ts";
import { type SqliteWithin, within } from "./within.ts";

export type { SqliteConnection, SqliteStatement, SqliteValue } from "./connection.ts";
export { type MigrateOptions, type Migration, migrate, migrations, printMigrations } from "./migrations.ts";
export type { SqliteWithin } from "./within.ts";

export interface SqliteOptions {
  /** Opens the file; called for the few connections that the store keeps, never for a request. */
  readonly connect: () => SqliteConnection;
  /** How long a write tries while other processes hold the write lock. */
  readonly storeTimeout?: Duration;
  /** A fraction of one, for the jitter between tries. */
  readonly random?: () => number;
}

/** Records in a SQLite file, and in one commit with the user's own rows of the same file. */
export interface SqliteStore extends TransactionalStore<SqliteConnection, "sync"> {
  /** On a connection of the user's own, how well the commit is kept is the user's: `PRAGMA synchronous = FULL`. */
  within(tx: SqliteConnection): SqliteWithin;
}

/**
 * Keeps records in the SQLite file that `connect` opens. Opens nothing until it is used, and never makes a table: see
 * `migrate`. Writes of one process take turns, and none of them blocks the event loop while others hold the lock.
 */
export function sqliteStore({
  connect,
  storeTimeout = 2_000,
  random = Math.random,
}: SqliteOptions): SqliteStore {
  const { read, write, tryWrite, unit, close } = access({ connect, storeTimeout, random });
  return {
    name: "sqlite",
    capabilities: CAPABILITIES,
    settles: "sync",
    insert: async (claim) => {
      // Duplicates are the many: they are answered by a read, and take no lock. Only the insert decides who runs.
      const { record, now } = await read((file) => readRecord(file, claim.identity));
      if (record !== null) return { inserted: false, record, now };
      return write((file) => insertRecord(file, claim));
    },
    replace: (seen, next, patience) => {
      const replace = (file: SqliteConnection) => replaceRecord(file, seen, next);
      if (patience === "wait") return write(replace);
      return tryWrite(replace, (file) => judged(readRecord(file, seen.identity), seen, next));
    },
    read: (identity) => read((file) => readRecord(file, identity)),
    due: (query) => read((file) => listDue(file, query)),
    list: (query) => read((file) => listRecords(file, query)),
    count: () => read(countRecords),
    purge: purger({ read, write }),
    audit: (entry) => write((file) => insertAudit(file, entry)),
    audits: (identity) => read((file) => listAudits(file, identity)),
    beat: (worker) => write((file) => void run(file, BEAT, [worker])),
    beats: () => read(listBeats),
    check: async () => {
      await read(checkSchema);
      await write((file) => void run(file, "UPDATE oncekey_counter SET last = last"));
    },
    transaction: (work) => unit((tx) => lending(tx, work)),
    fenced: (ground, work) => fenced({ read, unit }, ground, work),
    ...{ within, recordId: ownRecordId, close },
  };
}

const CAPABILITIES: Capabilities = {
  transactions: true,
  durable: true,
  nativeExpiry: false,
  timePrecisionMs: 1,
  /** SQLite's own limit of a row, where its build or the connection does not lower it. */
  maxRecordBytes: 1_000_000_000,
};

function insertAudit(connection: SqliteConnection, entry: AuditEntry): void {
  const { identity, actor, action, reason, before, after } = entry;
  const operation = identity.kind === "run" ? identity.operation : null;
  const whose = [recordId(identity), identity.kind, identity.principal, operation, identity.key];
  run(connection, AUDIT, [...whose, actor, action, reason, before, after]);
}

const AUDIT = `INSERT INTO oncekey_audit
  (record_id, kind, principal, identity_operation, key, actor, action, reason, state_before, state_after, at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ${NOW})`;

const BEAT = `INSERT INTO oncekey_beats (worker, beaten_at) VALUES (?, ${NOW})
  ON CONFLICT (worker) DO UPDATE SET beaten_at = excluded.beaten_at`;
