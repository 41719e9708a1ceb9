import { CLAIM_COLUMNS, COLUMNS } from "./columns.ts";
import { milliseconds, type Tables } from "./sql.ts";

/** One numbered change of the schema. A released one never changes; each only adds, so that the release before runs on beside it. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: (tables: Tables) => string;
}

/** All of them, in order. The first also makes what the list of the applied ones is kept in. */
export const migrations: readonly Migration[] = [
  { version: 1, name: "records, audit and beats", sql: recordsAuditAndBeats },
  { version: 2, name: "rows are checked when they are read", sql: checksDropped },
  { version: 3, name: "one call claims or finds", sql: claimFunction },
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
    ...recordsIndexes(tables),
    auditTable(tables),
    `CREATE INDEX oncekey_audit_record ON ${tables.audit} (record_id)`,
    `CREATE TABLE ${tables.beats} (
  worker text COLLATE "C" PRIMARY KEY,
  beaten_at timestamptz NOT NULL
)`,
  ].join(";\n\n");
}

/**
 * The checks said what `row.ts` will not read; the second migration drops them.
 * `purge_at` is `retain_until` where time alone may remove the record, or later once a foreign key has kept it. The
 * table changes all the time while its indexes must stay small: it is vacuumed ten times as often as others.
 */
function recordsTable({ records, attempts }: Tables): string {
  return `CREATE TABLE ${records} (
  id bytea PRIMARY KEY CHECK (octet_length(id) = 16),
  kind text COLLATE "C" NOT NULL,
  principal text COLLATE "C" NOT NULL,
  identity_operation text COLLATE "C",
  key text COLLATE "C" NOT NULL,
  operation text COLLATE "C" NOT NULL,
  effects text COLLATE "C" NOT NULL CHECK (effects IN ('transaction', 'declared', 'none')),
  state text COLLATE "C" NOT NULL,
  attempt bigint NOT NULL DEFAULT nextval('${attempts.replaceAll("'", "''")}') CHECK (attempt > 0),
  revision bigint NOT NULL CHECK (revision > 0),
  owner text COLLATE "C" NOT NULL,
  write_id text COLLATE "C" NOT NULL,
  fingerprint_version text COLLATE "C" NOT NULL,
  fingerprint_salt bytea NOT NULL,
  fingerprint_raw bytea NOT NULL,
  fingerprint_canonical bytea NOT NULL,
  steps bytea NOT NULL,
  reference bytea,
  correlation_id text COLLATE "C",
  evidence bytea,
  looks bigint CHECK (looks >= 0),
  disposition text COLLATE "C" CHECK (disposition IN ('reconcile', 'review', 'hold')),
  answer_status integer,
  answer_headers bytea,
  answer_body bytea,
  answer_digest bytea CHECK (octet_length(answer_digest) = 32),
  created_at timestamptz NOT NULL CHECK (isfinite(created_at)),
  claimed_at timestamptz NOT NULL CHECK (isfinite(claimed_at)),
  updated_at timestamptz NOT NULL CHECK (isfinite(updated_at)),
  lease_until timestamptz CHECK (isfinite(lease_until)),
  next_look_at timestamptz CHECK (isfinite(next_look_at)),
  retain_until timestamptz CHECK (isfinite(retain_until)),
  purge_at timestamptz,
  CONSTRAINT oncekey_records_identity CHECK (
    (kind = 'http' AND identity_operation IS NULL) OR (kind = 'run' AND identity_operation IS NOT NULL)),
${stateCheck()}
) WITH (autovacuum_vacuum_scale_factor = 0.02)`;
}

/**
 * Every one of them was read and compiled anew for each statement that wrote a row, which was a third of what a claim cost
 * the server. What they kept out `row.ts` finds when it reads: a row that we cannot have written is `record_corrupt`.
 */
function checksDropped({ records }: Tables): string {
  const ofColumns = [
    ...["id", "effects", "attempt", "revision", "looks", "disposition", "answer_digest"],
    ...["created_at", "claimed_at", "updated_at", "lease_until", "next_look_at", "retain_until"],
  ].map((column) => `oncekey_records_${column}_check`);
  const names = [...ofColumns, "oncekey_records_identity", "oncekey_records_state"];
  return `ALTER TABLE ${records}\n${names.map((name) => `  DROP CONSTRAINT IF EXISTS ${name}`).join(",\n")}`;
}

/**
 * The claim as one call, whose plans a session keeps: a duplicate costs it no more than a look, a first request no more than
 * an insert. Each statement in it has a snapshot of its own; what decides is the primary key. All columns come back empty
 * where the record that stood was gone again when it was looked for.
 */
function claimFunction({ claim, records }: Tables): string {
  const columns = CLAIM_COLUMNS.join(", ");
  return `CREATE FUNCTION ${claim}(
  ${CLAIM_COLUMNS.map((column) => `p_${column} ${COLUMNS[column]}`).join(", ")}, p_lease_ms float8,
  OUT now text, OUT made_attempt text, OUT record text)
LANGUAGE plpgsql VOLATILE AS $claim$
#variable_conflict use_column
DECLARE
  at timestamptz := date_trunc('milliseconds', clock_timestamp());
  made bigint;
BEGIN
  now := to_json(at)::text;
  SELECT to_json(standing)::text INTO record FROM ${records} AS standing WHERE standing.id = p_id;
  IF FOUND THEN RETURN; END IF;
  INSERT INTO ${records}
    (${columns}, state, revision, created_at, claimed_at, updated_at, lease_until)
  VALUES (${CLAIM_COLUMNS.map((column) => `p_${column}`).join(", ")},
    'in_progress', 1, at, at, at, at + ${milliseconds("p_lease_ms")})
  ON CONFLICT (id) DO NOTHING RETURNING attempt INTO made;
  made_attempt := made::text;
  IF FOUND THEN RETURN; END IF;
  now := to_json(date_trunc('milliseconds', clock_timestamp()))::text;
  SELECT to_json(standing)::text INTO record FROM ${records} AS standing WHERE standing.id = p_id;
END $claim$`;
}

/** Each state has the columns that it needs and none of the others'. */
function stateCheck(): string {
  const doubt = "evidence, looks, disposition";
  const answer = "answer_status, answer_headers, answer_digest";
  return `  CONSTRAINT oncekey_records_state CHECK (CASE state
    WHEN 'in_progress' THEN lease_until IS NOT NULL
      AND num_nonnulls(retain_until, purge_at, next_look_at, ${doubt}, ${answer}, answer_body) = 0
    WHEN 'released' THEN retain_until IS NOT NULL
      AND num_nonnulls(lease_until, next_look_at, ${doubt}, ${answer}, answer_body) = 0
    WHEN 'unknown' THEN num_nonnulls(${doubt}) = 3
      AND num_nonnulls(lease_until, ${answer}, answer_body) = 0
      AND (disposition <> 'hold' OR retain_until IS NOT NULL)
      AND (disposition = 'hold' OR purge_at IS NULL)
    WHEN 'completed' THEN retain_until IS NOT NULL AND num_nonnulls(${answer}) = 3
      AND num_nonnulls(lease_until, next_look_at, ${doubt}) = 0
    WHEN 'failed_permanent' THEN retain_until IS NOT NULL AND num_nonnulls(${answer}) = 3
      AND num_nonnulls(lease_until, next_look_at, ${doubt}) = 0
    ELSE false END)`;
}

/** Only the primary key is unique: a write that touched another unique index would wait for foreign keys to the record. */
function recordsIndexes({ records }: Tables): readonly string[] {
  return [
    `CREATE INDEX oncekey_records_lease ON ${records} (lease_until) WHERE state = 'in_progress'`,
    `CREATE INDEX oncekey_records_look ON ${records} (next_look_at) WHERE state = 'unknown'`,
    `CREATE INDEX oncekey_records_purge ON ${records} (purge_at) WHERE purge_at IS NOT NULL`,
    // Of hashes: a principal and a key of any length fit, in a third of the space.
    `CREATE INDEX oncekey_records_key ON ${records} (hashtextextended(principal, 0), hashtextextended(key, 0))`,
    `CREATE INDEX oncekey_records_correlation ON ${records} (hashtextextended(correlation_id, 0))
  WHERE correlation_id IS NOT NULL`,
  ];
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
