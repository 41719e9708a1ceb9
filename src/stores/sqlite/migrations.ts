import type { UnitEnd } from "../store.ts";
import { row, rows, type SqliteConnection } from "./connection.ts";
import { nameOf, schemaMissing, translated } from "./faults.ts";
import { NOW } from "./records.ts";
import { immediately, prepareConnection } from "./session.ts";
import { turns } from "./turns.ts";

/** One step of the schema; a step that was released is never changed again. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

/** Every step that there is, in the order in which they are applied. */
export const migrations: readonly Migration[] = [
  {
    version: 1,
    name: "records",
    sql: `
CREATE TABLE oncekey_records (
  id BLOB NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  principal TEXT NOT NULL,
  identity_operation TEXT,
  key TEXT NOT NULL,
  operation TEXT NOT NULL,
  effects TEXT NOT NULL,
  state TEXT NOT NULL,
  owner TEXT NOT NULL,
  write_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  claimed_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  lease_until INTEGER,
  next_look_at INTEGER,
  retain_until INTEGER,
  looks INTEGER,
  disposition TEXT,
  correlation_id TEXT,
  fingerprint_version TEXT NOT NULL,
  fingerprint_salt BLOB NOT NULL,
  fingerprint_raw BLOB NOT NULL,
  fingerprint_canonical BLOB NOT NULL,
  steps BLOB NOT NULL,
  reference BLOB,
  evidence BLOB,
  answer_status INTEGER,
  answer_headers BLOB,
  answer_digest BLOB,
  answer_body BLOB
) STRICT;

CREATE INDEX oncekey_stale ON oncekey_records (lease_until) WHERE state = 'in_progress';
CREATE INDEX oncekey_looks ON oncekey_records (next_look_at) WHERE state = 'unknown' AND disposition = 'reconcile';
CREATE INDEX oncekey_ended ON oncekey_records (retain_until)
  WHERE state <> 'in_progress' AND (state <> 'unknown' OR disposition = 'hold');
CREATE INDEX oncekey_changes ON oncekey_records (updated_at, id, state, disposition, claimed_at);
CREATE INDEX oncekey_principals ON oncekey_records (principal, key);
CREATE INDEX oncekey_keys ON oncekey_records (key);
CREATE INDEX oncekey_correlations ON oncekey_records (correlation_id) WHERE correlation_id IS NOT NULL;

CREATE TABLE oncekey_counter (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), last INTEGER NOT NULL) STRICT;
INSERT INTO oncekey_counter (only_row, last) VALUES (1, 0);

CREATE TABLE oncekey_audit (
  number INTEGER PRIMARY KEY,
  record_id BLOB NOT NULL,
  kind TEXT NOT NULL,
  principal TEXT NOT NULL,
  identity_operation TEXT,
  key TEXT NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  reason TEXT NOT NULL,
  state_before TEXT,
  state_after TEXT,
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX oncekey_audit_records ON oncekey_audit (record_id);

CREATE TABLE oncekey_beats (worker TEXT NOT NULL PRIMARY KEY, beaten_at INTEGER NOT NULL) STRICT;
`,
  },
  {
    version: 2,
    name: "tombstones",
    sql: `
ALTER TABLE oncekey_records ADD COLUMN tombstone_ms INTEGER;
CREATE INDEX oncekey_tombstones ON oncekey_records (state, tombstone_ms, answer_digest)
  WHERE tombstone_ms IS NOT NULL AND answer_digest IS NULL AND state IN ('completed', 'failed_permanent');
`,
  },
];

/**
 * Applies the steps that are missing, each in one transaction; several processes may do so at once. Hands back those
 * that this call applied. It is yours to call: a store never does.
 */
export async function migrate(
  connection: SqliteConnection,
  { lockTimeoutMs = 30_000, random = Math.random }: MigrateOptions = {},
): Promise<readonly Migration[]> {
  const { take } = turns({ timeoutMs: lockTimeoutMs, random });
  const applied: Migration[] = [];
  try {
    await take(() => prepareConnection(connection));
    for (const migration of migrations) {
      if (await take(() => applyOne(connection, migration))) applied.push(migration);
    }
  } catch (error) {
    throw translated(error, connection);
  }
  return applied;
}

export interface MigrateOptions {
  /** How long others, who may be migrating too, are waited for. */
  readonly lockTimeoutMs?: number;
  /** A fraction of one, for the jitter between tries. */
  readonly random?: () => number;
}

/** The SQL of every step, as `migrate` would run it on a database without tables; runs nothing. */
export function printMigrations(): string {
  const steps = migrations.map((migration) => `BEGIN IMMEDIATE;\n${scriptOf(migration)}COMMIT;\n`);
  return [LEDGER, ...steps].join("\n");
}

/** Throws what to do where the tables are missing or too old; later ones only add, so that releases run side by side. */
export function checkSchema(connection: SqliteConnection): void {
  const file = nameOf(connection);
  const ledgers = rows(
    connection,
    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'oncekey_migrations'",
  );
  if (ledgers.length === 0) throw schemaMissing(file);
  const { version } = row(connection, "SELECT max(version) AS version FROM oncekey_migrations");
  if (Number(version) < KNOWN) throw schemaMissing(file);
}

const KNOWN = Math.max(...migrations.map(({ version }) => version));

const LEDGER = `CREATE TABLE IF NOT EXISTS oncekey_migrations (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at INTEGER NOT NULL
) STRICT;
`;

function applyOne(connection: SqliteConnection, migration: Migration): boolean {
  const apply = (): UnitEnd<boolean> => {
    connection.exec(LEDGER);
    const versions = rows(connection, "SELECT version FROM oncekey_migrations").map(({ version }) =>
      Number(version),
    );
    if (versions.includes(migration.version)) return { kind: "rollback", value: false };
    connection.exec(scriptOf(migration));
    return { kind: "commit", value: true };
  };
  return immediately(connection, apply, () => {});
}

function scriptOf({ version, name, sql }: Migration): string {
  const entry = `INSERT INTO oncekey_migrations (version, name, applied_at) VALUES (${version}, '${name}', ${NOW});`;
  return `${sql.trim()}\n${entry}\n`;
}
