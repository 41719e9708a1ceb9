import type { Due, Identity, RecordWrite, Seen } from "../../core/record.ts";
import { recordId } from "../codec.ts";
import type { Row } from "../row.ts";
import { CLOCK, inJson, NOW } from "./columns.ts";
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
  const text = `WITH ${CLOCK} SELECT ${NOW}, ${inJson("record")} AS record, ${free} AS number
    FROM clock LEFT JOIN ${records} AS record ON record.id = ${add(recordId(identity), "bytea")}`;
  return text;
}

/** In the error of a write that met another version than its unit stood on. */
export const GROUND_LOST = "oncekey: another version stands";

/** A unit's last write. */
export interface Concluding {
  /** The version that it replaces; `null` where there was none. */
  readonly seen: Seen | null;
  readonly row: Row<Due>;
  readonly attempt: RecordWrite["attempt"];
  /** A column of its answer besides. */
  readonly besides?: string;
}

/** Writes the last version of a unit, or fails, so that a COMMIT behind it in the same message is skipped. */
export function concludeStatement({ records }: Tables, { seen, row, attempt, besides }: Concluding): string {
  const { add } = literals();
  const text = `WITH ${CLOCK}, kept AS (${seen === null ? creation() : replacement(seen)}
      RETURNING ${inJson("updated_at")} AS now, attempt::text AS attempt)
    SELECT ${besides === undefined ? "" : `${besides}, `}max(now) AS now, max(attempt) AS attempt,
      CASE count(*) WHEN 1 THEN 1 ELSE ('${GROUND_LOST} ' || count(*))::integer END AS kept FROM kept`;
  return text;

  function creation(): string {
    const written = [["id", add(row.id, "bytea")] as const, ...created(row, attempt, add)];
    return `INSERT INTO ${records} (${written.map(([column]) => column).join(", ")})
      SELECT ${written.map(([, value]) => value).join(", ")} FROM clock ON CONFLICT (id) DO NOTHING`;
  }

  function replacement(version: Seen): string {
    return `UPDATE ${records} AS record SET ${changed(row, attempt, add)} FROM clock WHERE ${versionOf(version, add)}`;
  }
}

/** Bounds how long this transaction may sit idle; a setting of its own, which ends with it. */
function idleBound(idleMs: string): string {
  return `set_config('idle_in_transaction_session_timeout', ${idleMs}, true) AS idle`;
}
