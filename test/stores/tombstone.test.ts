import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Identity, RecordWrite } from "../../src/core/record.ts";
import { recordId } from "../../src/stores/codec.ts";
import { migrate } from "../../src/stores/sqlite/index.ts";
import type { Store } from "../../src/stores/store.ts";
import { postgresIsHere } from "../support/databases.ts";
import { openTestDatabase, type TestDatabase } from "./postgres-server.ts";
import { answerOf, claimOf, httpIdentity } from "./sample.ts";
import { openForTest, sqliteStoreForTest } from "./sqlite-files.ts";

const LONG_AGO = { at: 1_000_000_000_000 };

/** From long ago to the far future. */
const LONG_MS = 3_000_000_000_000;

describe("in SQLite", () => {
  test("a record of the release before stays what it was, and leaves no tombstone", async () => {
    const { store, path } = await sqliteStoreForTest();
    const connection = openForTest(path);
    const { record } = await store.insert(finished("old", null));
    connection.exec("DROP INDEX oncekey_tombstones; ALTER TABLE oncekey_records DROP COLUMN tombstone_ms");
    connection.exec("DELETE FROM oncekey_migrations WHERE version = 2");
    await expect(store.check()).rejects.toMatchObject({ code: "schema_missing" });
    expect(await migrate(connection)).toMatchObject([{ version: 2, name: "tombstones" }]);
    await store.check();
    expect((await store.read(record.identity)).record).toEqual(record);
    expect(await store.purge(9)).toBe(1);
    expect((await store.read(record.identity)).record).toBeNull();
  });

  test("what the release before leaves in the new column, when it claims a row anew, damages nothing", async () => {
    const { store, path } = await sqliteStoreForTest();
    const { record } = await store.insert(claimOf(httpIdentity("claimed")));
    openForTest(path).exec("UPDATE oncekey_records SET tombstone_ms = 5");
    expect((await store.read(record.identity)).record).toEqual(record);
  });

  test("a tombstone stands where a foreign key holds its row, which then stays and holds up nobody", async () => {
    const { store, path } = await sqliteStoreForTest();
    const connection = openForTest(path);
    connection.exec("CREATE TABLE receipts (record BLOB REFERENCES oncekey_records (id) ON DELETE RESTRICT)");
    await store.insert(finished("held", LONG_MS));
    connection.exec("INSERT INTO receipts SELECT id FROM oncekey_records");
    expect(await store.purge(9)).toBe(1);
    expect(await hasAnswer(store, "held")).toBe(false);
    connection.exec("UPDATE oncekey_records SET retain_until = 1000");
    await store.insert(finished("behind", null));
    expect(await store.purge(9)).toBe(1);
    expect(await hasAnswer(store, "held")).toBe(false);
    expect((await store.read(httpIdentity("behind"))).record).toBeNull();
  });
});

describe.skipIf(!postgresIsHere())("in PostgreSQL", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase();
  });
  afterAll(() => database.close());

  test("a tombstone stands where a foreign key holds its row, which then stays and holds up nobody", async () => {
    const { store } = database.open();
    await database.admin.query(
      "create table deeds (record bytea references oncekey_records on delete restrict)",
    );
    for (const [key, tombstoneMs] of [
      ["held", LONG_MS],
      ["free", LONG_MS],
      ["plain", null],
    ] as const)
      await store.insert(finished(key, tombstoneMs));
    await database.admin.query("insert into deeds select id from oncekey_records");
    await database.admin.query("delete from deeds where record <> $1", [idOf("held")]);
    expect(await store.purge(9)).toBe(3);
    expect([await hasAnswer(store, "held"), await hasAnswer(store, "free")]).toEqual([false, false]);
    await database.admin.query("update oncekey_records set due_at = 1000");
    expect(await store.purge(9)).toBe(1);
    expect(await hasAnswer(store, "held")).toBe(false);
    expect((await store.read(httpIdentity("free"))).record).toBeNull();
    expect(await store.count()).toMatchObject({ tombstones: 1, endedNotPurged: 1 });
  });

  test("a row that no tombstone can be made of goes like any other, and stops no other", async () => {
    const { store } = database.open();
    const spoilt = ["'{\"tombstone_ms\":9'", "replace(tail, 'retain_until', 'retained')"];
    for (const [n, tail] of spoilt.entries()) {
      await store.insert(finished(`spoilt ${n}`, LONG_MS));
      await database.admin.query(`update oncekey_records set tail = ${tail} where id = $1`, [
        idOf(`spoilt ${n}`),
      ]);
    }
    await store.insert(finished("sound", LONG_MS));
    while ((await store.purge(2)) > 0);
    expect(await hasAnswer(store, "sound")).toBe(false);
    for (const n of [0, 1]) expect((await store.read(httpIdentity(`spoilt ${n}`))).record).toBeNull();
  });

  test("nothing of the answer or of the request is left in the row", async () => {
    const { store } = database.open();
    const write = finished("private", LONG_MS);
    const secret = Buffer.from("a secret".repeat(9));
    await store.insert({
      ...write,
      reference: secret,
      ...{ answer: answerOf(secret, [["x-secret", "s3cret"]]) },
    });
    await store.purge(9);
    const { rows } = await database.admin.query("select * from oncekey_records where id = $1", [
      idOf("private"),
    ]);
    const { fingerprint } = write;
    const gone = [secret, fingerprint.salt, fingerprint.raw, fingerprint.canonical].map((bytes) =>
      Buffer.from(bytes).toString("base64"),
    );
    for (const text of [...gone, "s3cret"]) expect(JSON.stringify(rows)).not.toContain(text);
    expect(rows).toMatchObject([{ body: null, state: "completed" }]);
  });
});

function finished(key: string, tombstoneMs: number | null): RecordWrite {
  const claim = claimOf(httpIdentity(key));
  if (claim.state !== "in_progress") throw new Error(claim.state);
  const { leaseUntil: _, ...rest } = claim;
  const answer = answerOf(new TextEncoder().encode("made"));
  return { ...rest, state: "completed", answer, retainUntil: LONG_AGO, tombstoneMs };
}

async function hasAnswer(store: Store, key: string): Promise<boolean | null> {
  const { record } = await store.read(httpIdentity(key));
  return record !== null && "answer" in record ? record.answer.body !== null : null;
}

function idOf(key: string): Uint8Array {
  const identity: Identity = httpIdentity(key);
  return recordId(identity);
}
