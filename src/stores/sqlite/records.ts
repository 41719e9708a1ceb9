import type { Identity, Instant, KeyRecord, RecordWrite, Seen } from "../../core/record.ts";
import { RecordCorrupt, StoreContention } from "../../errors.ts";
import { integer, recordId } from "../codec.ts";
import { fromRow, type StoredRow, stampRow, toRow } from "../row.ts";
import type { Looked, Replaced, Standing } from "../store.ts";
import { type Fields, row, rows, run, type SqliteConnection, type SqliteValue } from "./connection.ts";

/** Creates the record, or hands back the one that stands. */
export function insertRecord(connection: SqliteConnection, write: RecordWrite): Standing {
  const { identity } = write;
  const asked = toRow(write);
  const now = readClock(connection);
  const draft = { ...stampRow(asked, { attempt: 0, revision: 1, now }), attempt: given(write) };
  const inserted =
    run(
      connection,
      INSERT,
      COLUMNS.map((column) => draft[column]),
    ) === 1;
  if (inserted) {
    const attempt = draft.attempt ?? nextAttempt(connection);
    return { inserted, record: fromRow({ ...draft, attempt }, identity), now };
  }
  const { record } = readRecord(connection, identity);
  if (record !== null) return { inserted, record, now };
  throw new StoreContention(
    "The record vanished while it was being claimed. Nothing was applied; try again.",
  );
}

/** Puts `write` in the place of the version that was seen, or says what stands instead. */
export function replaceRecord(connection: SqliteConnection, seen: Seen, write: RecordWrite): Replaced {
  const { identity, owner, revision } = seen;
  const asked = toRow(write);
  const now = readClock(connection);
  const draft = { ...stampRow(asked, { attempt: 0, revision: revision + 1, now }), attempt: given(write) };
  const values = [...CHANGING.map((column) => draft[column]), recordId(identity), owner, revision];
  if (run(connection, REPLACE, values) === 0) return judged(readRecord(connection, identity), seen, write);
  const attempt = draft.attempt ?? nextAttempt(connection);
  return { kind: "replaced", record: fromRow({ ...draft, attempt }, identity), now };
}

/** What a replacement finds that could not be tried, because others hold the write lock, or that changed nothing. */
export function judged({ record, now }: Looked, seen: Seen, write: RecordWrite): Replaced {
  if (record === null) return { kind: "stale", record, now };
  if (record.owner === seen.owner && record.revision === seen.revision)
    return { kind: "locked", record, now };
  return { kind: record.writeId === write.writeId ? "replaced" : "stale", record, now };
}

/** The record as last committed, or as this transaction sees it. */
export function readRecord(connection: SqliteConnection, identity: Identity): Looked {
  const found = row(connection, READ, [recordId(identity)]);
  const { id, now } = found;
  return { record: id === null ? null : fromRow(found, identity), now: integer(now, "now") };
}

/** SQLite's clock in whole milliseconds; asking it opens no transaction. */
export function readClock(connection: SqliteConnection): Instant {
  const { now } = row(connection, `SELECT ${NOW} AS now`);
  return integer(now, "now");
}

/** Records of a query, as many as asked for: a row before the last of them that cannot be read is counted and takes nobody's place. */
export function readRecords(
  connection: SqliteConnection,
  query: { readonly conditions: string; readonly parameters: readonly SqliteValue[]; readonly limit: number },
): { readonly records: readonly KeyRecord[]; readonly damaged: number } {
  const { conditions, parameters, limit } = query;
  const sql = `SELECT ${READABLE} FROM oncekey_records ${conditions} LIMIT ? OFFSET ?`;
  const records: KeyRecord[] = [];
  let damaged = 0;
  for (let offset = 0; records.length < limit; offset += limit) {
    const page = rows(connection, sql, [...parameters, limit, offset]);
    for (const found of page) {
      if (records.length === limit) break; // what is behind belongs to the next page
      const record = readable(found);
      if (record === null) damaged += 1;
      else records.push(record);
    }
    if (page.length < limit) break;
  }
  return { records, damaged };
}

function readable(found: Fields): KeyRecord | null {
  try {
    return fromRow(found);
  } catch (error) {
    if (error instanceof RecordCorrupt) return null;
    throw error;
  }
}

/** The number that a write brings along; `null` where the statement takes the next one. */
function given(write: RecordWrite): number | null {
  return write.attempt === "next" ? null : write.attempt;
}

/**
 * Moves on the counter whose next number a row was just written with, and gives that number.
 *
 * All keys share one counter, which moves on in the claim's own transaction: a number that was committed never comes
 * again, not even once its record is purged (a rowid would), and a takeover gets one without a new row. It moves on
 * after the row was written, so that who loses writes nothing, and so that a transaction which its user began without
 * IMMEDIATE has the write lock before it reads.
 */
export function nextAttempt(connection: SqliteConnection): number {
  run(connection, "UPDATE oncekey_counter SET last = last + 1");
  const { last } = row(connection, "SELECT last FROM oncekey_counter");
  return integer(last, "the last attempt");
}

const IDENTITY = ["id", "kind", "principal", "identity_operation", "key"] as const;

const INTEGERS = [
  ...["attempt", "revision", "looks", "answer_status", "created_at", "claimed_at", "updated_at"],
  ...["lease_until", "next_look_at", "retain_until", "tombstone_ms"],
] as const;

const OTHERS = [
  ...["operation", "effects", "state", "owner", "write_id", "disposition", "correlation_id"],
  ...["fingerprint_version", "fingerprint_salt", "fingerprint_raw", "fingerprint_canonical"],
  ...["steps", "reference", "evidence", "answer_headers", "answer_digest", "answer_body"],
] as const;

const CHANGING: readonly (keyof StoredRow)[] = [...INTEGERS, ...OTHERS];
const COLUMNS: readonly (keyof StoredRow)[] = [...IDENTITY, ...CHANGING];

/** Integers as text: a driver throws at one beyond 2^53, and a damaged row would hide those beside it. */
const READABLE = [...IDENTITY, ...OTHERS, ...INTEGERS.map((name) => `CAST(${name} AS TEXT) AS ${name}`)].join(
  ", ",
);

/** The clock of the machine, as SQLite reads it. */
export const NOW = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)";

const placeholder = (column: keyof StoredRow) =>
  column === "attempt" ? "coalesce(?, (SELECT last + 1 FROM oncekey_counter))" : "?";

const INSERT = `INSERT INTO oncekey_records (${COLUMNS.join(", ")})
  VALUES (${COLUMNS.map(placeholder).join(", ")})
  ON CONFLICT (id) DO NOTHING`;

const REPLACE = `UPDATE oncekey_records SET ${CHANGING.map((name) => `${name} = ${placeholder(name)}`).join(", ")}
  WHERE id = ? AND owner = ? AND revision = ?`;

const READ = `SELECT ${NOW} AS now, ${READABLE} FROM (SELECT 1) LEFT JOIN oncekey_records ON id = ?`;
