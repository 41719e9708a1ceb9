import { Pool, type PoolClient } from "pg";
import postgres from "postgres";
import { afterEach, describe, expect, test } from "vitest";
import { seen } from "../../src/core/transition.ts";
import {
  fromPg,
  fromPostgresJs,
  postgresStore,
  type TransactionSource,
} from "../../src/stores/postgres/index.ts";
import { postgresIsHere } from "../support/databases.ts";
import { sendsCommit, sendsStatement, startPostgresProxy } from "../support/postgres-wire.ts";
import { until } from "../support/processes.ts";
import { begun, completedFrom, openTestDatabase, type TestDatabase } from "./postgres-server.ts";
import { claimOf, httpIdentity } from "./sample.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A database behind a proxy, and a pool of one connection that leads through it. */
async function behindProxy() {
  const database = await openTestDatabase();
  closing.push(() => database.close());
  const proxy = await startPostgresProxy(database.url);
  closing.push(() => proxy.close());
  const url = proxy.url(database.url);
  return { database, proxy, url };
}

function poolOfOne(connectionString: string): Pool {
  const pool = new Pool({ connectionString, max: 1 });
  pool.on("error", () => {});
  closing.push(() => pool.end());
  return pool;
}

/** Two connections: postgres.js (3.4) closes only its half of one, and has another in its place once the server closes, too. */
function sqlOfTwo(url: string) {
  const sql = postgres(url, { max: 2, fetch_types: false });
  closing.push(() => sql.end({ timeout: 1 }));
  return sql;
}

describe.skipIf(!postgresIsHere())("a PostgreSQL server that never answers", () => {
  test("a COMMIT does not keep the connection: the pool is free again once nobody waits any more", async () => {
    const { proxy, url } = await behindProxy();
    const pool = poolOfOne(url);
    const store = postgresStore<PoolClient>({ pool });
    proxy.plan({ when: sendsCommit, fault: { kind: "swallow_reply" }, times: 1 });
    const lost = store.transaction(
      async (tx) => ({ kind: "commit", value: await store.within(tx).insert(claimOf(httpIdentity("lost"))) }),
      { idleMs: 500 },
    );
    await until(() => proxy.happened("swallow_reply") === 1);
    await expect(lost).rejects.toMatchObject({
      ...{
        code: "store_unavailable",
        message: expect.stringMatching(/open whether the transaction was applied/),
      },
    });
    expect((await store.read(httpIdentity("lost"))).record).toMatchObject({ state: "in_progress" });
    expect(pool.totalCount).toBe(1);
  });

  keepsNothingOf("fromPg", (url) => fromPg(poolOfOne(url)));
  keepsNothingOf("fromPostgresJs", (url) => fromPostgresJs(sqlOfTwo(url)));

  test("the question whether it is there does not keep the connection", async () => {
    const { proxy, url } = await behindProxy();
    const pool = poolOfOne(url);
    const store = postgresStore<PoolClient>({ pool });
    proxy.plan({
      when: sendsStatement(/pg_is_in_recovery/),
      fault: { kind: "swallow_reply" },
      times: 1,
    });
    await expect(store.check()).rejects.toMatchObject({ code: "store_unavailable" });
    expect(proxy.happened("swallow_reply")).toBe(1);
    await store.check();
  });
});

function keepsNothingOf<Tx>(name: string, layer: (url: string) => TransactionSource<Tx>): void {
  const openedOn = async (url: string, database: TestDatabase) => {
    const store = postgresStore({ pool: database.open().pool, transactions: layer(url) });
    const records = { first: await begun(store, "first"), next: await begun(store, "next") };
    const completes = (which: keyof typeof records) =>
      store.fenced(
        { kind: "held", seen: seen(records[which]) },
        async () => ({ kind: "commit", write: completedFrom(records[which]), value: null }),
        { idleMs: 500 },
      );
    return { store, records, completes };
  };

  test(`a COMMIT does not keep a unit of ${name}: what became of it is told, and the next one runs`, async () => {
    const { database, proxy, url } = await behindProxy();
    const { completes } = await openedOn(url, database);
    proxy.plan({ when: sendsCommit, fault: { kind: "swallow_reply" }, times: 1 });
    expect(await completes("first")).toMatchObject({ kind: "committed", record: { state: "completed" } });
    expect(proxy.happened("swallow_reply")).toBe(1);
    expect(await completes("next")).toMatchObject({ kind: "committed" });
  });

  test(`a statement does not keep a unit of ${name}: nothing of it stays, and the next one runs`, async () => {
    const { database, proxy, url } = await behindProxy();
    const { store, records, completes } = await openedOn(url, database);
    const write = sendsStatement(/oncekey_conclude/);
    proxy.plan({ when: write, fault: { kind: "swallow_reply" }, times: 1 });
    await expect(completes("first")).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/nothing of it was applied/),
    });
    expect(proxy.happened("swallow_reply")).toBe(1);
    const { record } = await store.read(records.first.identity);
    expect(record).toEqual(records.first);
    expect(await completes("next")).toMatchObject({ kind: "committed" });
  });
}
