import { Pool } from "pg";
import { migrate as migratePostgres, postgresStore } from "../../../src/stores/postgres/index.ts";
import { migrate as migrateSqlite, sqliteStore } from "../../../src/stores/sqlite/index.ts";
import type { Store } from "../../../src/stores/store.ts";
import { freshSqliteFile, sqliteDriver } from "../../support/databases.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../support/embedded-postgres.ts";
import type { DatabaseKind } from "../support/effects-database.ts";
import type { Account, Effect } from "./history/history.ts";
import { ACCOUNTS } from "./wanted.ts";

/** A database of a run's own, with the tables of its domain, none of which keeps a second effect of a key out. */
export interface Place {
  readonly url: string;
  /** To look at records, on connections that no fault touches but the database's own. */
  readonly store: Store;
  readonly found: () => Promise<{
    readonly effects: readonly Effect[];
    readonly accounts: readonly Account[];
  }>;
  /** Ends the server in one of three ways and starts it again; `null` where there is no server. */
  readonly restart: EmbeddedPostgres["restart"] | null;
  readonly remove: () => Promise<void>;
}

export async function openPlace(kind: DatabaseKind): Promise<Place> {
  return kind === "SQLite" ? await inSqlite() : await inPostgres();
}

type Row = Readonly<Record<string, unknown>>;
type Query = (text: string) => Promise<readonly Row[]>;

const OPENING = 1_000_000;

const WHOSE = "principal text NOT NULL, key text NOT NULL, attempt bigint NOT NULL";

function tables(id: string): readonly string[] {
  return [
    "CREATE TABLE accounts (id integer PRIMARY KEY, balance bigint NOT NULL)",
    `CREATE TABLE transfers (id ${id}, ${WHOSE}, payer integer NOT NULL, payee integer NOT NULL, amount bigint NOT NULL)`,
    `CREATE TABLE payments (id text PRIMARY KEY, ${WHOSE}, state text NOT NULL)`,
    `CREATE TABLE settlements (id ${id}, ${WHOSE}, payment text NOT NULL, external text NOT NULL)`,
    ...Array.from(
      { length: ACCOUNTS },
      (_, account) => `INSERT INTO accounts VALUES (${account}, ${OPENING})`,
    ),
  ];
}

async function inSqlite(): Promise<Place> {
  const { path, remove } = freshSqliteFile();
  const connect = () => new (sqliteDriver())(path);
  const own = connect();
  await migrateSqlite(own);
  for (const text of tables("integer PRIMARY KEY")) own.exec(text);
  const store = sqliteStore({ connect, storeTimeout: 10_000 });
  return {
    ...{ url: `sqlite:${path}`, store, restart: null },
    found: () => foundBy(async (text) => own.prepare(text).all().filter(isRow)),
    remove: async () => {
      await store.close();
      own.close();
      remove();
    },
  };
}

async function inPostgres(): Promise<Place> {
  const server = await startEmbeddedPostgres();
  const pool = new Pool({ connectionString: server.url, max: 4 });
  await migratePostgres(pool);
  for (const text of tables("bigint GENERATED ALWAYS AS IDENTITY")) await pool.query(text);
  const store = postgresStore({ pool });
  return {
    ...{ url: server.url, store, restart: server.restart },
    found: () => foundBy(async (text) => (await pool.query(text)).rows),
    remove: async () => {
      await store.close();
      pool.on("error", () => {}); // the server may have a last word while it ends
      await pool.end();
      await server.stop();
    },
  };
}

async function foundBy(query: Query) {
  const transfers = await query("SELECT * FROM transfers");
  const settlements = await query("SELECT * FROM settlements");
  const accounts = await query("SELECT * FROM accounts");
  return {
    effects: [
      ...transfers.map((row) => ({
        ...whoseIn(row),
        id: `transfer ${row["id"]}`,
        attempt: Number(row["attempt"]),
        moves: [
          { account: String(row["payer"]), amount: -Number(row["amount"]) },
          { account: String(row["payee"]), amount: Number(row["amount"]) },
        ],
      })),
      ...settlements.map((row) => ({
        ...whoseIn(row),
        ...{ id: String(row["payment"]), attempt: null, moves: [] },
      })),
    ],
    accounts: accounts.map(({ id, balance }) => ({
      ...{ id: String(id), opening: OPENING, balance: Number(balance) },
    })),
  };
}

function whoseIn(row: Row) {
  return { principal: String(row["principal"]), key: String(row["key"]) };
}

function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null;
}
