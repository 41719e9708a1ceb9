import { Pool } from "pg";
import type { RecordState } from "../../../src/core/record.ts";
import { migrate as migratePostgres, postgresStore } from "../../../src/stores/postgres/index.ts";
import { migrate as migrateSqlite, sqliteStore } from "../../../src/stores/sqlite/index.ts";
import type { Store } from "../../../src/stores/store.ts";
import { freshPostgresDatabase, freshSqliteFile, sqliteDriver } from "../../support/databases.ts";
import type { Effect, Found } from "./ledger.ts";

/** A database with the store's tables and one for effects, which has no unique column: a second effect is another row. */
export interface EffectsDatabase {
  readonly url: string;
  /** What stands there, of these keys and of others. */
  readonly found: (keys: readonly string[]) => Promise<Found>;
  readonly remove: () => Promise<void>;
}

export type DatabaseKind = "SQLite" | "PostgreSQL";

const COLUMNS = "key text NOT NULL, attempt integer NOT NULL, note text NOT NULL";
const SELECT = "SELECT CAST(id AS text) AS id, key, attempt, note FROM effects";

export function freshEffectsDatabase(kind: DatabaseKind): Promise<EffectsDatabase> {
  return kind === "SQLite" ? inSqlite() : inPostgres();
}

async function inSqlite(): Promise<EffectsDatabase> {
  const { path, remove } = freshSqliteFile();
  const connect = () => new (sqliteDriver())(path);
  const own = connect();
  await migrateSqlite(own);
  own.exec(`CREATE TABLE effects (id integer PRIMARY KEY, ${COLUMNS})`);
  const store = sqliteStore({ connect });
  return {
    url: `sqlite:${path}`,
    found: (keys) => found(store, keys, own.prepare(SELECT).all()),
    remove: async () => {
      await store.close();
      own.close();
      remove();
    },
  };
}

async function inPostgres(): Promise<EffectsDatabase> {
  const { url, drop } = await freshPostgresDatabase();
  const pool = new Pool({ connectionString: url, max: 2 });
  await migratePostgres(pool);
  await pool.query(`CREATE TABLE effects (id bigint GENERATED ALWAYS AS IDENTITY, ${COLUMNS})`);
  const store = postgresStore({ pool });
  return {
    url,
    found: async (keys) => found(store, keys, (await pool.query(SELECT)).rows),
    remove: async () => {
      await store.close();
      pool.on("error", () => {}); // the server may have a last word while its database is dropped
      await pool.end();
      await drop();
    },
  };
}

async function found(store: Store, keys: readonly string[], rows: readonly unknown[]): Promise<Found> {
  const states = new Map<string, RecordState | "absent">();
  for (const key of keys) {
    const { record } = await store.read({ kind: "http", principal: "alice", key });
    states.set(key, record?.state ?? "absent");
  }
  return { effects: rows.filter(isEffect), states };
}

function isEffect(row: unknown): row is Effect {
  return typeof row === "object" && row !== null && "id" in row && "key" in row && "note" in row;
}
