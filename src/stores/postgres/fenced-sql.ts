import type { Due, Identity, KeyRecord, RecordWrite, Seen } from "../../core/record.ts";
import { recordId } from "../codec.ts";
import type { Row } from "../row.ts";
import { inJson, NOW } from "./columns.ts";
import { literals } from "./literal.ts";
import { advisoryKey, changed, created, type Tables, versionOf } from "./sql.ts";

/**
 * Holds the row of the version that was seen until the transaction ends, and waits for whoever holds it; no row where
 * another version stands. In the same trip it bounds how long the transaction may sit idle.
 */
export function holdStatement({ records }: Tables, seen: Seen, idleMs: number): string {
  const { add } = literals();
  const text = `SELECT ${idleBound(add(String(idleMs), "text"))} FROM ${records} AS record
    WHERE ${versionOf(seen, add)} FOR NO KEY UPDATE`;
  return text;
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
  const { add } = literals();
  const key = add(advisoryKey("claim", schema, recordId(identity)), "bigint");
  const idle = idleBound(add(String(idleMs), "text"));
  return `SELECT pg_try_advisory_xact_lock(${key})::text AS claimed, ${idle}`;
}

/**
 * What stands under an identity that is being claimed, with a fencing token where it is free. Its snapshot is taken after
 * the lock, so that it sees whatever an earlier holder committed. A row that was seen is held besides, and skipped where
 * somebody else holds it.
 */
export function claimableStatement({ records, attempts }: Tables, { identity, seen }: Claimable): string {
  const { add } = literals();
  const number = `nextval('${attempts.replaceAll("'", "''")}')::text`;
  const free =
    seen === null
      ? `CASE WHEN record.id IS NULL THEN ${number} END`
      : `(SELECT ${number} FROM ${records} AS record WHERE ${versionOf(seen, add)} FOR NO KEY UPDATE SKIP LOCKED)`;
  return `SELECT ${NOW}, ${inJson("record")} AS record, ${free} AS number
    FROM ${ARRIVAL} LEFT JOIN ${records} AS record ON record.id = ${add(recordId(identity), "bytea")}`;
}

/**
 * True for the error of a `concludeStatement` that met another version than its unit stood on, however a layer wrapped it.
 * Those of layers quote the statement too, in which no number stands behind the words.
 */
export function isGroundLost(error: unknown): boolean {
  for (let cause = error, depth = 0; cause instanceof Error && depth < DEEPEST_CAUSE; depth += 1) {
    if (LOST.test(cause.message)) return true;
    cause = cause.cause;
  }
  return false;
}

const GROUND_LOST = "oncekey: another version stands";
const LOST = new RegExp(`${GROUND_LOST} \\d|"oncekey_records_pkey"`);

/** Against circles; layers wrap once or twice. */
const DEEPEST_CAUSE = 5;

/** A unit's last write. */
export interface Concluding {
  /** The version that it replaces; `null` where there was none. */
  readonly seen: Seen | null;
  readonly row: Row<Due>;
  readonly attempt: RecordWrite["attempt"];
  /** Columns that it leaves as they were. */
  readonly same?: ReadonlySet<string>;
  /** A column of its answer besides. */
  readonly besides?: string;
}

/** Writes the last version of a unit, or fails, so that a COMMIT behind it in the same message is skipped. */
export function concludeStatement(
  { records }: Tables,
  { seen, row, attempt, same, besides }: Concluding,
): string {
  const { add } = literals();
  const more = besides === undefined ? "" : `${besides}, `;
  const stamped = `${inJson("updated_at")} AS now, attempt::text AS attempt`;
  if (seen === null) {
    const written = [["id", add(row.id, "bytea")] as const, ...created(row, attempt, add)];
    return `INSERT INTO ${records} (${written.map(([column]) => column).join(", ")})
      SELECT ${written.map(([, value]) => value).join(", ")} FROM ${ARRIVAL} RETURNING ${more}${stamped}`;
  }
  return `WITH kept AS (
      UPDATE ${records} AS record SET ${changed(row, attempt, add, same)} FROM ${ARRIVAL}
      WHERE ${versionOf(seen, add)} RETURNING ${stamped})
    SELECT ${more}max(now) AS now, max(attempt) AS attempt,
      CASE count(*) WHEN 1 THEN 1 ELSE ('${GROUND_LOST} ' || count(*))::integer END AS kept FROM kept`;
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

/** Bounds how long this transaction may sit idle; a setting of its own, which ends with it. */
function idleBound(idleMs: string): string {
  return `set_config('idle_in_transaction_session_timeout', ${idleMs}, true) AS idle`;
}
