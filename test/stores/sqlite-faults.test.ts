import { describe, expect, onTestFinished, test } from "vitest";
import { isBusy, isOutdated, isResistance, translated } from "../../src/stores/sqlite/faults.ts";
import { type SqliteConnection, sqliteStore } from "../../src/stores/sqlite/index.ts";
import { claimOf, httpIdentity } from "./sample.ts";
import { open, openForTest, sqliteStoreForTest } from "./sqlite-files.ts";

const alice = httpIdentity("k");

/** As `node:sqlite` and `@photostructure/sqlite` throw. */
const numbered = (errcode: number, message = "?") =>
  Object.assign(new Error(message), { code: "ERR_SQLITE_ERROR", errcode });

/** As better-sqlite3 throws. */
const named = (code: string, message = "?") => Object.assign(new Error(message), { code });

describe("an error of any driver", () => {
  test.each<[Error, string]>([
    [numbered(5), "store_contention"],
    [numbered(517), "store_contention"],
    [numbered(261), "store_contention"],
    [named("SQLITE_BUSY"), "store_contention"],
    [named("SQLITE_BUSY_SNAPSHOT"), "store_contention"],
    [named("SQLITE_LOCKED_SHAREDCACHE"), "store_contention"],
    [named("ERR_SQLITE_ERROR", "database is locked"), "store_contention"],
    [numbered(18), "record_too_large"],
    [named("SQLITE_TOOBIG"), "record_too_large"],
    [new RangeError("The bound string, buffer, or bigint is too big"), "record_too_large"],
    [numbered(10 | (4 << 8)), "store_unavailable"],
    [named("SQLITE_IOERR_FSYNC"), "store_unavailable"],
    [named("SQLITE_CANTOPEN"), "store_unavailable"],
    [named("SQLITE_READONLY_DBMOVED"), "store_unavailable"],
    [named("SQLITE_FULL"), "store_unavailable"],
    [named("SQLITE_CORRUPT_VTAB"), "store_unavailable"],
    [named("SQLITE_NOTADB"), "store_unavailable"],
    [named("ERR_SQLITE_ERROR", "database disk image is malformed"), "store_unavailable"],
    [named("ERR_INVALID_STATE", "database is not open"), "store_unavailable"],
    [new TypeError("The database connection is not open"), "store_unavailable"],
    [numbered(1, "no such table: oncekey_records"), "schema_missing"],
    [named("SQLITE_ERROR", "no such table: main.oncekey_counter"), "schema_missing"],
    [named("SQLITE_ERROR", "table oncekey_records has no column named looks"), "schema_missing"],
  ])("%o means %s, and is kept as the cause", (error, code) => {
    expect(translated(error, null)).toMatchObject({ code, cause: error });
    expect(isBusy(error)).toBe(code === "store_contention");
  });

  test.each([
    numbered(19, "NOT NULL constraint failed"),
    named("SQLITE_ERROR", 'near "SELEC": syntax error'),
    new Error("mine"),
    "text",
  ])("%o means nothing to us and stays as it is", (error) => {
    expect(translated(error, null)).toBe(error);
  });

  test("tells an outdated transaction and a foreign key from their kin", () => {
    expect([517, 5, 261].map((code) => isOutdated(numbered(code)))).toEqual([true, false, false]);
    expect(["SQLITE_BUSY_SNAPSHOT", "SQLITE_BUSY"].map((code) => isOutdated(named(code)))).toEqual([
      true,
      false,
    ]);
    expect([787, 1811, 19, 1555].map((code) => isResistance(numbered(code)))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    const names = ["SQLITE_CONSTRAINT_FOREIGNKEY", "SQLITE_CONSTRAINT_UNIQUE"];
    expect(names.map((code) => isResistance(named(code)))).toEqual([true, false]);
  });
});

describe("a commit that SQLite refuses", () => {
  test("for a lock is contention after the one run of a unit, and tried again for a verb", async () => {
    const { path } = await sqliteStoreForTest();
    const refusals = [numbered(5), numbered(5)];
    const store = sqliteStore({ connect: () => refusing(open(path), refusals) });
    onTestFinished(() => store.close());
    let runs = 0;
    const unit = (tx: SqliteConnection) => {
      runs += 1;
      return { kind: "commit" as const, value: store.within(tx).insert(claimOf(alice)) };
    };
    await expect(store.transaction(unit)).rejects.toMatchObject({ code: "store_contention" });
    expect([runs, refusals.length]).toEqual([1, 1]);
    expect(await store.insert(claimOf(alice))).toMatchObject({ inserted: true, record: { attempt: 1 } });
    expect(refusals).toEqual([]);
  });

  test("for the disk makes the store unavailable, leaves nothing behind, and the store goes on", async () => {
    const { path } = await sqliteStoreForTest();
    const refusals = [numbered(10, "disk I/O error"), numbered(13, "database or disk is full")];
    const store = sqliteStore({ connect: () => refusing(open(path), refusals) });
    onTestFinished(() => store.close());
    const unavailable = { code: "store_unavailable", message: expect.stringContaining(path) };
    await expect(store.insert(claimOf(alice))).rejects.toMatchObject(unavailable);
    await expect(store.transaction(() => ({ kind: "commit", value: 1 }))).rejects.toMatchObject(unavailable);
    expect(openForTest(path).prepare("SELECT * FROM oncekey_records").all()).toEqual([]);
    expect(await store.insert(claimOf(alice))).toMatchObject({ inserted: true });
  });
});

/** A real connection whose next commits fail. */
function refusing(connection: SqliteConnection, refusals: Error[]): SqliteConnection {
  return {
    prepare: (sql) => connection.prepare(sql),
    close: () => connection.close(),
    exec: (sql) => {
      const refusal = sql === "COMMIT" ? refusals.shift() : undefined;
      if (refusal !== undefined) throw refusal;
      return connection.exec(sql);
    },
  };
}
