import type { Due, Identity, KeyRecord, RecordWrite, Seen } from "../../core/record.ts";
import { recordId } from "../codec.ts";
import type { Row } from "../row.ts";
import { isSaid } from "./classify.ts";
import { inJson, NOW } from "./columns.ts";
import { literals } from "./literal.ts";
import { BEGUN, INVALID_TEXT, idleBound, stillIn } from "./same-transaction.ts";
import { advisoryKey, changed, created, type Tables, versionOf } from "./sql.ts";

/**
 * Holds the row of the version that was seen until the transaction ends, and waits for whoever holds it; no row where
 * another version stands. In the same trip it bounds how long the transaction may sit idle.
 */
export function holdStatement({ records }: Tables, seen: Seen, idleMs: number): string {
  const { add } = literals();
  return `SELECT ${BEGUN}, ${idleBound(idleMs)} FROM ${records} AS record
    WHERE ${versionOf(seen, add)} FOR NO KEY UPDATE`;
}

/** What a claim in the effect's own transaction asks for. */
export interface Claimable {
  readonly identity: Identity;
  readonly seen: Seen | null;
  readonly schema: string | null;
  readonly idleMs: number;
}

/** Takes the lock that says "this identity is being claimed"; freed by the end of the transaction, never waited for. */
export function lockStatement({ identity, schema, idleMs }: Claimable): string {
  return `SELECT ${tryLock(identity, schema)}::text AS claimed, ${idleBound(idleMs)}`;
}

function tryLock(identity: Identity, schema: string | null): string {
  const key = literals().add(advisoryKey("claim", schema, recordId(identity)), "bigint");
  return `pg_try_advisory_xact_lock(${key})`;
}

/**
 * What stands under an identity that is being claimed, with a fencing token where it is free. Its snapshot is taken after
 * the lock, so that it sees whatever an earlier holder committed. A row that was seen is held besides, by whoever has the
 * lock only (it is asked for again, which who has it may), and skipped where somebody else holds it.
 */
export function claimableStatement(
  { records, attempts }: Tables,
  { identity, seen, schema }: Claimable,
): string {
  const { add } = literals();
  const number = `nextval('${attempts.replaceAll("'", "''")}')::text`;
  const free =
    seen === null
      ? `CASE WHEN record.id IS NULL THEN ${number} END`
      : `CASE WHEN ${tryLock(identity, schema)} THEN (SELECT ${number} FROM ${records} AS record
          WHERE ${versionOf(seen, add)} FOR NO KEY UPDATE SKIP LOCKED) END`;
  return `SELECT ${NOW}, ${inJson("record")} AS record, ${free} AS number, ${BEGUN}
    FROM ${ARRIVAL} LEFT JOIN ${records} AS record ON record.id = ${add(recordId(identity), "bytea")}`;
}

/**
 * True for the error of a `concludeStatement` that met another version than its unit stood on, however a layer wrapped it
 * and in whatever language the server words it. Those of layers quote the statement too, whose values may be any words;
 * so the SQLSTATE has a say.
 */
export function isGroundLost(error: unknown): boolean {
  return isSaid(error, UNIQUE_VIOLATION, PRIMARY_KEY) || isSaid(error, INVALID_TEXT, LOST);
}

const GROUND_LOST = "oncekey: another version stands";
const LOST = new RegExp(`${GROUND_LOST} \\d`);
const PRIMARY_KEY = /\boncekey_records_pkey\b/;
const UNIQUE_VIOLATION = "23505";

/** A unit's last write. */
export interface Concluding {
  /** The version that it replaces; `null` where there was none. */
  readonly seen: Seen | null;
  /** As the statement of the ground told it. */
  readonly begun: string;
  readonly row: Row<Due>;
  readonly attempt: RecordWrite["attempt"];
  /** Columns that it leaves as they were. */
  readonly same?: ReadonlySet<string>;
  /** A column of its answer besides. */
  readonly besides?: string;
}

/**
 * Writes the last version of a unit, or fails, so that a COMMIT behind it in the same message is skipped: where another
 * version stands, and where the transaction is not the one in which the unit began.
 */
export function concludeStatement(
  { records }: Tables,
  { seen, begun, row, attempt, same, besides }: Concluding,
): string {
  const { add } = literals();
  const more = besides === undefined ? "" : `${besides}, `;
  const write = seen === null ? creation() : replacement(seen);
  // A trigger, too, may keep a row from being written; then nothing may be committed.
  return `WITH kept AS (${write} RETURNING ${inJson("updated_at")} AS now, attempt::text AS attempt)
    SELECT ${more}max(now) AS now, max(attempt) AS attempt,
      CASE count(*) WHEN 1 THEN 1 ELSE ('${GROUND_LOST} ' || count(*))::integer END AS kept FROM kept`;

  function creation(): string {
    const written = [["id", add(row.id, "bytea")] as const, ...created(row, attempt, add)];
    return `INSERT INTO ${records} (${written.map(([column]) => column).join(", ")})
      SELECT ${written.map(([, value]) => value).join(", ")} FROM ${ARRIVAL} WHERE ${stillIn(begun)}`;
  }

  function replacement(version: Seen): string {
    return `UPDATE ${records} AS record SET ${changed(row, attempt, add, same)} FROM ${ARRIVAL}
      WHERE ${versionOf(version, add)} AND ${stillIn(begun)}`;
  }
}

/** The columns of what a version took over from the one before it. */
export function unchanged(write: RecordWrite, from: KeyRecord): ReadonlySet<string> {
  const { fingerprint: next } = write;
  const { fingerprint: before } = from;
  const at = (due: Due) => ("at" in due ? due.at : null);
  const same: readonly (readonly [column: string, isSame: boolean])[] = [
    ["operation", write.operation === from.operation],
    ["effects", write.effects === from.effects],
    ["owner", write.owner === from.owner],
    ["attempt", write.attempt === from.attempt],
    ["correlation_id", write.correlationId === from.correlationId],
    ["reference", write.reference === from.reference],
    ["steps", write.steps.size === 0 && from.steps.size === 0],
    ["created_at", at(write.createdAt) === from.createdAt],
    ["claimed_at", at(write.claimedAt) === from.claimedAt],
    ["fingerprint_version", next.version === before.version],
    ["fingerprint_salt", next.salt === before.salt],
    ["fingerprint_raw", next.raw === before.raw],
    ["fingerprint_canonical", next.canonical === before.canonical],
  ];
  return new Set(same.flatMap(([column, isSame]) => (isSame ? [column] : [])));
}

/**
 * The database's now for statements that wait for nobody: when their message arrived. Unlike the materialised clock of
 * those that may wait it costs the server nothing to plan.
 */
const ARRIVAL = "(SELECT date_trunc('milliseconds', statement_timestamp()) AS now) AS clock";
