import { hash } from "node:crypto";
import type { Due, RecordWrite, Seen } from "../../core/record.ts";
import { recordId } from "../codec.ts";
import { type Row, TIME_COLUMNS } from "../row.ts";
import type { Patience } from "../store.ts";
import { CLAIM_COLUMNS, CLOCK, COLUMNS, inJson, NOW } from "./columns.ts";
import type { Statement } from "./connector.ts";

/** The names of what the migrations make, quoted, in the schema that the user chose. */
export interface Tables {
  readonly records: string;
  readonly attempts: string;
  /** The function that claims. */
  readonly claim: string;
  readonly audit: string;
  readonly beats: string;
  readonly migrations: string;
}

export function tablesIn(schema: string | null): Tables {
  const prefix = schema === null ? "" : `${quoted(schema)}.`;
  return {
    records: `${prefix}oncekey_records`,
    attempts: `${prefix}oncekey_attempts`,
    claim: `${prefix}oncekey_claim`,
    audit: `${prefix}oncekey_audit`,
    beats: `${prefix}oncekey_beats`,
    migrations: `${prefix}oncekey_migrations`,
  };
}

export function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}

/** Collects parameters while the text of a statement is written; each is named with its type, so that none is guessed. */
export function parameters(): {
  readonly values: readonly unknown[];
  readonly add: (value: Uint8Array | string | number | null, type: string) => string;
} {
  const values: unknown[] = [];
  return { values, add: (value, type) => `$${values.push(value)}::${type}` };
}

export type Parameters = ReturnType<typeof parameters>;

/** A length of time; exact for the next two thousand years, as a float times 1,000 is. */
export function milliseconds(ms: string): string {
  return `${ms} * interval '1 millisecond'`;
}

/**
 * Creates the record or finds the one that stands, in one trip. `made_attempt` is there when it was created; when
 * neither is there, the row was committed after the statement began, or is gone again: look in a new statement. What
 * decides is the primary key; that a standing row is looked for first only spares the insert and a number.
 */
export function insertStatement(
  { records }: Tables,
  row: Row<Due>,
  attempt: RecordWrite["attempt"],
): Statement {
  const { values, add } = parameters();
  const id = add(row.id, "bytea");
  const written = created(row, attempt, add);
  const text = `WITH ${CLOCK},
    standing AS MATERIALIZED (SELECT * FROM ${records} WHERE id = ${id}),
    made AS (
      INSERT INTO ${records} (id, ${written.map(([column]) => column).join(", ")})
      SELECT ${id}, ${written.map(([, value]) => value).join(", ")} FROM clock
      WHERE NOT EXISTS (SELECT FROM standing)
      ON CONFLICT (id) DO NOTHING RETURNING attempt)
    SELECT ${NOW}, made.attempt::text AS made_attempt, ${inJson("standing")} AS record
    FROM clock LEFT JOIN made ON true LEFT JOIN standing ON true`;
  return { text, values };
}

/** The same for the one shape that every request has: a claim that is new, by the function of the third migration. */
export function claimStatement({ claim }: Tables, row: Row<Due>, leaseMs: number): Statement {
  const { values, add } = parameters();
  const given = CLAIM_COLUMNS.map((column) => add(row[column], COLUMNS[column]));
  const text = `SELECT now, made_attempt, record FROM ${claim}(${[...given, add(leaseMs, "float8")].join(", ")})`;
  return { text, values };
}

/** How long the lease of a claim is that `claimStatement` can make; `null` for any other write. */
export function leaseOfClaim(row: Row<Due>, attempt: RecordWrite["attempt"]): number | null {
  const { state, created_at: created, claimed_at: claimed, lease_until: lease, reference } = row;
  const isNew = [created, claimed].every((due) => "inMs" in due && due.inMs === 0);
  if (state !== "in_progress" || attempt !== "next" || reference !== null || !isNew) return null;
  return lease !== null && "inMs" in lease ? lease.inMs : null;
}

/** Which version, what to put in its place, and whether to wait for a lock on it. */
export interface Replacement {
  readonly seen: Seen;
  readonly row: Row<Due>;
  readonly attempt: RecordWrite["attempt"];
  readonly patience: Patience;
}

/**
 * Puts the new version in the place of the one that was seen; no row when that one does not stand. No column of a
 * unique index is written, so that foreign keys to the record never make this wait.
 */
export function replaceStatement(
  { records }: Tables,
  { seen, row, attempt, patience }: Replacement,
): Statement {
  const { values, add } = parameters();
  const version = versionOf(seen, add);
  const unlocked = `record.id = (SELECT id FROM ${records} AS record WHERE ${version} FOR NO KEY UPDATE SKIP LOCKED)`;
  const text = `WITH ${CLOCK}
    UPDATE ${records} AS record SET ${changed(row, attempt, add)}
    FROM clock WHERE ${patience === "never" ? unlocked : version}
    RETURNING ${NOW}, record.attempt::text AS attempt`;
  return { text, values };
}

export function readStatement({ records }: Tables, id: Uint8Array): Statement {
  const text = `WITH ${CLOCK} SELECT ${NOW}, ${inJson("record")} AS record
    FROM clock LEFT JOIN ${records} AS record ON record.id = $1::bytea`;
  return { text, values: [id] };
}

/** Takes the lock that says "this identity is being claimed"; freed by the end of the transaction, never waited for. */
export function tryClaimStatement(schema: string | null, id: Uint8Array): Statement {
  const text = "SELECT pg_try_advisory_xact_lock($1::bigint)::text AS claimed";
  return { text, values: [advisoryKey("claim", schema, id)] };
}

/**
 * One of PostgreSQL's 64-bit advisory locks. A hash over what it is for, so that it meets neither those of other
 * Oncekey schemas in this database nor the small numbers that people choose for theirs.
 */
export function advisoryKey(purpose: "claim" | "migrate", schema: string | null, id: Uint8Array): string {
  const space = `oncekey ${purpose} ${JSON.stringify(schema)} `;
  return hash("sha256", Buffer.concat([Buffer.from(space), id]), "buffer")
    .readBigInt64BE()
    .toString();
}

/** The version that a compare-and-set compares, of a row named `record`. */
export function versionOf({ identity, owner, revision }: Seen, add: Parameters["add"]): string {
  return `record.id = ${add(recordId(identity), "bytea")} AND record.owner = ${add(owner, "text")}
      AND record.revision = ${add(revision, "bigint")}`;
}

/** What a new row is made of; nothing is sent for a column that holds nothing. */
export function created(
  row: Row<Due>,
  attempt: RecordWrite["attempt"],
  add: Parameters["add"],
): readonly Assignment[] {
  return [
    ...IDENTITY_COLUMNS.map((column) => assigned(row, column, add)),
    ...assignments(row, add),
    ["revision", "1"] as const,
    ...(attempt === "next" ? [] : [["attempt", add(attempt, "bigint")] as const]),
  ].filter(([, value]) => value !== NULL);
}

/** What the next version of a row named `record` sets; what it leaves `same` is not sent. */
export function changed(
  row: Row<Due>,
  attempt: RecordWrite["attempt"],
  add: Parameters["add"],
  same: ReadonlySet<string> = NONE,
): string {
  const written: readonly Assignment[] = [
    ...assignments(row, add),
    ["revision", "record.revision + 1"] as const,
    ["attempt", attempt === "next" ? "DEFAULT" : add(attempt, "bigint")] as const,
  ].filter(([column]) => !same.has(column));
  return written.map(([column, value]) => `${column} = ${value}`).join(", ");
}

const NONE: ReadonlySet<string> = new Set();

type Assignment = readonly [column: string, value: string];

const NULL = "NULL";

/** Fixed when the row is made. */
const IDENTITY_COLUMNS = ["kind", "principal", "identity_operation", "key"] as const;

const VALUE_COLUMNS = [
  ...(["operation", "effects", "state", "owner", "write_id"] as const),
  ...(["fingerprint_version", "fingerprint_salt", "fingerprint_raw", "fingerprint_canonical"] as const),
  ...(["steps", "reference", "correlation_id", "evidence", "looks", "disposition"] as const),
  ...(["answer_status", "answer_headers", "answer_body", "answer_digest"] as const),
] as const;

/** What every write sets: all of the next version but its identity and its numbers. */
function assignments(row: Row<Due>, add: Parameters["add"]): readonly Assignment[] {
  const due = (time: Due | null) => instant(time, add);
  return [
    ...VALUE_COLUMNS.map((column) => assigned(row, column, add)),
    ...TIME_COLUMNS.map((column): Assignment => [column, due(row[column])]),
    ["purge_at", due(mayBePurged(row) ? row.retain_until : null)],
    ["updated_at", "clock.now"],
  ];
}

/** Nothing is sent for a column that holds nothing: a claim leaves half of them empty. */
function assigned(
  row: Row<Due>,
  column: (typeof IDENTITY_COLUMNS | typeof VALUE_COLUMNS)[number],
  add: Parameters["add"],
): Assignment {
  const value = row[column];
  return [column, value === null ? NULL : add(value, COLUMNS[column])];
}

function instant(due: Due | null, add: Parameters["add"]): string {
  if (due === null) return NULL;
  if ("inMs" in due && due.inMs === 0) return "clock.now";
  const [start, ms] = "at" in due ? ["timestamptz 'epoch'", due.at] : ["clock.now", due.inMs];
  return `${start} + ${milliseconds(add(ms, "float8"))}`;
}

/** Neither what runs nor an unknown that somebody is to end is removed by time. */
function mayBePurged({ state, disposition }: Row<Due>): boolean {
  return state !== "in_progress" && (state !== "unknown" || disposition === "hold");
}
