/** A value that goes into a statement. */
export type SqliteValue = null | number | bigint | string | Uint8Array;

/** What the drivers' prepared statements have in common. */
export interface SqliteStatement {
  run(...parameters: SqliteValue[]): { readonly changes: number | bigint };
  get(...parameters: SqliteValue[]): unknown;
  all(...parameters: SqliteValue[]): unknown[];
}

/** What `node:sqlite`, better-sqlite3 and `@photostructure/sqlite` have in common: an open connection to one file. */
export interface SqliteConnection {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  close(): unknown;
}

/** One row, its values as the driver gave them. */
export type Fields = { readonly [column: string]: unknown };

/** Runs a statement that gives no rows; says how many it changed. */
export function run(
  connection: SqliteConnection,
  sql: string,
  parameters: readonly SqliteValue[] = [],
): number {
  return Number(prepared(connection, sql).run(...parameters).changes);
}

/** All rows of a query. */
export function rows(
  connection: SqliteConnection,
  sql: string,
  parameters: readonly SqliteValue[] = [],
): readonly Fields[] {
  return prepared(connection, sql)
    .all(...parameters)
    .filter(isFields);
}

/** The only row of a query that always has one. */
export function row(
  connection: SqliteConnection,
  sql: string,
  parameters: readonly SqliteValue[] = [],
): Fields {
  const [only] = rows(connection, sql, parameters);
  if (only === undefined) throw new TypeError(`SQLite gave no row for: ${sql}`);
  return only;
}

/** The file behind a connection; empty for a database that has none. */
export function fileOf(connection: SqliteConnection): string {
  const main = connection
    .prepare("PRAGMA database_list")
    .all()
    .filter(isFields)
    .find(({ name }) => name === "main");
  const { file } = main ?? {};
  return typeof file === "string" ? file : "";
}

/** Preparing costs more than most statements; a connection prepares each one once. */
const statements = new WeakMap<SqliteConnection, Map<string, SqliteStatement>>();

function prepared(connection: SqliteConnection, sql: string): SqliteStatement {
  const known = statements.get(connection) ?? new Map<string, SqliteStatement>();
  statements.set(connection, known);
  const statement = known.get(sql) ?? connection.prepare(sql);
  known.set(sql, statement);
  return statement;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}
