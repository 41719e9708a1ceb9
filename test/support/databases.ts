import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { inject } from "vitest";
import { type Pgbouncer, startPgbouncer } from "./pgbouncer.ts";
import { type SqliteDriver, sqliteModule } from "./sqlite-module.ts";

const opened = new Set<"SQLite" | "PostgreSQL" | "PgBouncer">();

/** Names the databases that this test file asked for. */
export function storesOpened(): readonly string[] {
  return [...opened];
}

/** Says whether this run has a PostgreSQL: `test.skipIf(!postgresIsHere())`. In CI a run without one has failed already. */
export function postgresIsHere(): boolean {
  return inject("postgres").kind === "running";
}

/** Creates an empty database of its own on the run's server; `drop` removes it with every connection to it. */
export async function freshPostgresDatabase(): Promise<{
  readonly url: string;
  readonly drop: () => Promise<void>;
}> {
  const service = inject("postgres");
  if (service.kind === "missing") {
    throw new Error(`There is no PostgreSQL in this run (${service.reason}). Ask postgresIsHere() first.`);
  }
  opened.add("PostgreSQL");
  const name = `oncekey_${randomBytes(8).toString("hex")}`;
  await runOn(service.url, `create database ${name} template template0`);
  const url = new URL(service.url);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => dropped(service.url, name) };
}

/** Says whether this run has a PgBouncer and a PostgreSQL behind it. In CI a run without one has failed already. */
export function pgbouncerIsHere(): boolean {
  return inject("pgbouncer").kind === "installed";
}

/** Puts a PgBouncer of its own, in transaction mode, in front of a database; its clients share `poolSize` sessions. */
export function pooled({
  url,
  poolSize,
}: {
  readonly url: string;
  readonly poolSize: number;
}): Promise<Pgbouncer> {
  const service = inject("pgbouncer");
  if (service.kind === "missing") {
    throw new Error(`There is no PgBouncer in this run (${service.reason}). Ask pgbouncerIsHere() first.`);
  }
  opened.add("PgBouncer");
  return startPgbouncer({ command: service.command, url, poolSize });
}

function runOn(url: string, statement: string): Promise<void> {
  return connected(url, async (client) => void (await client.query(statement)));
}

/**
 * A pool says that it has ended before the server has closed its last session, and a session that is ended by force tells
 * its client, whom nobody listens to any more. So those that are ending get a moment; others are ended.
 */
function dropped(url: string, name: string): Promise<void> {
  return connected(url, async (client) => {
    for (let looks = 0; looks < LOOKS; looks++) {
      const sessions = await client.query("select from pg_stat_activity where datname = $1", [name]);
      if (sessions.rowCount === 0) break;
      await sleep(LOOK_MS);
    }
    await client.query(`drop database if exists ${name} with (force)`);
  });
}

const LOOKS = 20;
const LOOK_MS = 10;

async function connected(url: string, use: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await use(client);
  } finally {
    await client.end();
  }
}

/** Names a database file, not yet created, in a folder of its own; `remove` removes the folder. */
export function freshSqliteFile(): { readonly path: string; readonly remove: () => void } {
  opened.add("SQLite");
  const folder = mkdtempSync(join(tmpdir(), "oncekey-sqlite-"));
  return {
    path: join(folder, "test.db"),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The class that opens SQLite files: Node's own where this Node has it, else the same API from npm. */
export function sqliteDriver(): SqliteDriver["DatabaseSync"] {
  opened.add("SQLite");
  return sqliteModule().DatabaseSync;
}
