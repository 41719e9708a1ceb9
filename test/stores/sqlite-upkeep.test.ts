import { describe, expect, onTestFinished, test } from "vitest";
import type { RecordWrite } from "../../src/core/record.ts";
import { type SqliteConnection, sqliteStore } from "../../src/stores/sqlite/index.ts";
import { claimOf, httpIdentity } from "./sample.ts";
import { open, openForTest, sqliteStoreForTest } from "./sqlite-files.ts";

describe("the queries of the workers and of people", () => {
  test("read by an index and never the whole table", async () => {
    const { path } = await sqliteStoreForTest();
    const asked: string[] = [];
    const store = sqliteStore({ connect: () => recording(open(path), asked) });
    onTestFinished(() => store.close());
    const plansOf = async (use: () => Promise<unknown>) => {
      await store.beats();
      asked.length = 0;
      await use();
      const connection = openForTest(path);
      return asked
        .filter((sql) => /oncekey_/.test(sql) && /^(SELECT|DELETE|UPDATE|INSERT)/.test(sql))
        .flatMap((sql) => {
          const parameters = [...sql].filter((letter) => letter === "?").map(() => 1);
          return connection.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters);
        })
        .map((row) => String(Object(row).detail))
        .join("; ");
    };
    const limit = 10;
    expect(await plansOf(() => store.due({ kind: "stale", graceMs: 0, limit }))).toBe(
      `SEARCH oncekey_records USING INDEX oncekey_stale (lease_until<?); ${SAME_INSTANT}`,
    );
    expect(await plansOf(() => store.due({ kind: "looks", limit }))).toBe(
      `SEARCH oncekey_records USING INDEX oncekey_looks (next_look_at<?); ${SAME_INSTANT}`,
    );
    const after = { dueAt: 1, identity: httpIdentity("k") };
    expect(await plansOf(() => store.due({ kind: "stale", graceMs: 0, limit, after }))).toBe(
      `SEARCH oncekey_records USING INDEX oncekey_stale (lease_until>? AND lease_until<?); ${SAME_INSTANT}`,
    );
    expect(await plansOf(() => store.due({ kind: "looks", limit, after }))).toBe(
      `SEARCH oncekey_records USING INDEX oncekey_looks (next_look_at>? AND next_look_at<?); ${SAME_INSTANT}`,
    );
    await store.insert(endedAt("old", -1_000));
    const purging = await plansOf(() => store.purge(limit));
    expect(purging).toContain("USING INDEX oncekey_ended (");
    expect(purging).toContain("USING INTEGER PRIMARY KEY (rowid=?)");
    expect(purging).not.toMatch(/SCAN|TEMP B-TREE/);
    expect(await plansOf(() => store.list({ limit }))).toBe(
      "SCAN oncekey_records USING INDEX oncekey_changes",
    );
    const before = { updatedAt: 1, identity: httpIdentity("k") };
    expect(await plansOf(() => store.list({ limit, before }))).toMatch(
      /^SEARCH .* oncekey_changes \(.*<.*\)$/,
    );
    expect(await plansOf(() => store.list({ limit, principal: "a", key: "k" }))).toMatch(
      /^SEARCH oncekey_records USING INDEX oncekey_(principals|keys) \(/,
    );
    expect(await plansOf(() => store.list({ limit, correlationId: "c" }))).toContain(
      "INDEX oncekey_correlations",
    );
    expect(await plansOf(() => store.list({ limit, key: "k" }))).toContain("INDEX oncekey_keys");
    expect(await plansOf(() => store.list({ limit, principal: "a" }))).toContain("INDEX oncekey_principals");
    expect(await plansOf(() => store.count())).not.toMatch(/SCAN oncekey_records(?! USING COVERING INDEX)/);
    expect(await plansOf(() => store.read(httpIdentity("k")))).toContain(
      "SEARCH oncekey_records USING INDEX sqlite_autoindex_oncekey_records_1 (id=?)",
    );
  });
});

/** Sorts what is due at one instant, and nothing else. */
const SAME_INSTANT = "USE TEMP B-TREE FOR LAST TERM OF ORDER BY";

describe("a purge", () => {
  test.each(["", "DEFERRABLE INITIALLY DEFERRED", "ON DELETE RESTRICT"])(
    "goes row by row past those that a foreign key holds %s, and never starves those behind them",
    async (deferred) => {
      const { store, path } = await sqliteStoreForTest();
      const connection = openForTest(path);
      connection.exec(`CREATE TABLE receipts (record BLOB REFERENCES oncekey_records (id) ${deferred})`);
      for (const n of [1, 2, 3, 4, 5, 6]) await store.insert(endedAt(`k${n}`, -100_000 + n));
      connection.exec("INSERT INTO receipts SELECT id FROM oncekey_records WHERE key IN ('k1', 'k2', 'k4')");
      expect(await store.purge(1)).toBe(1);
      expect(await keysOf(store)).toEqual(["k1", "k2", "k4", "k5", "k6"]);
      expect(await store.purge(9)).toBe(2);
      expect(await store.purge(9)).toBe(0);
      connection.exec("DELETE FROM receipts");
      await expect.poll(() => store.purge(2)).toBe(2);
      await expect.poll(() => store.purge(2)).toBe(1);
      expect(await keysOf(store)).toEqual([]);
    },
  );

  test("reaches what lies behind a thousand rows that resist, though no single call tries them all", async () => {
    const { store, path } = await sqliteStoreForTest();
    const connection = openForTest(path);
    await store.insert(endedAt("held", -1_000));
    multiply(connection, 1_200);
    connection.exec("CREATE TABLE receipts (record BLOB UNIQUE REFERENCES oncekey_records (id))");
    connection.exec("INSERT INTO receipts SELECT id FROM oncekey_records");
    await store.insert(endedAt("free", -1));
    expect(await store.purge(9)).toBe(0);
    expect(await store.purge(9)).toBe(1);
    expect((await store.read(httpIdentity("free"))).record).toBeNull();
  });

  test("of many takes the write lock for short batches only, and counts to its limit", async () => {
    const { path } = await sqliteStoreForTest();
    const asked: string[] = [];
    const store = sqliteStore({ connect: () => recording(open(path), asked) });
    onTestFinished(() => store.close());
    await store.insert(endedAt("k", -1_000));
    const connection = openForTest(path);
    multiply(connection, 999);
    asked.length = 0;
    expect(await store.purge(950)).toBe(950);
    expect(asked.filter((sql) => sql === "BEGIN IMMEDIATE")).toHaveLength(10);
    expect(await store.purge(950)).toBe(50);
  });
});

describe("what workers and people leave behind", () => {
  test("is kept in the order of its writing, with the database's time", async () => {
    const { store } = await sqliteStoreForTest();
    const entry = {
      actor: "ann",
      action: "release",
      reason: "seen at the bank",
      before: "unknown",
      after: null,
    } as const;
    const run = { kind: "run", principal: "p", operation: "o", key: "k" } as const;
    await store.audit({ ...entry, identity: run });
    await store.audit({ ...entry, identity: run, action: "purge" });
    await store.audit({ ...entry, identity: httpIdentity("k") });
    expect(await store.audits(run)).toEqual([
      { ...entry, identity: run, at: expect.any(Number) },
      { ...entry, identity: run, action: "purge", at: expect.any(Number) },
    ]);
    expect(await store.beats()).toEqual([]);
    await store.beat("sweeper");
    const [first] = await store.beats();
    await expect.poll(async () => ((await store.beats())[0]?.ageMs ?? 0) > 2).toBe(true);
    await store.beat("sweeper");
    const beats = await store.beats();
    expect(beats).toHaveLength(1);
    expect(beats[0]?.beatenAt).toBeGreaterThan(first?.beatenAt ?? Number.NaN);
  });
});

function endedAt(key: string, inMs: number): RecordWrite {
  const claim = claimOf(httpIdentity(key));
  if (claim.state !== "in_progress") throw new Error(claim.state);
  const { leaseUntil: _, ...rest } = claim;
  return { ...rest, state: "released", retainUntil: { inMs } };
}

async function keysOf(store: Pick<ReturnType<typeof sqliteStore>, "list">): Promise<readonly string[]> {
  return (await store.list({ limit: 99 })).records.map(({ identity }) => identity.key).sort();
}

/** Adds so many rows like the only one, unreadable but for their id. */
function multiply(connection: SqliteConnection, times: number): void {
  const names = connection
    .prepare("SELECT name FROM pragma_table_info('oncekey_records') ORDER BY cid")
    .all();
  const columns = names.map((row) => String(Object(row).name));
  const values = columns.map((name) => (name === "id" ? "randomblob(16)" : name)).join(", ");
  connection.exec(`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ${times})
    INSERT INTO oncekey_records SELECT ${values} FROM oncekey_records, n`);
}

/** Notes down all SQL that goes through a connection. */
function recording(connection: SqliteConnection, asked: string[]): SqliteConnection {
  const noted = (sql: string) => {
    asked.push(sql);
    return sql;
  };
  return {
    exec: (sql) => connection.exec(noted(sql)),
    close: () => connection.close(),
    prepare: (sql) => ({
      run: (...values) => connection.prepare(noted(sql)).run(...values),
      get: (...values) => connection.prepare(noted(sql)).get(...values),
      all: (...values) => connection.prepare(noted(sql)).all(...values),
    }),
  };
}
