import { describe, expect, onTestFinished, test } from "vitest";
import type { Answer, InProgress } from "../../src/core/record.ts";
import { conclude, release, seen } from "../../src/core/transition.ts";
import type { SqliteConnection, SqliteStore } from "../../src/stores/sqlite/index.ts";
import { migrate, migrations, printMigrations, sqliteStore } from "../../src/stores/sqlite/index.ts";
import { answerOf, claimOf, httpIdentity } from "./sample.ts";
import { open, openForTest, sqliteFile, sqliteStoreForTest } from "./sqlite-files.ts";

const alice = httpIdentity("k");

describe("the schema", () => {
  test("is never made by the store: every verb says which command makes it", async () => {
    const path = sqliteFile();
    const store = sqliteStore({ connect: () => open(path) });
    onTestFinished(() => store.close());
    const missing = {
      code: "schema_missing",
      message: expect.stringContaining(`oncekey migrate sqlite:${path}`),
    };
    await expect(store.check()).rejects.toMatchObject(missing);
    await expect(store.insert(claimOf(alice))).rejects.toMatchObject(missing);
    await expect(store.list({ limit: 1 })).rejects.toMatchObject(missing);
    const tables = openForTest(path).prepare("SELECT name FROM sqlite_schema").all();
    expect(tables).toEqual([]);
  });

  test("is applied once, step by step, and checked by its version", async () => {
    const { store, path } = await sqliteStoreForTest();
    await store.check();
    const connection = openForTest(path);
    expect(await migrate(connection)).toEqual([]);
    connection.exec("INSERT INTO oncekey_migrations VALUES (99, 'of a later release', 0)");
    await store.check();
    expect(await migrate(connection)).toEqual([]);
    connection.exec("DELETE FROM oncekey_migrations WHERE version = 99");
    connection.exec("DELETE FROM oncekey_migrations WHERE version = 2");
    await expect(store.check()).rejects.toMatchObject({
      message: expect.stringContaining("oncekey migrate"),
    });
  });

  test("printed and run by hand is the one that migrate makes", async () => {
    const schemaOf = (connection: SqliteConnection) =>
      connection.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name").all();
    const [printed, migrated] = [openForTest(sqliteFile()), openForTest(sqliteFile())];
    printed.exec(printMigrations());
    expect(await migrate(migrated)).toEqual(migrations);
    expect(schemaOf(printed)).toEqual(schemaOf(migrated));
    expect(await migrate(printed)).toEqual([]);
  });
});

describe("every connection that the store opens", () => {
  test("commits with synchronous=FULL on a write-ahead log, enforces foreign keys, and never sleeps for long", async () => {
    const opened: SqliteConnection[] = [];
    const path = sqliteFile();
    await migrate(openForTest(path));
    const connect = () => {
      const connection = open(path);
      opened.push(connection);
      return connection;
    };
    const store = sqliteStore({ connect });
    onTestFinished(() => store.close());
    await store.insert(claimOf(alice));
    await store.transaction(() => ({ kind: "commit", value: null }));
    expect(opened).toHaveLength(2);
    for (const connection of opened) {
      const pragma = (name: string) => Object.values(Object(connection.prepare(`PRAGMA ${name}`).get()))[0];
      expect(["journal_mode", "synchronous", "foreign_keys"].map(pragma)).toEqual(["wal", 2, 1]);
      expect(pragma("busy_timeout")).toBeLessThanOrEqual(50);
    }
  });

  test("must be to a file: one in memory would be another database on every connection", async () => {
    const store = sqliteStore({ connect: () => open(":memory:") });
    await expect(store.insert(claimOf(alice))).rejects.toMatchObject({
      code: "configuration",
      field: "connect",
    });
  });

  test("that cannot be opened, or not be written, makes the store unavailable and keeps the cause", async () => {
    const lost = sqliteStore({ connect: () => open("/nowhere/at/all.db") });
    const unavailable = { code: "store_unavailable", cause: expect.any(Error) };
    await expect(lost.read(alice)).rejects.toMatchObject(unavailable);
    const { path } = await sqliteStoreForTest();
    const readOnly = sqliteStore({
      connect: () => {
        const connection = open(path);
        connection.exec("PRAGMA query_only = ON");
        return connection;
      },
    });
    onTestFinished(() => readOnly.close());
    expect(await readOnly.read(alice)).toMatchObject({ record: null });
    await expect(readOnly.insert(claimOf(alice))).rejects.toMatchObject(unavailable);
    await expect(readOnly.check()).rejects.toMatchObject(unavailable);
  });

  test("is closed with the store, which then serves nobody", async () => {
    const { store } = await sqliteStoreForTest();
    await store.insert(claimOf(alice));
    await store.close();
    await store.close();
    await expect(store.read(alice)).rejects.toMatchObject({ code: "store_unavailable" });
  });

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, "60"])("waits for locks no %s", (storeTimeout) => {
    const make = () => sqliteStore({ connect: () => open(":memory:"), storeTimeout });
    expect(make).toThrowError(expect.objectContaining({ code: "configuration", field: "storeTimeout" }));
  });
});

describe("a claim", () => {
  test("DB-06: is never another key's that differs in case, accent or trailing blank", async () => {
    const { store } = await sqliteStoreForTest();
    const keys = ["Abc", "abc", "abc ", "e1\u00e9", "e1e", "e1e\u0301"];
    for (const key of keys)
      expect(await store.insert(claimOf(httpIdentity(key)))).toMatchObject({ inserted: true });
    for (const key of keys) {
      expect((await store.read(httpIdentity(key))).record?.identity.key).toBe(key);
      expect((await store.list({ key, limit: 9 })).records).toHaveLength(1);
    }
  });

  test("that lost writes nothing at all", async () => {
    const { store, path } = await sqliteStoreForTest();
    await store.insert(claimOf(alice));
    const connection = openForTest(path);
    const version = () => connection.prepare("SELECT * FROM oncekey_records, oncekey_counter").all();
    const before = version();
    expect(await store.insert(claimOf(alice))).toMatchObject({ inserted: false });
    await store.transaction((tx) => {
      expect(store.within(tx).insert(claimOf(alice))).toMatchObject({ inserted: false });
      return { kind: "commit", value: null };
    });
    expect(version()).toEqual(before);
  });

  test("after claim holds up nobody else of the process, though its caller never rests", async () => {
    const { store } = await sqliteStoreForTest();
    let answered = 0;
    const others = Array.from({ length: 20 }, async () => {
      for (let n = 0; n < 10; n += 1) await store.list({ limit: 1 });
      answered += 1;
    });
    let claims = 0;
    while (answered < others.length && claims < 5_000)
      await store.insert(claimOf(httpIdentity(`restless ${claims++}`)));
    expect(answered).toBe(others.length);
    await Promise.all(others);
  });

  test("never gets a number that was given before, not even to a record that is purged", async () => {
    const { store } = await sqliteStoreForTest();
    const record = await claimed(store);
    await store.replace(seen(record), release(record, { writeId: "w", retainMs: 1 }), "wait");
    await expect.poll(() => store.purge(9)).toBe(1);
    expect((await claimed(store)).attempt).toBeGreaterThan(record.attempt);
  });
});

describe("an answer", () => {
  test.each<[string, Answer]>([
    ["NUL, as JSON escape and raw", answerOf(bytesOf('{"a":"\\u0000"}\0'), [["content-type", "text/plain"]])],
    ["half a surrogate pair, as JSON escape", answerOf(bytesOf('"\\ud83d"'))],
    ["bytes that are no UTF-8", answerOf(new Uint8Array([0xff, 0xfe, 0x00, 0xc3]))],
    ["an emoji", answerOf(bytesOf("🎉"), [["x-café", "na\u00efve \u00e9"]])],
    ["nothing", answerOf(new Uint8Array())],
    ["a body that was not kept", answerOf(null)],
  ])("DB-07: with %s comes back byte for byte", async (_name, answer) => {
    const { store } = await sqliteStoreForTest();
    const record = await claimed(store);
    await store.replace(seen(record), completedOf(record, answer), "wait");
    const { record: kept } = await store.read(alice);
    expect(kept).toMatchObject({ state: "completed" });
    expect(kept?.state === "completed" && kept.answer).toEqual(answer);
  });

  test("that is larger than SQLite takes is refused as such, and the record stands as it was", async ({
    skip,
  }) => {
    const { path } = await sqliteStoreForTest();
    skip(!("limits" in openForTest(path)), "this driver cannot lower SQLite's limit of 1 GB");
    const connect = () => {
      const connection = open(path);
      Object.assign(Object(Reflect.get(connection, "limits")), { length: 100_000 });
      return connection;
    };
    const store = sqliteStore({ connect });
    onTestFinished(() => store.close());
    const record = await claimed(store);
    const tooLarge = completedOf(record, answerOf(new Uint8Array(200_000)));
    await expect(store.replace(seen(record), tooLarge, "wait")).rejects.toMatchObject({
      code: "record_too_large",
    });
    expect((await store.read(alice)).record).toEqual(record);
  });

  test("CL-12, SL-02: that is missing or cut makes the record corrupt, and hides no other", async () => {
    const { store, path } = await sqliteStoreForTest();
    for (const key of ["whole", "cut", "missing"]) {
      const record = await claimed(store, key);
      await store.replace(seen(record), completedOf(record, answerOf(bytesOf("paid"))), "wait");
    }
    const connection = openForTest(path);
    connection.exec("UPDATE oncekey_records SET answer_body = x'70' WHERE key = 'cut'");
    connection.exec(
      "UPDATE oncekey_records SET answer_status = NULL, answer_headers = NULL, answer_body = NULL, answer_digest = NULL WHERE key = 'missing'",
    );
    for (const key of ["cut", "missing"]) {
      await expect(store.read(httpIdentity(key))).rejects.toMatchObject({ code: "record_corrupt" });
      await expect(store.insert(claimOf(httpIdentity(key)))).rejects.toMatchObject({
        code: "record_corrupt",
      });
    }
    const listed = await store.list({ limit: 1 });
    expect(listed.records.map(({ identity }) => identity.key)).toEqual(["whole"]);
    expect(listed.damaged).toBe(2);
  });

  test("a row with a number that no driver can read is damaged too, and hides no other", async () => {
    const { store, path } = await sqliteStoreForTest();
    for (const key of ["a", "b"]) await store.insert(claimOf(httpIdentity(key), { leaseMs: 1 }));
    openForTest(path).exec(
      "UPDATE oncekey_records SET attempt = 9223372036854775807, lease_until = 1 WHERE key = 'a'",
    );
    const due = () => store.due({ kind: "stale", graceMs: 0, limit: 1 });
    await expect.poll(async () => (await due()).records.length).toBe(1);
    expect(await due()).toMatchObject({ records: [{ identity: { key: "b" } }], damaged: 1 });
  });
});

async function claimed(store: SqliteStore, key = "k"): Promise<InProgress> {
  const { record } = await store.insert(claimOf(httpIdentity(key)));
  if (record.state !== "in_progress") throw new Error(record.state);
  return record;
}

function completedOf(record: InProgress, answer: Answer) {
  return conclude(record, {
    writeId: "end",
    state: "completed",
    answer,
    keep: { retainMs: 60_000, tombstoneMs: null },
  });
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
