import type { Identity, Instant, KeyRecord } from "../../core/record.ts";
import { RecordCorrupt } from "../../errors.ts";
import { fromRow, type Row, type StoredRow, TIME_COLUMNS } from "../row.ts";
import type { RawRow } from "./connector.ts";

type ColumnType = "bytea" | "text" | "integer" | "bigint" | "timestamptz";

/** The columns that a write fills, with their types. */
export const COLUMNS: Readonly<Record<keyof Row<unknown>, ColumnType>> = {
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
};

/** What a new claim says, in the order in which `oncekey_claim` takes it. */
export const CLAIM_COLUMNS = [
  "id",
  "kind",
  "principal",
  "identity_operation",
  "key",
  "operation",
  "effects",
  "owner",
  "write_id",
  "fingerprint_version",
  "fingerprint_salt",
  "fingerprint_raw",
  "fingerprint_canonical",
  "steps",
  "correlation_id",
] as const;

/** The database's now, once for the whole statement, in the milliseconds that a record shows. */
export const CLOCK = "clock AS MATERIALIZED (SELECT date_trunc('milliseconds', clock_timestamp()) AS now)";

/** The clock's now as a column of the answer. */
export const NOW: string = `${inJson("clock.now")} AS now`;

/**
 * A value as JSON text, so that neither a setting of the session nor a type parser of the driver has a say in it but
 * those that `instantOf` and `bytesOf` allow for. One expression for a whole row spares the server most of the work
 * of reading the statement, which is most of the work of answering it.
 */
export function inJson(value: string): string {
  return `to_json(${value})::text`;
}

/** The record of a row whose column `record` was made by `inJson`; `null` where there was none. */
export function recordOf(raw: RawRow, asked?: Identity): KeyRecord | null {
  const row = rowOf(raw);
  return row === null ? null : fromRow(row, asked);
}

/** The id of that row in hex, whatever else is wrong with it. */
export function hexIdOf(raw: RawRow): string {
  const id = rowOf(raw)?.["id"];
  if (!(id instanceof Uint8Array)) throw new RecordCorrupt("its id is not bytes");
  return Buffer.from(id).toString("hex");
}

/** The store's now that came with an answer. */
export function nowOf(raw: RawRow): Instant {
  return instantIn(raw, "now");
}

/** An instant that `inJson` made, in whole milliseconds; finer ones, which only people write, are cut. */
export function instantIn(raw: RawRow, column: string): Instant {
  const instant = instantOf(JSON.parse(String(raw[column])));
  if (typeof instant !== "number") throw new RecordCorrupt(`${column} is no instant`);
  return instant;
}

/** A number that our own SQL computed. */
export function numberIn(raw: RawRow, column: string): number {
  const value = Number(raw[column]);
  if (raw[column] === null || !Number.isSafeInteger(value))
    throw new RecordCorrupt(`${column} is no integer`);
  return value;
}

const BYTES = Object.entries(COLUMNS).flatMap(([column, type]) => (type === "bytea" ? [column] : []));
const INSTANTS: readonly (keyof StoredRow)[] = [...TIME_COLUMNS, "updated_at"];

function rowOf(raw: RawRow): RawRow | null {
  if (raw["record"] === null) return null;
  const columns: Record<string, unknown> = JSON.parse(String(raw["record"]));
  for (const column of BYTES) columns[column] = bytesOf(columns[column]);
  for (const column of INSTANTS) columns[column] = instantOf(columns[column]);
  return columns;
}

/** Both forms that `bytea_output` knows; what is neither stays, and is found to be damaged. */
function bytesOf(value: unknown): unknown {
  if (typeof value !== "string") return value;
  if (value.startsWith("\\x")) return Buffer.from(value.slice(2), "hex");
  const unescaped = value.replace(/\\(\\|[0-7]{3})/g, (_, escaped: string) =>
    escaped === "\\" ? "\\" : String.fromCharCode(Number.parseInt(escaped, 8)),
  );
  return Buffer.from(unescaped, "latin1");
}

/** Infinity, which no record holds, stays a text and is found to be damaged. */
function instantOf(value: unknown): unknown {
  const parts = typeof value === "string" ? ISO.exec(value)?.groups : undefined;
  if (parts === undefined) return value;
  const number = (name: string) => Number(parts[name] ?? 0);
  const utcMs = Date.UTC(number("year") - CYCLE_YEARS, number("month") - 1, number("day"), number("hour"));
  const seconds = number("minute") * 60 + number("second");
  const offset = number("offsetHour") * 3600 + number("offsetMinute") * 60 + number("offsetSecond");
  const ms = Number((parts["fraction"] ?? "").padEnd(3, "0").slice(0, 3));
  return utcMs + CYCLE_MS + (seconds - (parts["sign"] === "-" ? -offset : offset)) * 1_000 + ms;
}

/** As JSON shows a timestamptz, whatever `DateStyle` is: local to the session's time zone, with its offset. */
const ISO = new RegExp(
  "^(?<year>\\d{4,6})-(?<month>\\d\\d)-(?<day>\\d\\d)T(?<hour>\\d\\d):(?<minute>\\d\\d):(?<second>\\d\\d)" +
    "(?:\\.(?<fraction>\\d+))?(?<sign>[+-])(?<offsetHour>\\d\\d)(?::(?<offsetMinute>\\d\\d))?(?::(?<offsetSecond>\\d\\d))?$",
);

/** The calendar repeats; a cycle earlier, local times of the last day that `Date` knows are within its range too. */
const CYCLE_YEARS = 400;
const CYCLE_MS = 146_097 * 86_400_000;
