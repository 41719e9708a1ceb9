import { Client, Pool, type PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { InProgress } from "../../src/core/record.ts";
import { doubt, seen } from "../../src/core/transition.ts";
import {
  migrate,
  migrations,
  type PostgresClient,
  type PostgresPool,
  postgresStore,
  printMigrations,
} from "../../src/stores/postgres/index.ts";
import type { Ground, Store, TransactionalStore } from "../../src/stores/store.ts";
import { freshPostgresDatabase, postgresIsHere } from "../support/databases.ts";
import { begun, completedFrom, endPool, openTestDatabase, type TestDatabase } from "./postgres-server.ts";
import { claimOf, httpIdentity } from "./sample.ts";

describe.skipIf(!postgresIsHere())("the PostgreSQL store's migrations", () => {
  test("five processes that migrate at once apply each migration once", async () => {
    const { url, drop } = await freshPostgresDatabase();
    const pools = Array.from({ length: 5 }, () => new Pool({ connectionString: url }));
    const applied = await Promise.all(pools.map((pool) => migrate(pool)));
    expect(applied.flat().map(({ version }) => version)).toEqual(migrations.map(({ version }) => version));
    await Promise.all(pools.map(endPool));
    await drop();
  });

  test("the printed script makes what migrate makes, and running it again changes nothing", async () => {
    const [byHand, bySelf] = [await freshPostgresDatabase(), await openTestDatabase()];
    const client = new Client({ connectionString: byHand.url });
    await client.connect();
    await client.query(printMigrations());
    expect(await migrate(client)).toEqual([]);
    expect(await shapeOf(client)).toEqual(await shapeOf(bySelf.admin));
    await expect(client.query(printMigrations())).rejects.toMatchObject({ code: "42P07" });
    await client.query("rollback");
    expect(await shapeOf(client)).toEqual(await shapeOf(bySelf.admin));
    await client.end();
    await byHand.drop();
    await bySelf.close();
  });

  test("DB-06: a database that could not hold every key is refused", async () => {
    const { url, drop } = await freshPostgresDatabase();
    const client = new Client({ connectionString: url });
    await client.connect();
    const ascii = new URL(url);
    ascii.pathname += "_ascii";
    const name = ascii.pathname.slice(1);
    await client.query(
      `create database ${name} encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' template template0`,
    );
    const pool = new Pool({ connectionString: ascii.href });
    try {
      const refused = { code: "configuration", message: expect.stringMatching(/SQL_ASCII.*UTF8/) };
      await expect(migrate(pool)).rejects.toMatchObject(refused);
    } finally {
      await endPool(pool);
      await client.query(`drop database ${name} with (force)`);
      await client.end();
      await drop();
    }
  });

  test("without its tables every call says which command makes them, without the password", async () => {
    const { url, drop } = await freshPostgresDatabase();
    const secret = new URL(url);
    secret.password = "s3cret";
    const pool = new Pool({ connectionString: secret.href });
    const store = postgresStore({ pool, schema: "keys" });
    const command = `Run: oncekey migrate ${url} --schema keys`;
    const identity = httpIdentity("nowhere");
    const calls = [
      () => store.check(),
      () => store.read(identity),
      () => store.insert(claimOf(identity)),
      () => store.purge(1),
    ];
    for (const call of calls) {
      const error: unknown = await call().catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: "schema_missing" });
      expect(String(error)).toContain(command);
      expect(String(error)).not.toContain("s3cret");
    }
    await migrate(pool, { schema: "keys" });
    await store.check();
    await pool.query("update keys.oncekey_migrations set version = 0 - version");
    await expect(store.check()).rejects.toMatchObject({
      code: "schema_missing",
      message: expect.stringMatching(/migration 1 .* not applied/),
    });
    await endPool(pool);
    await drop();
  });

  test("tables that were made before the first release are neither migrated nor used, and it is said what to do", async () => {
    const database = await openTestDatabase();
    const { pool, store } = database.open();
    await database.admin.query("update oncekey_migrations set name = 'records, audit and beats'");
    for (const call of [() => migrate(pool), () => store.check()])
      await expect(call()).rejects.toMatchObject({
        code: "schema_missing",
        message: expect.stringMatching(
          /before its first release.*DROP TABLE oncekey_records, .*oncekey migrate/,
        ),
      });
    await database.close();
  });

  test("a server that may not be written to is refused at start", async () => {
    const database = await openTestDatabase();
    const { store } = database.open({ settings: { default_transaction_read_only: "on" } });
    await expect(store.check()).rejects.toMatchObject({
      code: "configuration",
      message: expect.stringMatching(/primary/),
    });
    await database.close();
  });

  test("two schemas of one database have nothing in common", async () => {
    const database = await openTestDatabase();
    const { pool, store } = database.open();
    expect(await migrate(pool, { schema: "second home" })).toHaveLength(migrations.length);
    const second = postgresStore({ pool, schema: "second home" });
    const identity = httpIdentity("in both schemas");
    expect(await store.insert(claimOf(identity))).toMatchObject({ inserted: true });
    expect(await second.insert(claimOf(identity))).toMatchObject({ inserted: true });
    await store.transaction(async (tx) => {
      expect(await store.within(tx).tryClaim(identity)).toBe(true);
      const other = await second.transaction(async (tx2) => {
        return { kind: "commit", value: await second.within(tx2).tryClaim(identity) };
      });
      expect(other).toBe(true);
      return { kind: "commit", value: undefined };
    });
    await database.close();
  });
});

const AFTER = { dueAt: 1_000_000_000_000, identity: httpIdentity("the last one of a page") };

describe.skipIf(!postgresIsHere())("the PostgreSQL store's statements", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase();
    await fill(database);
  });
  afterAll(() => database.close());

  const byIndex: readonly (readonly [
    what: string,
    index: string,
    call: (store: Store) => Promise<unknown>,
  ])[] = [
    [
      "stale ones",
      "oncekey_records_due",
      (store) => store.due({ kind: "stale", graceMs: 1_000, limit: 100 }),
    ],
    ["looks", "oncekey_records_due", (store) => store.due({ kind: "looks", limit: 100 })],
    [
      "further stale ones",
      "oncekey_records_due",
      (store) => store.due({ kind: "stale", graceMs: 1_000, limit: 100, after: AFTER }),
    ],
    [
      "further looks",
      "oncekey_records_due",
      (store) => store.due({ kind: "looks", limit: 100, after: AFTER }),
    ],
    ["purge", "oncekey_records_due", (store) => store.purge(100)],
  ];
  test.each(byIndex)(
    "%s: one trip, read by the index %s and never through the table",
    async (_what, index, call) => {
      const { pool } = database.open();
      const { recorded, recording } = record(pool);
      await call(postgresStore({ pool: recording }));
      expect(recorded).toHaveLength(1);
      for (const setting of ["on", "off"]) {
        await database.admin.query(`set enable_seqscan = ${setting}`);
        for (const { text, values } of recorded) {
          const { rows } = await database.admin.query(`explain ${text}`, [...values]);
          const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
          expect(plan).toContain(index);
          expect(plan).not.toContain("Filter: (state");
          expect(plan).not.toContain("Seq Scan on oncekey_records");
        }
      }
    },
  );

  const byFunction: readonly (readonly [
    what: string,
    reads: number,
    call: (store: TransactionalStore<PostgresClient>, record: InProgress) => Promise<unknown>,
  ])[] = [
    ["a claim", 1, (store) => store.insert(claimOf(httpIdentity("a new one")))],
    ["a copy", 1, (store, { identity }) => store.insert(claimOf(identity))],
    ["a look-up", 1, (store, { identity }) => store.read(identity)],
    ["a replacement", 2, (store, record) => store.replace(seen(record), completedFrom(record), "wait")],
    ["a unit that holds", 1, (store, record) => unitOn(store, { kind: "held", seen: seen(record) })],
    [
      "a unit that claims",
      1,
      (store, { identity }) => unitOn(store, { kind: "claimable", identity, seen: null }),
    ],
  ];
  test.each(byFunction)(
    "%s: one trip, and its function reads by the primary key and never through the table",
    async (what, reads, call) => {
      const { pool, store } = database.open();
      const standing = await begun(store, `stands for ${what}`);
      const { recorded, recording } = record(pool);
      await call(postgresStore({ pool: recording }), standing);
      const calls = recorded.flatMap(({ text, values }) => {
        const asked = /SELECT oncekey_\w+\(.*\) AS told/s.exec(text)?.[0];
        return asked === undefined ? [] : [{ text: asked, values }];
      });
      expect(calls).toHaveLength(1);
      await database.admin.query("begin");
      const before = await scans(database.admin);
      for (const { text, values } of calls) await database.admin.query(text, [...values]);
      const after = await scans(database.admin);
      await database.admin.query("rollback");
      expect(after).toEqual({ ...before, byIndex: before.byIndex + reads });
    },
  );
});

/** A unit that does nothing on its ground. */
function unitOn<Tx>(store: TransactionalStore<Tx>, ground: Ground): Promise<unknown> {
  return store.fenced(ground, async () => ({ kind: "rollback", value: null }));
}

/** How often this session has read the records so far; only differences mean something. */
async function scans(client: Client): Promise<{ readonly whole: number; readonly byIndex: number }> {
  const { rows } = await client.query(
    "select seq_scan, idx_scan from pg_stat_xact_user_tables where relname = 'oncekey_records'",
  );
  return { whole: Number(rows[0]?.seq_scan), byIndex: Number(rows[0]?.idx_scan) };
}

/** Enough rows of every kind that reading them all would be dearer than any index. */
async function fill({ open, admin }: TestDatabase): Promise<void> {
  const { store } = open();
  await begun(store, "running");
  const ended = await begun(store, "ended");
  await store.replace(seen(ended), completedFrom(ended, 1), "wait");
  const doubted = await begun(store, "doubted");
  const evidence = { reason: "?", result: null };
  const looked = { evidence, disposition: "reconcile", nextLookAt: { inMs: 1 } } as const;
  await store.replace(
    seen(doubted),
    doubt(doubted, { writeId: "2", doubt: looked, heldRetainMs: 1 }),
    "wait",
  );
  await admin.query(`
    create temp table templates as select * from oncekey_records;
    insert into oncekey_records select filled.*
      from templates t, generate_series(1, 1500) n, jsonb_populate_record(t, jsonb_build_object(
        'id', '\\x' || md5(t.state || n), 'due_at', t.due_at + n * 1000 + case t.state when 'unknown_reconcile' then 3600000 else 0 end)) as filled;
    analyze oncekey_records`);
  const { rows } = await admin.query("select count(*)::int as records from oncekey_records");
  expect(rows).toEqual([{ records: 4_503 }]);
}

type Recorded = { readonly text: string; readonly values: readonly unknown[] };

/** The same pool, and what was sent through it. */
function record(pool: Pool): { readonly recorded: readonly Recorded[]; readonly recording: PostgresPool } {
  const recorded: Recorded[] = [];
  const listening = (client: PoolClient) => {
    const query = client.query.bind(client);
    return Object.assign(client, {
      query: (sent: Recorded) => {
        recorded.push(sent);
        return query({ text: sent.text, values: [...sent.values] });
      },
    });
  };
  return {
    recorded,
    recording: {
      totalCount: pool.totalCount,
      on: (event, listener) => pool.on(event, listener),
      off: (event, listener) => pool.off(event, listener),
      connect: async () => listening(await pool.connect()),
    },
  };
}

/** Everything that a migration makes, in words. */
async function shapeOf(client: Client): Promise<unknown> {
  const { rows: columns } = await client.query(`
    select table_name, column_name, data_type, collation_name, is_nullable, column_default
    from information_schema.columns where table_schema = 'public' order by 1, ordinal_position`);
  const { rows: indexes } = await client.query(
    "select indexdef from pg_indexes where schemaname = 'public' order by 1",
  );
  const { rows: checks } = await client.query(`
    select conname, pg_get_constraintdef(oid) as rule from pg_constraint where conrelid::regclass::text like 'oncekey%' order by 1`);
  const { rows: applied } = await client.query("select version, name from oncekey_migrations");
  return { columns, indexes, checks, applied };
}
