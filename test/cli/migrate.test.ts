import { existsSync } from "node:fs";
import { Client } from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import { printMigrations as printPostgres } from "../../src/stores/postgres/index.ts";
import { printMigrations as printSqlite } from "../../src/stores/sqlite/index.ts";
import { commandIsBuilt, oncekey } from "../support/command.ts";
import {
  freshPostgresDatabase,
  freshSqliteFile,
  postgresIsHere,
  sqliteDriver,
} from "../support/databases.ts";

beforeAll(commandIsBuilt);

describe.skipIf(!postgresIsHere())("oncekey migrate postgres://", () => {
  test("makes the tables, says which migrations it applied, and finds nothing to do the second time", async () => {
    const { url, secret, drop } = await databaseWithPassword();
    const first = await oncekey("migrate", secret);
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(first.stdout).toBe(`Applied to ${url}:\n  1  packed records, audit and beats\n`);
    expect(await oncekey("migrate", secret)).toMatchObject({
      ...{ code: 0, stdout: `Nothing to do: ${url} has every migration.\n` },
    });
    expect(await tablesOf(url)).toContain("public.oncekey_records");
    await drop();
  });

  test("--json prints one document", async () => {
    const { secret, drop } = await databaseWithPassword();
    const { code, stdout } = await oncekey("migrate", secret, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      applied: [{ version: 1, name: "packed records, audit and beats" }],
    });
    expect(JSON.parse((await oncekey("migrate", secret, "--json")).stdout)).toEqual({ applied: [] });
    await drop();
  });

  test("--print shows the SQL, with --schema too, and touches nothing", async () => {
    const { url, secret, drop } = await databaseWithPassword();
    const printed = await oncekey("migrate", secret, "--print");
    expect(printed).toEqual({ code: 0, stderr: "", stdout: printPostgres() });
    const elsewhere = await oncekey("migrate", secret, "--print", "--schema", "keys");
    expect(elsewhere.stdout).toBe(printPostgres({ schema: "keys" }));
    expect(await tablesOf(url)).toEqual([]);
    expect(await oncekey("migrate", secret, "--schema", "keys")).toMatchObject({ code: 0 });
    expect(await tablesOf(url)).toContain("keys.oncekey_records");
    await drop();
  });
});

describe("oncekey migrate sqlite:", () => {
  test("makes the tables in the file, and finds nothing to do the second time", async () => {
    const { path, remove } = freshSqliteFile();
    const first = await oncekey("migrate", `sqlite:${path}`);
    expect(first).toMatchObject({
      code: 0,
      stderr: "",
      stdout: expect.stringMatching(/^Applied to sqlite:/),
    });
    expect(await oncekey("migrate", `sqlite:${path}`)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Nothing to do/),
    });
    const connection = new (sqliteDriver())(path);
    expect(connection.prepare("select count(*) as records from oncekey_records").get()).toMatchObject({
      records: 0,
    });
    connection.close();
    remove();
  });

  test("--print shows the SQL and makes no file", async () => {
    const { path, remove } = freshSqliteFile();
    const printed = await oncekey("migrate", `sqlite:${path}`, "--print");
    expect(printed).toEqual({ code: 0, stderr: "", stdout: `${printSqlite().trimEnd()}\n` });
    expect(existsSync(path)).toBe(false);
    remove();
  });
});

describe("oncekey", () => {
  const wrong: readonly (readonly [what: string, parameters: readonly string[], said: RegExp])[] = [
    ["no URL", ["migrate"], /missing required argument 'url'/],
    ["no scheme", ["migrate", "database"], /named by a URL: postgres:/],
    ["no path", ["migrate", "sqlite:"], /path of the file is missing/],
    ["a schema in SQLite", ["migrate", "sqlite:x.db", "--schema", "y"], /no schemas/],
    ["a store that is not built yet", ["migrate", "mysql://u:s3cret@h/d"], /mysql:\/\/ is not built yet/],
    ["a scheme that nobody knows", ["migrate", "oracle://u:s3cret@h/d"], /no store for oracle:/],
    ["an unknown option", ["migrate", "sqlite:x.db", "--force"], /unknown option '--force'/],
    ["a URL in the place of a command", ["postgres://u:s3cret@h/d"], /unknown command 'postgres:\/\/u@h\/d'/],
    ["no command", [], /Usage: oncekey/],
  ];
  test.each(wrong)("%s is wrong usage: 2, and no password is shown", async (_what, parameters, said) => {
    const { code, stdout, stderr } = await oncekey(...parameters);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(said);
    expect(stderr).not.toContain("s3cret");
  });

  test("a database that cannot be reached is a failure: 1, told in words or as JSON, without the password", async () => {
    for (const url of ["postgres://u:s3cret@127.0.0.1:1/d", "postgres://u:s3cret@[::/d?password=s3cret"]) {
      const told = await oncekey("migrate", url);
      expect(told).toMatchObject({
        code: 1,
        stdout: "",
        stderr: expect.stringMatching(/^oncekey: No connection to PostgreSQL/),
      });
      const { code, stdout, stderr } = await oncekey("migrate", url, "--json");
      expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
      expect(JSON.parse(stdout)).toMatchObject({ error: { code: "store_unavailable" } });
      expect(told.stderr + stdout).not.toContain("s3cret");
    }
  });

  test("--help and --version are no errors", async () => {
    expect(await oncekey("--help")).toMatchObject({ code: 0, stdout: expect.stringMatching(/migrate/) });
    expect(await oncekey("--version")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+/),
    });
  });
});

async function databaseWithPassword() {
  const { url, drop } = await freshPostgresDatabase();
  const secret = new URL(url);
  secret.password = "s3cret";
  return { url, secret: secret.href, drop };
}

async function tablesOf(url: string): Promise<readonly string[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(
    "select schemaname || '.' || tablename as name from pg_tables where tablename like 'oncekey%' order by 1",
  );
  await client.end();
  return rows.map(({ name }) => name);
}
