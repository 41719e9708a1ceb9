import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import {
  migrate,
  type SqliteConnection,
  type SqliteStore,
  sqliteStore,
} from "../../src/stores/sqlite/index.ts";
import { freshSqliteFile, sqliteDriver } from "../support/databases.ts";
import { type StartedProcess, startProcess } from "../support/processes.ts";

/** A file of the test's own, gone when the test has ended. */
export function sqliteFile(): string {
  const { path, remove } = freshSqliteFile();
  onTestFinished(remove);
  return path;
}

export function open(path: string): SqliteConnection {
  return new (sqliteDriver())(path);
}

/** A connection that the test itself uses; closed when it has ended. */
export function openForTest(path: string): SqliteConnection {
  const connection = open(path);
  onTestFinished(() => void connection.close());
  return connection;
}

/** A migrated file and a store on it. */
export async function sqliteStoreForTest(
  options: Partial<Parameters<typeof sqliteStore>[0]> = {},
): Promise<{ readonly store: SqliteStore; readonly path: string }> {
  const path = sqliteFile();
  const connection = open(path);
  await migrate(connection);
  connection.close();
  const store = sqliteStore({ connect: () => open(path), ...options });
  onTestFinished(() => store.close());
  return { store, path };
}

/** Starts `sqlite-child.mjs`; `within` puts a command in front of it. */
export function startChild(
  args: readonly string[],
  { readyWhen, before = [] }: { readonly readyWhen?: RegExp; readonly before?: readonly string[] } = {},
): Promise<StartedProcess> {
  const script = fileURLToPath(new URL("sqlite-child.mjs", import.meta.url));
  const [command = process.execPath, ...more] = [...before, process.execPath, script, ...args];
  return startProcess({ command, args: more, ...(readyWhen && { readyWhen }) });
}

/** The last line (of JSON) that a child printed, once it has ended well. */
export async function told(child: StartedProcess): Promise<string> {
  const exit = await child.exited;
  if (exit.code !== 0)
    throw new Error(`The child ended with ${JSON.stringify(exit)}: ${child.stderr.join("\n")}`);
  return child.stdout.at(-1) ?? "";
}
