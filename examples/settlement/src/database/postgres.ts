import { migrate, type PostgresClient, postgresStore } from "oncekey/postgres";
import { Pool, type PoolClient } from "pg";
import type { Database } from "./database.ts";
import { SCHEMA, STEPS_TABLE } from "./schema.ts";
import { drive, type Row, rendered, type Statement } from "./statement.ts";

/** Everything in one PostgreSQL database, which must exist. */
export async function postgresDatabase({
  url,
  storeTimeoutMs,
}: {
  readonly url: string;
  readonly storeTimeoutMs: number;
}): Promise<Database<PostgresClient, "async">> {
  const connection = { connectionString: url, connectionTimeoutMillis: storeTimeoutMs };
  // Two pools, so that no look of a caller ever keeps an outcome from being kept.
  const writing = new Pool({ ...connection, max: WRITERS });
  const reading = new Pool({ ...connection, max: READERS });
  // A connection that ends while it is idle has left the pool already; without a listener it would end the process.
  for (const pool of [writing, reading]) pool.on("error", () => {});
  const store = postgresStore({ pool: writing });
  return {
    description: `PostgreSQL, ${placeOf(url)}`,
    store,
    migrate: async () => {
      await migrate(writing);
      await migrateOurs(writing);
    },
    within: (tx, unit) => drive(unit, (statement) => rowsOf(tx, statement)),
    read: (unit) => drive(unit, (statement) => rowsOf(reading, statement)),
    close: async () => {
      await store.close();
      await Promise.all([writing.end(), reading.end()]);
    },
  };
}

const WRITERS = 10;
const READERS = 5;

/** Any number that nobody else takes: whoever holds it is the one that migrates. */
const MIGRATION_LOCK = 7_305_118_246;

async function migrateOurs(pool: Pool): Promise<void> {
  const client = await pool.connect();
  client.on("error", () => {}); // the statement under way fails with it
  try {
    await client.query("BEGIN");
    await migrateInside(client);
    await client.query("COMMIT");
    client.release();
  } catch (error) {
    // The connection goes, and what it had begun goes with it.
    client.release(true);
    throw error;
  }
}

async function migrateInside(client: PoolClient): Promise<void> {
  await client.query("SELECT pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
  await client.query(STEPS_TABLE);
  const { rows } = await client.query<{ readonly version: number }>("SELECT version FROM settlement_schema");
  const versions = new Set(rows.map(({ version }) => version));
  for (const step of SCHEMA) {
    if (versions.has(step.version)) continue;
    await client.query(step.postgres);
    await client.query("INSERT INTO settlement_schema (version) VALUES ($1)", [step.version]);
  }
}

async function rowsOf(client: Pick<PostgresClient, "query">, statement: Statement): Promise<readonly Row[]> {
  const { text, values } = rendered(statement, (number) => `$${number}`);
  // Not FOR UPDATE, which would also stop those who only refer to the row.
  const result = await client.query(statement.locks ? `${text} FOR NO KEY UPDATE` : text, [...values]);
  return result.rows;
}

function placeOf(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`;
}
