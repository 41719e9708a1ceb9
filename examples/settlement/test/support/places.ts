import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { onTestFinished } from "vitest";
import {
  freshPostgresDatabase,
  freshSqliteFile,
  postgresIsHere,
  sqliteDriver,
} from "../../../../test/support/databases.ts";

export type DatabaseName = "SQLite" | "PostgreSQL";

/** The databases on which the service runs; `skip` where this run has none of that kind. */
export const databases: readonly { readonly name: DatabaseName; readonly skip: boolean }[] = [
  { name: "SQLite", skip: false },
  { name: "PostgreSQL", skip: !postgresIsHere() },
];

/** A database and a folder, both new. */
export interface Place {
  readonly environment: { readonly DATABASE_URL: string; readonly DATA_DIR: string };
  /** One number off the database, behind the service's back. */
  readonly count: (query: string) => Promise<number>;
  /** Any statement, behind the service's back. */
  readonly execute: (statement: string) => Promise<void>;
  readonly remove: () => Promise<void>;
}

export async function newPlace(name: DatabaseName): Promise<Place> {
  switch (name) {
    case "SQLite":
      return sqlitePlace();
    case "PostgreSQL":
      return await postgresPlace();
  }
}

/** A place that is gone when the test is. */
export async function freshPlace(name: DatabaseName): Promise<Place> {
  const place = await newPlace(name);
  onTestFinished(place.remove);
  return place;
}

/** A folder that is gone when the test is. */
export function temporaryFolder(): string {
  const folder = newFolder();
  onTestFinished(() => remove(folder));
  return folder;
}

function sqlitePlace(): Place {
  const folder = newFolder();
  const { path, remove: removeFile } = freshSqliteFile();
  return {
    environment: { DATABASE_URL: `sqlite:${path}`, DATA_DIR: folder },
    execute: async (statement) => withSqlite(path, (database) => database.exec(statement)),
    count: async (query) => firstOf(withSqlite(path, (database) => database.prepare(query).get())),
    remove: async () => {
      removeFile();
      remove(folder);
    },
  };
}

async function postgresPlace(): Promise<Place> {
  const folder = newFolder();
  const { url, drop } = await freshPostgresDatabase();
  return {
    environment: { DATABASE_URL: url, DATA_DIR: folder },
    execute: async (statement) => void (await withPostgres(url, statement)),
    count: async (query) => firstOf((await withPostgres(url, query))[0]),
    remove: async () => {
      await drop();
      remove(folder);
    },
  };
}

function firstOf(row: object | undefined): number {
  return Number(Object.values(row ?? {})[0]);
}

function withSqlite<T>(path: string, use: (database: InstanceType<ReturnType<typeof sqliteDriver>>) => T): T {
  const database = new (sqliteDriver())(path);
  try {
    database.exec("PRAGMA busy_timeout = 2000; PRAGMA foreign_keys = ON");
    return use(database);
  } finally {
    database.close();
  }
}

async function withPostgres(url: string, statement: string): Promise<readonly object[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

function newFolder(): string {
  return mkdtempSync(join(tmpdir(), "settlement-"));
}

function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}
