import type { Identity, KeyRecord } from "../../core/record.ts";
import { RecordCorrupt } from "../../errors.ts";
import { fromRow, type StoredRow } from "../row.ts";
import type { RawRow } from "./session.ts";

type ColumnType = "bytea" | "text" | "integer" | "bigint" | "timestamptz";

/** Every column of a record, with its type. */
export const COLUMNS: Readonly<Record<keyof StoredRow, ColumnType>> = {
  id: "bytea",
  kind: "text",
  principal: "text",
  identity_operation: "text",
  key: "text",
  operation: "text",
  effects: "text",
  state: "text",
  owner: "text",
  write_id: "text",
  fingerprint_version: "text",
  fingerprint_salt: "bytea",
  fingerprint_raw: "bytea",
  fingerprint_canonical: "bytea",
  steps: "bytea",
  reference: "bytea",
  correlation_id: "text",
  evidence: "bytea",
  looks: "bigint",
  disposition: "text",
  answer_status: "integer",
  answer_headers: "bytea",
  answer_body: "bytea",
  answer_digest: "bytea",
  created_at: "timestamptz",
  claimed_at: "timestamptz",
  lease_until: "timestamptz",
  next_look_at: "timestamptz",
  retain_until: "timestamptz",
  attempt: "bigint",
  revision: "bigint",
  updated_at: "timestamptz",
};

/** The database's now, once for the whole statement, in the milliseconds that a record shows. */
export const CLOCK = "clock AS MATERIALIZED (SELECT date_trunc('milliseconds', clock_timestamp()) AS now)";

/** The clock's now as a column of the answer. */
export const NOW: string = `${epochMs("clock.now")} AS now`;

/** An instant as whole milliseconds in text; null for one that has none (infinity), which no record holds. */
export function epochMs(instant: string): string {
  const ms = `round(extract(epoch FROM date_trunc('milliseconds', ${instant})) * 1000)::bigint`;
  return `(CASE WHEN isfinite(${instant}) THEN ${ms} END)::text`;
}

/**
 * The columns of the record in `table`, each as text under its own name: no setting of a session and no parser of a
 * driver has a say in text that we make.
 */
export function recordColumns(table: string): string {
  return Object.entries(COLUMNS)
    .map(([column, type]) => `${asText(`${table}.${column}`, type)} AS ${column}`)
    .join(", ");
}

/** The record of an answer that was asked for `recordColumns`; `null` where the outer join found none. */
export function recordOf(raw: RawRow, asked?: Identity): KeyRecord | null {
  if (raw["id"] === null) return null;
  return fromRow(
    Object.fromEntries(Object.entries(raw).map(([column, value]) => [column, decoded(column, value)])),
    asked,
  );
}

/** A number that our own SQL computed. */
export function numberOf(raw: RawRow, column: string): number {
  const value = Number(raw[column]);
  if (raw[column] === null || !Number.isSafeInteger(value))
    throw new RecordCorrupt(`${column} is no integer`);
  return value;
}

const BYTE_COLUMNS: ReadonlySet<string> = new Set(
  Object.entries(COLUMNS).flatMap(([column, type]) => (type === "bytea" ? [column] : [])),
);

function asText(column: string, type: ColumnType): string {
  switch (type) {
    case "text":
      return column;
    case "bytea":
      return `encode(${column}, 'base64')`; // bytea's own text depends on a setting, and is longer
    case "integer":
    case "bigint":
      return `${column}::text`;
    case "timestamptz":
      return epochMs(column);
  }
}

function decoded(column: string, value: unknown): unknown {
  return BYTE_COLUMNS.has(column) && typeof value === "string" ? Buffer.from(value, "base64") : value;
}
