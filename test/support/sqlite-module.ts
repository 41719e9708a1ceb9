import { createRequire } from "node:module";
import type { SqliteModule } from "@photostructure/sqlite";

/** The part of `node:sqlite` that every driver of its shape has. */
export type SqliteDriver = Pick<SqliteModule, "DatabaseSync">;

/** Node's own SQLite where this Node has it, else the same API from npm. */
export function sqliteModule(): SqliteDriver {
  const fromNpm = (): SqliteModule => createRequire(import.meta.url)("@photostructure/sqlite");
  return builtinSqlite() ?? fromNpm();
}

/** Tells which SQLite that is, as `3.53.0 via @photostructure/sqlite`. */
export function sqliteVersion(): string {
  const database = new (sqliteModule().DatabaseSync)(":memory:");
  const row = database.prepare("select sqlite_version() as version").get();
  database.close();
  return `${row?.version} via ${builtinSqlite() === undefined ? "@photostructure/sqlite" : "node:sqlite"}`;
}

function builtinSqlite(): SqliteDriver | undefined {
  const module = process.getBuiltinModule("node:sqlite");
  return module !== undefined && opensDatabases(module) ? module : undefined;
}

function opensDatabases(module: object): module is SqliteDriver {
  return "DatabaseSync" in module;
}
