import { ConfigurationError, OncekeyError } from "../../errors.ts";
import type { UnitBounds } from "../store.ts";
import { readOnly, schemaMissing } from "./classify.ts";
import type { PooledClient, PostgresClient, PostgresPool, PostgresQuery } from "./client.ts";
import type { Ask, Connector, RawRow, Statement } from "./connector.ts";
import { type Migration, migrations, migrationsTable } from "./migrations.ts";
import { pgConnector } from "./pg.ts";
import { postgresJsConnector } from "./postgres-js.ts";
import type { PostgresJsSql } from "./postgres-js-pool.ts";
import { transact } from "./session.ts";
import { advisoryKey } from "./sql.ts";
import { quoted, type Tables, tablesIn } from "./tables.ts";
import { only } from "./verbs.ts";

export interface SchemaOptions {
  /** Where the tables are; without it wherever the session's `search_path` leads. */
  readonly schema?: string | undefined;
}

/**
 * Applies the migrations that are missing, each in a transaction of its own, and hands back those that this call
 * applied. Any number of processes may do so at once. A client must not be inside a transaction.
 */
export async function migrate(
  connection: PostgresPool | PostgresClient | PostgresJsSql,
  { schema }: SchemaOptions = {},
): Promise<readonly Migration[]> {
  const name = schemaName(schema);
  if ("reserve" in connection) return await migrateOn(postgresJsConnector(connection, name));
  return await migrateOn(pgConnector(isPool(connection) ? connection : poolOf(connection), name));
}

async function migrateOn<Tx>(connector: Connector<Tx>): Promise<readonly Migration[]> {
  const applied: Migration[] = [];
  try {
    for (const migration of migrations) {
      if (await apply(connector, migration)) applied.push(migration);
    }
  } finally {
    connector.close();
  }
  return applied;
}

/** The SQL of all migrations as a script, for people who run such things themselves. */
export function printMigrations({ schema }: SchemaOptions = {}): string {
  const name = schemaName(schema);
  const tables = tablesIn(name);
  const intoSchema = name === null ? [] : [`CREATE SCHEMA IF NOT EXISTS ${quoted(name)};`];
  const scripts = migrations.map((migration) =>
    [
      `-- ${migration.version}: ${migration.name}`,
      "BEGIN;",
      `SELECT pg_advisory_xact_lock(${lockKey(name)});`,
      ...intoSchema,
      `${migrationsTable(tables)};`,
      `${migration.sql(tables)};`,
      `INSERT INTO ${tables.migrations} (version, name) VALUES (${migration.version}, '${migration.name}');`,
      "COMMIT;",
    ].join("\n"),
  );
  return `${scripts.join("\n\n")}\n`;
}

/** Throws what to do unless the server may be written to and has the schema of this release, or of a later one. */
export function check<Tx>(connector: Connector<Tx>, tables: Tables): Promise<void> {
  return transact(connector, { ...PATIENT, longestMs: LONGEST_CHECK_MS }, async (tx) => {
    const ask = connector.inside(tx);
    const facts = only(await ask({ text: SERVER_FACTS, values: [] }));
    if (facts["recovering"] === "true") throw readOnly("is a replica");
    if (facts["read_only"] === "on")
      throw readOnly("makes every transaction read-only (default_transaction_read_only)");
    const applied = await ask(appliedStatement(tables));
    refuseStrangers(applied, tables);
    const found = new Set(applied.map(versionOf));
    const missing = migrations.filter(({ version }) => !found.has(version));
    if (missing.length > 0) {
      const names = missing.map(({ version, name }) => `${version} (${name})`).join(", ");
      throw schemaMissing(`migration ${names} is not applied.`, {
        client: connector.clientOf(tx),
        schema: connector.schema,
      });
    }
    return { kind: "rollback", value: undefined };
  });
}

/** The name of a schema as the statements can quote it. */
export function schemaName(schema: string | undefined): string | null {
  if (schema === undefined) return null;
  if (/^[^\0'"\\]+$/.test(schema) && !/\$\d+::|\$claim\$/.test(schema)) return schema;
  throw new ConfigurationError(
    "schema",
    `must be a name without quotes, backslashes or NUL, and not what stands for a parameter of ours ($1::, $claim$); got ${JSON.stringify(schema)}`,
  );
}

/** Long enough for any pause between two statements of a migration. */
const PATIENT: UnitBounds = { idleMs: 60_000 };

/** Whoever asks whether the server is there has an answer by then, and the connection is not kept. */
const LONGEST_CHECK_MS = 10_000;

const SERVER_FACTS = `SELECT pg_is_in_recovery()::text AS recovering,
  current_setting('transaction_read_only') AS read_only`;

const MIGRATION_FACTS = `SELECT getdatabaseencoding()::text AS encoding,
  (to_regnamespace($1::text) IS NOT NULL)::text AS has_schema,
  (to_regclass($2::text) IS NOT NULL)::text AS has_table`;

function apply<Tx>(connector: Connector<Tx>, migration: Migration): Promise<boolean> {
  const { schema } = connector;
  const tables = tablesIn(schema);
  return transact(connector, PATIENT, async (tx) => {
    const ask = connector.inside(tx);
    await ask({ text: "SELECT pg_advisory_xact_lock($1::bigint)::text", values: [lockKey(schema)] });
    await prepare(ask, schema, tables);
    const before = await ask(appliedStatement(tables));
    refuseStrangers(before, tables);
    if (before.some((raw) => versionOf(raw) === migration.version)) return { kind: "rollback", value: false };
    await ask({ text: migration.sql(tables), values: [] });
    const remember = `INSERT INTO ${tables.migrations} (version, name) VALUES ($1::integer, $2::text)`;
    await ask({ text: remember, values: [migration.version, migration.name] });
    return { kind: "commit", value: true };
  });
}

/** Makes what the first migration needs; asks before it makes, since making needs rights that looking does not. */
async function prepare(ask: Ask, schema: string | null, tables: Tables): Promise<void> {
  const quotedSchema = schema === null ? null : quoted(schema);
  const facts = only(await ask({ text: MIGRATION_FACTS, values: [quotedSchema, tables.migrations] }));
  if (facts["encoding"] !== "UTF8") {
    const found = String(facts["encoding"]);
    throw new ConfigurationError(
      "database",
      `has the encoding ${found}, which cannot hold every key; create one with ENCODING 'UTF8' TEMPLATE template0`,
    );
  }
  if (quotedSchema !== null && facts["has_schema"] !== "true") {
    await ask({ text: `CREATE SCHEMA ${quotedSchema}`, values: [] });
  }
  if (facts["has_table"] !== "true") await ask({ text: migrationsTable(tables), values: [] });
}

function appliedStatement(tables: Tables): Statement {
  return { text: `SELECT version::text, name FROM ${tables.migrations}`, values: [] };
}

/** Tables of versions before the first release hold rows that this one cannot read, under the same name. */
function refuseStrangers(applied: readonly RawRow[], { migrations: table, ...tables }: Tables): void {
  const stranger = applied.find((raw) =>
    migrations.some(({ version, name }) => version === versionOf(raw) && name !== raw["name"]),
  );
  if (stranger === undefined) return;
  const { records, audit, beats } = tables;
  throw new OncekeyError(
    "schema_missing",
    `Oncekey's tables were made before its first release: migration ${versionOf(stranger)} is "${stranger["name"]}", and ` +
      "what they hold cannot be read by this version. Once nothing of it is needed any more, run: " +
      `DROP TABLE ${[records, audit, beats, table].join(", ")} CASCADE; DROP FUNCTION IF EXISTS ${tables.claim}; then: oncekey migrate.`,
  );
}

function lockKey(schema: string | null): string {
  return advisoryKey("migrate", schema, new Uint8Array());
}

function versionOf(raw: Readonly<Record<string, unknown>>): number {
  return Number(raw["version"]);
}

function isPool(connection: PostgresPool | PostgresClient): connection is PostgresPool {
  return "totalCount" in connection;
}

/** A pool of the one client that its owner lends: never released, its errors are its owner's. */
function poolOf(client: PostgresClient): PostgresPool {
  const nothing = () => {};
  const query = (query: PostgresQuery | string, values?: unknown[]) =>
    typeof query === "string" ? client.query(query, values) : client.query(query);
  const { host, port, user, database } = client;
  const lent: PostgresClient & PooledClient = {
    ...{ host, port, user, database, query },
    ...{ release: nothing, on: nothing, off: nothing },
  };
  return { totalCount: 1, connect: async () => lent, on: nothing, off: nothing };
}
