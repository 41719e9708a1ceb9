import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seen } from "../../src/core/transition.ts";
import { postgresStore } from "../../src/stores/postgres/index.ts";
import { postgresIsHere } from "../support/databases.ts";
import { begun, completedFrom, openTestDatabase, type TestDatabase } from "./postgres-server.ts";
import { claimOf, httpIdentity } from "./sample.ts";

/** So often that the server has settled on a plan for every statement of a function, and keeps it. */
const TIMES = 12;

describe.skipIf(!postgresIsHere())("a session that knew the PostgreSQL store's table tiny", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase();
  });
  afterAll(() => database.close());

  test("reads it by the primary key still when it has grown", async () => {
    const { admin } = database;
    const { pool } = database.open({ max: 1 });
    const store = postgresStore({ pool });
    // Nobody but this test tells the server how large the table is.
    await admin.query("alter table oncekey_records set (autovacuum_enabled = off)");
    const work = async (name: string) => {
      const record = await begun(store, name);
      await store.insert(claimOf(record.identity));
      await store.read(record.identity);
      await store.fenced({ kind: "held", seen: seen(record) }, async () => ({ kind: "rollback", value: 0 }));
      await store.replace(seen(record), completedFrom(record), "wait");
      const claimable = {
        kind: "claimable",
        identity: httpIdentity(`${name}, claimed`),
        seen: null,
      } as const;
      await store.fenced(claimable, async () => ({ kind: "rollback", value: 0 }));
    };
    await work("first");
    await admin.query("analyze oncekey_records");
    for (let n = 0; n < TIMES; n += 1) await work(`tiny ${n}`);
    await admin.query(
      `insert into oncekey_records select filled.* from oncekey_records t, generate_series(1, 500) n,
         jsonb_populate_record(t, jsonb_build_object('id', '\\x' || md5(t.id::text || n))) as filled`,
    );
    const before = await tableScans(pool);
    for (let n = 0; n < TIMES; n += 1) await work(`grown ${n}`);
    expect(await tableScans(pool)).toBe(before);
  });
});

/** How often the whole table was read so far, by whomever. */
async function tableScans(pool: Pool): Promise<number> {
  await pool.query("select pg_stat_force_next_flush()");
  const { rows } = await pool.query(
    "select seq_scan::int as scans from pg_stat_user_tables where relname = 'oncekey_records'",
  );
  return rows[0]?.scans;
}
