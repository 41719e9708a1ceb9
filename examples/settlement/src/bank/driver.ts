import { isBuiltin } from "node:module";

/** Opens a SQLite file whose every commit is on disk before it is acknowledged. */
export async function openDatabase(path: string): Promise<Database> {
  const { DatabaseSync } = await loadDriver();
  const database = new DatabaseSync(path);
  // The order matters: some builds of SQLite fall back to synchronous=NORMAL when they switch to WAL.
  database.exec("PRAGMA busy_timeout = 1000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;");
  return database;
}

/** The part of `node:sqlite` that the bank needs. */
export interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

/** A prepared statement; its parameters are named. */
export interface Statement {
  run(values: Readonly<Record<string, string>>): { readonly changes: number | bigint };
  get(values: Readonly<Record<string, string>>): Row | undefined;
  all(): readonly Row[];
}

/** One row as the driver hands it over, not yet trusted. */
export type Row = Readonly<Record<string, unknown>>;

interface Driver {
  readonly DatabaseSync: new (path: string) => Database;
}

// `isBuiltin` is true only where the module needs no flag (22.13 and later). Its name is a variable
// because the type definitions of Node 20 do not know it.
async function loadDriver(): Promise<Driver> {
  const builtIn: string = "node:sqlite";
  return isBuiltin(builtIn) ? await import(builtIn) : await import("@photostructure/sqlite");
}
