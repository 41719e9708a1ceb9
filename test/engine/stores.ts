import { randomUUID } from "node:crypto";
import { Pool, type PoolClient } from "pg";
import { afterAll, beforeAll, beforeEach, describe } from "vitest";
import { memoryStore } from "../../src/stores/memory.ts";
import * as postgres from "../../src/stores/postgres/index.ts";
import * as sqlite from "../../src/stores/sqlite/index.ts";
import type { Awaitable, Settling, Store, TransactionalStore } from "../../src/stores/store.ts";
import {
  freshPostgresDatabase,
  freshSqliteFile,
  postgresIsHere,
  sqliteDriver,
} from "../support/databases.ts";

/** A store of a test's own: empty when the test begins. */
export interface Opened {
  readonly store: Store;
  /** The same records through a handle of its own, as another process has it. */
  readonly other: Store;
  readonly clear: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** A row of the user's own, in the same database as the records. */
export interface Row {
  readonly id: string;
  readonly key: string;
  readonly state: string;
}

/** The same with transactions, and with rows of the user's own. */
export interface Sql<Tx> extends Opened {
  readonly store: TransactionalStore<Tx, Settling>;
  readonly other: TransactionalStore<Tx, Settling>;
  /** Adds a row, or changes the state of the one with this id. */
  readonly put: (tx: Tx, row: Row) => Awaitable<void>;
  readonly rows: (key: string) => Promise<readonly Row[]>;
  /** Spoils every record that is kept. */
  readonly damage: () => Promise<void>;
  /** Where another process finds it. */
  readonly url: string;
}

/** Runs the same tests on memory, SQLite and PostgreSQL. */
export function onEveryStore(tests: (given: () => Opened) => void): void {
  describe("memory", () => tests(givenBy(async () => openMemory())));
  describe("SQLite", () => tests(givenBy(openSqlite)));
  describe.skipIf(!postgresIsHere())("PostgreSQL", () => tests(givenBy(openPostgres)));
}

/** Runs the same tests on the stores that have transactions. */
export function onEverySqlStore(tests: <Tx>(given: () => Sql<Tx>) => void): void {
  describe("SQLite", () => tests(givenBy(openSqlite)));
  describe.skipIf(!postgresIsHere())("PostgreSQL", () => tests(givenBy(openPostgres)));
}

/** A row that no other has. */
export function rowOf(key: string, state = "done"): Row {
  return { id: randomUUID(), key, state };
}

function givenBy<O extends Opened>(open: () => Promise<O>): () => O {
  let opened: O | undefined;
  beforeAll(async () => {
    opened = await open();
  });
  beforeEach(() => opened?.clear());
  afterAll(() => opened?.close());
  return () => {
    if (opened === undefined) throw new Error("The store is open only while a test runs.");
    return opened;
  };
}

function openMemory(): Opened {
  const store = memoryStore();
  return { store, other: store, clear: async () => {}, close: () => store.close() };
}

const TABLE = "CREATE TABLE effects (id TEXT PRIMARY KEY, key TEXT NOT NULL, state TEXT NOT NULL)";
const CLEARED = ["DELETE FROM oncekey_records", "DELETE FROM effects"];

export async function openSqlite(): Promise<Sql<sqlite.SqliteConnection>> {
  const { path, remove } = freshSqliteFile();
  const connect = () => new (sqliteDriver())(path);
  const connection = connect();
  await sqlite.migrate(connection);
  connection.exec(TABLE);
  connection.exec("PRAGMA busy_timeout = 5000");
  const [store, other] = [sqlite.sqliteStore({ connect }), sqlite.sqliteStore({ connect })];
  const upsert =
    "INSERT INTO effects (id, key, state) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state";
  return {
    ...{ store, other, url: `sqlite:${path}` },
    put: (tx, { id, key, state }) => void tx.prepare(upsert).run(id, key, state),
    rows: async (key) =>
      connection
        .prepare("SELECT id, key, state FROM effects WHERE key = ? ORDER BY id")
        .all(key)
        .map(rowFrom),
    damage: async () => void connection.exec("UPDATE oncekey_records SET steps = x'00'"),
    clear: async () => {
      for (const statement of CLEARED) connection.exec(statement);
    },
    close: async () => {
      for (const handle of [store, other]) await handle.close();
      connection.close();
      remove();
    },
  };
}

export async function openPostgres(): Promise<Sql<PoolClient>> {
  const { url, drop } = await freshPostgresDatabase();
  const pools = [0, 1, 2].map(() => new Pool({ connectionString: url, max: 12 }));
  // The drop at the end cuts what a pool is still closing.
  for (const pool of pools) pool.on("error", () => {});
  const [first, second, admin] = pools;
  if (first === undefined || second === undefined || admin === undefined) throw new Error("Three were made.");
  await postgres.migrate(admin);
  await admin.query(TABLE);
  const [store, other] = [first, second].map((pool) => postgres.postgresStore<PoolClient>({ pool }));
  if (store === undefined || other === undefined) throw new Error("Two were made.");
  const upsert =
    "INSERT INTO effects (id, key, state) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET state = excluded.state";
  return {
    ...{ store, other, url },
    put: async (tx, { id, key, state }) => void (await tx.query(upsert, [id, key, state])),
    rows: async (key) =>
      (await admin.query("SELECT id, key, state FROM effects WHERE key = $1 ORDER BY id", [key])).rows.map(
        rowFrom,
      ),
    damage: async () => void (await admin.query("UPDATE oncekey_records SET tail = '['")),
    clear: async () => {
      for (const statement of CLEARED) await admin.query(statement);
    },
    close: async () => {
      for (const pool of pools) await pool.end();
      await drop();
    },
  };
}

function rowFrom(value: unknown): Row {
  if (
    typeof value !== "object" ||
    value === null ||
    !("id" in value) ||
    !("key" in value) ||
    !("state" in value)
  )
    throw new Error("A row of effects looks otherwise.");
  return { id: String(value.id), key: String(value.key), state: String(value.state) };
}
