import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { migrate, type SqliteConnection, sqliteStore } from "oncekey/sqlite";
import type { Database } from "./database.ts";
import { SCHEMA, STEPS_TABLE } from "./schema.ts";
import { loadSqlite } from "./sqlite-driver.ts";
import { driveNow, type Row, rendered, type Statement } from "./statement.ts";

/** Everything in one SQLite file, which is made where it is missing. */
export async function sqliteDatabase({
  path,
  storeTimeoutMs,
}: {
  readonly path: string;
  readonly storeTimeoutMs: number;
}): Promise<Database<SqliteConnection, "sync">> {
  const connectTo = await loadSqlite();
  mkdirSync(dirname(path), { recursive: true });
  const connect = () => connectTo(path);
  let reader: SqliteConnection | null = null;
  const reading = () => {
    reader ??= opened(connect());
    return reader;
  };
  const store = sqliteStore({ connect, storeTimeout: storeTimeoutMs });
  return {
    description: `SQLite, ${path}`,
    store,
    migrate: () => migrateAll(connect()),
    within: (tx, unit) => driveNow(unit, (statement) => rowsOf(tx, statement)),
    read: async (unit) => driveNow(unit, (statement) => rowsOf(reading(), statement)),
    close: async () => {
      await store.close();
      reader?.close();
    },
  };
}

/** Readers of a file that is written ahead wait for nobody, except for a moment after a crash. */
function opened(connection: SqliteConnection): SqliteConnection {
  connection.exec("PRAGMA busy_timeout = 100");
  return connection;
}

async function migrateAll(connection: SqliteConnection): Promise<void> {
  try {
    await migrate(connection);
    // Only while starting may a wait for another process stop this one.
    connection.exec("PRAGMA busy_timeout = 30000");
    connection.exec("BEGIN IMMEDIATE");
    connection.exec(STEPS_TABLE);
    const applied = connection.prepare("SELECT version FROM settlement_schema").all().filter(isRow);
    const versions = new Set(applied.map(({ version }) => Number(version)));
    for (const step of SCHEMA) {
      if (versions.has(step.version)) continue;
      connection.exec(step.sqlite);
      connection.prepare("INSERT INTO settlement_schema (version) VALUES (?)").run(step.version);
    }
    connection.exec("COMMIT");
  } finally {
    connection.close();
  }
}

/** A transaction has the whole file to itself, so that a lock on rows adds nothing. */
function rowsOf(connection: SqliteConnection, statement: Statement): readonly Row[] {
  const { text, values } = rendered(statement, () => "?");
  return connection
    .prepare(text)
    .all(...values)
    .filter(isRow);
}

function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null;
}
