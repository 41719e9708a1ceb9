import { functionsOf } from "./functions.ts";
import type { Tables } from "./tables.ts";

/** One numbered change of the schema. A released one never changes; each only adds, so that the release before runs on beside it. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: (tables: Tables) => string;
}

/** All of them, in order. The first also makes what the list of the applied ones is kept in. */
export const migrations: readonly Migration[] = [
  { version: 1, name: "packed records, audit and beats", sql: recordsAuditAndBeats },
];

/** Where the applied ones are written down. */
export function migrationsTable({ migrations: table }: Tables): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (
  version integer PRIMARY KEY,
  name text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)`;
}

function recordsAuditAndBeats(tables: Tables): string {
  return [
    `CREATE SEQUENCE ${tables.attempts}`,
    recordsTable(tables),
    `ALTER SEQUENCE ${tables.attempts} OWNED BY ${tables.records}.attempt`,
    `CREATE INDEX oncekey_records_due ON ${tables.records} (state, due_at)`,
    auditTable(tables),
    `CREATE INDEX oncekey_audit_record ON ${tables.audit} (record_id)`,
    `CREATE TABLE ${tables.beats} (
  worker text COLLATE "C" PRIMARY KEY,
  beaten_at timestamptz NOT NULL
)`,
    ...functionsOf(tables),
  ].join(";\n\n");
}

/**
 * Times are milliseconds since 1970. Only the primary key is unique: a write that touched another unique index would wait
 * for foreign keys to the record. Without checks, which every statement that writes a row would read and compile anew: what
 * they would keep out is found when it is read. The table changes all the time while its indexes must stay small: it is
 * vacuumed ten times as often as others.
 */
function recordsTable({ records }: Tables): string {
  return `CREATE TABLE ${records} (
  id bytea PRIMARY KEY,
  owner text COLLATE "C" NOT NULL,
  attempt bigint NOT NULL,
  revision bigint NOT NULL,
  state text COLLATE "C" NOT NULL,
  due_at bigint,
  updated_at bigint NOT NULL,
  head text COLLATE "C" NOT NULL,
  tail text COLLATE "C" NOT NULL,
  body bytea
) WITH (autovacuum_vacuum_scale_factor = 0.02)`;
}

/** Without a foreign key: what was overridden is remembered longer than the record. */
function auditTable({ audit }: Tables): string {
  return `CREATE TABLE ${audit} (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  record_id bytea NOT NULL,
  kind text COLLATE "C" NOT NULL,
  principal text COLLATE "C" NOT NULL,
  identity_operation text COLLATE "C",
  key text COLLATE "C" NOT NULL,
  at timestamptz NOT NULL,
  actor text NOT NULL,
  action text NOT NULL,
  reason text NOT NULL,
  state_before text,
  state_after text
)`;
}
