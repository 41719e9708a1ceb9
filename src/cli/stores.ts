import { existsSync } from "node:fs";
import * as postgres from "../stores/postgres/index.ts";
import * as sqlite from "../stores/sqlite/index.ts";
import type { Store } from "../stores/store.ts";

/** A database as people name it on the command line. */
export type StoreUrl =
  | { readonly kind: "postgres"; readonly url: string; readonly schema: string | undefined }
  | { readonly kind: "sqlite"; readonly path: string };

/** A store, and what frees what was opened for it. */
export interface OpenedStore {
  readonly store: Store;
  readonly close: () => Promise<void>;
}

/** What a command does with the schema of a database. */
export interface OpenedSchema {
  readonly migrate: () => Promise<readonly Applied[]>;
  readonly close: () => Promise<void>;
}

export interface Applied {
  readonly version: number;
  readonly name: string;
}

/** Reads a URL; says what is wrong with one that leads nowhere. */
export function readStoreUrl(
  url: string,
  schema: string | undefined,
): StoreUrl | { readonly kind: "bad"; readonly reason: string } {
  const [, scheme = "", rest = ""] = /^([a-z][\w+.-]*):(.*)$/is.exec(url) ?? [];
  switch (scheme.toLowerCase()) {
    case "postgres":
    case "postgresql":
      return { kind: "postgres", url, schema };
    case "sqlite":
      return readSqliteUrl(rest, schema);
    case "mysql":
    case "mariadb":
      return { kind: "bad", reason: `${scheme}:// is not built yet. Use ${SCHEMES}.` };
    case "":
      return { kind: "bad", reason: `The database is named by a URL: ${SCHEMES}.` };
  }
  return { kind: "bad", reason: `There is no store for ${scheme}:. Use ${SCHEMES}.` };
}

/** The SQL of all migrations; needs neither the database nor its driver. */
export function printMigrations(url: StoreUrl): string {
  switch (url.kind) {
    case "postgres":
      return postgres.printMigrations({ schema: url.schema });
    case "sqlite":
      return sqlite.printMigrations();
  }
}

/** Loads the driver and connects. */
export async function openSchema(url: StoreUrl): Promise<OpenedSchema> {
  switch (url.kind) {
    case "postgres": {
      const { schema } = url;
      const pool = await openPostgres(url.url, 1);
      return { migrate: () => postgres.migrate(pool, { schema }), close: () => pool.end() };
    }
    case "sqlite": {
      const connection = (await sqliteDriver())(url.path);
      return { migrate: () => sqlite.migrate(connection), close: async () => void connection.close() };
    }
  }
}

/** The same for the records. */
export async function openStore(url: StoreUrl): Promise<OpenedStore> {
  switch (url.kind) {
    case "postgres": {
      const pool = await openPostgres(url.url, CONNECTIONS);
      const schema = url.schema === undefined ? {} : { schema: url.schema };
      return { store: postgres.postgresStore({ pool, ...schema }), close: () => pool.end() };
    }
    case "sqlite": {
      if (!existsSync(url.path))
        throw new Error(`There is no file ${url.path}. Run: oncekey migrate sqlite:${url.path}`);
      const driver = await sqliteDriver();
      const store = sqlite.sqliteStore({ connect: () => driver(url.path) });
      return { store, close: () => store.close() };
    }
  }
}

/** Enough for three workers, and few enough for a server that many look after. */
const CONNECTIONS = 4;

const SCHEMES = "postgres://user@host:5432/database or sqlite:path";

/** Long enough for a server that is far away, short enough for a person who waits. */
const CONNECT_TIMEOUT_MS = 10_000;

function readSqliteUrl(rest: string, schema: string | undefined): ReturnType<typeof readStoreUrl> {
  const path = rest.replace(/^\/\//, "");
  if (path === "") return { kind: "bad", reason: "The path of the file is missing: sqlite:path." };
  if (schema !== undefined) return { kind: "bad", reason: "SQLite has no schemas: leave --schema out." };
  return { kind: "sqlite", path };
}

async function openPostgres(url: string, max: number) {
  const driver = await whereInstalled(() => import("pg"));
  if (driver === null) throw new Error("The driver for PostgreSQL is not installed. Run: npm install pg");
  const pool = new driver.default.Pool({
    connectionString: url,
    max,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  pool.on("error", () => {}); // the next statement reports it
  return pool;
}

type OpenSqlite = (path: string) => sqlite.SqliteConnection;

/** The first driver that is there: Node's own, else one of those that have its shape. */
async function sqliteDriver(): Promise<OpenSqlite> {
  const builtin = process.getBuiltinModule("node:sqlite");
  if (builtin !== undefined && hasDatabaseSync(builtin)) return (path) => new builtin.DatabaseSync(path);
  const better: BetterSqlite | null = await whereInstalled(() => import("better-sqlite3"));
  if (better !== null) return (path) => new better.default(path);
  const photostructure = await whereInstalled(() => import("@photostructure/sqlite"));
  if (photostructure !== null) return (path) => new photostructure.DatabaseSync(path);
  throw new Error(
    "No driver for SQLite is installed. Use Node 22.13 or later, or run: npm install better-sqlite3",
  );
}

interface BetterSqlite {
  readonly default: new (path: string) => sqlite.SqliteConnection;
}

interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => sqlite.SqliteConnection;
}

function hasDatabaseSync(module: object): module is NodeSqlite {
  return "DatabaseSync" in module;
}

/** The module, or `null` where it is not installed; one that is installed and broken is an error. */
async function whereInstalled<Module>(load: () => Promise<Module>): Promise<Module | null> {
  try {
    return await load();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND") return null;
    throw error;
  }
}
