import { isBuiltin } from "node:module";
import type { SqliteConnection } from "oncekey/sqlite";

/** Opens one connection to a file. */
export type Connect = (path: string) => SqliteConnection;

/** Finds a driver: Node's own SQLite where this Node has it without a flag (22.13 and later), else the one from npm. */
export async function loadSqlite(): Promise<Connect> {
  // A variable, because the type definitions of Node 20 do not know the module.
  const builtIn: string = "node:sqlite";
  const driver: Driver = isBuiltin(builtIn) ? await import(builtIn) : await import("@photostructure/sqlite");
  return (path) => new driver.DatabaseSync(path);
}

interface Driver {
  readonly DatabaseSync: new (path: string) => SqliteConnection;
}
