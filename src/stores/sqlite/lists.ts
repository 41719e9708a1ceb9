import type { Identity, Instant } from "../../core/record.ts";
import { integer, oneOf, orNull, recordId, text } from "../codec.ts";
import type { Audited, Beat, Counts, DueQuery, Listed, ListQuery } from "../store.ts";
import { row, rows, type SqliteConnection, type SqliteValue } from "./connection.ts";
import { readClock, readRecords } from "./records.ts";

/** What a worker should look at, the longest overdue first. */
export function listDue(connection: SqliteConnection, query: DueQuery): Listed {
  const now = readClock(connection);
  const { after, limit } = query;
  const [conditions, column, untilMs] = overdue(query, now);
  const place = after === undefined ? [] : [after.dueAt, recordId(after.identity)];
  const behind = after === undefined ? "" : ` AND (${column}, id) > (?, ?)`;
  // In ORDER BY a column bears its table: alone it would name the text that is selected.
  const where = `WHERE ${conditions} AND ${column} <= ?${behind}`;
  const found = readRecords(connection, {
    conditions: `${where} ORDER BY oncekey_records.${column}, id`,
    parameters: [untilMs, ...place],
    limit,
  });
  return { ...found, now };
}

/** The conditions are those of an index each. */
function overdue(
  query: DueQuery,
  now: Instant,
): readonly [conditions: string, column: string, untilMs: number] {
  switch (query.kind) {
    case "stale":
      return ["state = 'in_progress'", "lease_until", now - query.graceMs];
    case "looks":
      return ["state = 'unknown' AND disposition = 'reconcile'", "next_look_at", now];
  }
}

/** Records for people, newest change first. */
export function listRecords(connection: SqliteConnection, query: ListQuery): Listed {
  const { before, limit } = query;
  const filters = [
    ...equal("state", query.state),
    ...equal("disposition", query.disposition),
    ...equal("principal", query.principal),
    ...equal("key", query.key),
    ...equal("operation", query.operation),
    ...equal("correlation_id", query.correlationId),
  ];
  const place = before === undefined ? [] : [before.updatedAt, recordId(before.identity)];
  const wanted = [
    ...filters.map(({ condition }) => condition),
    ...(before === undefined ? [] : ["(updated_at, id) < (?, ?)"]),
  ];
  const where = wanted.length === 0 ? "" : `WHERE ${wanted.join(" AND ")}`;
  const conditions = `${where} ORDER BY oncekey_records.updated_at DESC, id DESC`;
  const parameters = [...filters.map(({ value }) => value), ...place];
  return { ...readRecords(connection, { conditions, parameters, limit }), now: readClock(connection) };
}

/** The ids of records whose retention is over, from a place in their order on. */
export function listEnded(
  connection: SqliteConnection,
  query: { readonly after: EndedPlace; readonly limit: number },
): readonly EndedPlace[] {
  const { after, limit } = query;
  const parameters = [readClock(connection), after.retainUntil, after.number, limit];
  return rows(connection, ENDED, parameters).map(({ retain_until, number }) => ({
    retainUntil: integer(retain_until, "retain_until"),
    number: integer(number, "rowid"),
  }));
}

/** A place in the order in which records are purged. */
export interface EndedPlace {
  readonly retainUntil: Instant;
  readonly number: number;
}

/** How many records there are of each state; walks one index. */
export function countRecords(connection: SqliteConnection): Counts {
  const now = readClock(connection);
  const groups = rows(connection, COUNT).map(({ state, disposition, records, oldest }) => ({
    ...{ state, disposition },
    records: integer(records, "count"),
    oldestAt: integer(oldest, "claimed_at"),
  }));
  const { ended, first } = row(connection, COUNT_ENDED, [now]);
  const { tombstones } = row(connection, COUNT_TOMBSTONES);
  const of = (column: "state" | "disposition", value: string) =>
    groups.filter((group) => group[column] === value);
  const sum = (some: typeof groups) => some.reduce((total, { records }) => total + records, 0);
  const oldestMs = (some: typeof groups) =>
    some.reduce<number | null>((ageMs, { oldestAt }) => Math.max(ageMs ?? 0, now - oldestAt), null);
  return {
    byState: {
      in_progress: sum(of("state", "in_progress")),
      released: sum(of("state", "released")),
      unknown: sum(of("state", "unknown")),
      completed: sum(of("state", "completed")),
      failed_permanent: sum(of("state", "failed_permanent")),
    },
    byDisposition: {
      reconcile: sum(of("disposition", "reconcile")),
      review: sum(of("disposition", "review")),
      hold: sum(of("disposition", "hold")),
    },
    oldestInProgressMs: oldestMs(of("state", "in_progress")),
    oldestUnknownMs: oldestMs(of("state", "unknown")),
    tombstones: integer(tombstones, "count"),
    endedNotPurged: integer(ended, "count"),
    oldestEndedMs: first === null ? null : now - integer(first, "retain_until"),
  };
}

/** What people and policies overrode on one record, the oldest first. */
export function listAudits(connection: SqliteConnection, identity: Identity): readonly Audited[] {
  return rows(connection, AUDITS, [recordId(identity)]).map(
    ({ actor, action, reason, state_before, state_after, at }) => ({
      identity,
      actor: text(actor, "actor"),
      action: text(action, "action"),
      reason: text(reason, "reason"),
      before: orNull(state_before, "state_before", stateOf),
      after: orNull(state_after, "state_after", stateOf),
      at: integer(at, "at"),
    }),
  );
}

/** When each worker was last heard of. */
export function listBeats(connection: SqliteConnection): readonly Beat[] {
  const now = readClock(connection);
  return rows(connection, BEATS).map(({ worker, beaten_at }) => {
    const beatenAt = integer(beaten_at, "beaten_at");
    return { worker: oneOf(worker, "worker", WORKERS), beatenAt, ageMs: now - beatenAt };
  });
}

/** Held unknowns end by time; others only by somebody's verdict. The index `oncekey_ended` has the same words. */
export const ENDABLE = "state <> 'in_progress' AND (state <> 'unknown' OR disposition = 'hold')";

const ENDED = `SELECT rowid AS number, retain_until FROM oncekey_records
  WHERE ${ENDABLE} AND retain_until <= ? AND (retain_until, rowid) > (?, ?) ORDER BY retain_until, rowid LIMIT ?`;
const COUNT = `SELECT state, disposition, count(*) AS records, min(claimed_at) AS oldest
  FROM oncekey_records GROUP BY state, disposition`;
const COUNT_ENDED = `SELECT count(*) AS ended, min(retain_until) AS first FROM oncekey_records WHERE ${ENDABLE} AND retain_until <= ?`;
/** The words of the index `oncekey_tombstones`. */
const COUNT_TOMBSTONES = `SELECT count(*) AS tombstones FROM oncekey_records
  WHERE tombstone_ms IS NOT NULL AND answer_digest IS NULL AND state IN ('completed', 'failed_permanent')`;
const AUDITS = `SELECT actor, action, reason, state_before, state_after, at FROM oncekey_audit
  WHERE record_id = ? ORDER BY number`;
const WORKERS = ["sweeper", "reconciler", "purge"] as const;
const BEATS = "SELECT worker, beaten_at FROM oncekey_beats";

function equal(column: string, value: SqliteValue | undefined) {
  return value === undefined ? [] : [{ condition: `${column} = ?`, value }];
}

const stateOf = (value: unknown, name: string) =>
  oneOf(value, name, ["in_progress", "released", "unknown", "completed", "failed_permanent"]);
