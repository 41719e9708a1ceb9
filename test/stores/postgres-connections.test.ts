import type { PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { postgresStore } from "../../src/stores/postgres/index.ts";
import { postgresIsHere } from "../support/databases.ts";
import { until } from "../support/processes.ts";
import { openTestDatabase, type TestDatabase } from "./postgres-server.ts";
import { claimOf, httpIdentity } from "./sample.ts";

describe.skipIf(!postgresIsHere())("connections of the PostgreSQL store", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase();
  });
  afterAll(() => database?.close());

  test("come back from units that never return, once the server has ended their idle transaction", async () => {
    const { pool } = database.open({ max: 2 });
    const store = postgresStore<PoolClient>({ pool, idleInTransactionTimeout: "300ms" });
    const never = () => new Promise<never>(() => {});
    const units = await Promise.allSettled([store.transaction(never), store.transaction(never)]);
    const lost = { status: "rejected", reason: { code: "store_unavailable" } };
    expect(units).toMatchObject([lost, lost]);
    expect((await store.read(httpIdentity("after"))).record).toBeNull();
  });

  test("that were waited for too long send nothing any more", async () => {
    const { pool, store } = database.open({ max: 1 });
    const held = await pool.connect();
    const late = store.insert(claimOf(httpIdentity("too late")));
    const refused = expect(late).rejects.toMatchObject({ code: "store_unavailable" });
    await new Promise((resolve) => setTimeout(resolve, 2_200));
    held.release();
    await refused;
    expect((await store.read(httpIdentity("too late"))).record).toBeNull();
  });

  test("are listened to from their beginning, before whoever is lent them can", async () => {
    const { pool, store } = database.open({ max: 1 });
    const listeners: number[] = [];
    // Runs when the pool has taken its own listener off, and the store has not been lent the connection yet.
    pool.on("connect", (client) => queueMicrotask(() => listeners.push(client.listenerCount("error"))));
    await store.read(httpIdentity("listened to"));
    expect(listeners).toEqual([1]);
  });

  test("may end as soon as they begin: nobody dies of it, and the next one works", async () => {
    const { store } = database.open({ max: 2, idleTimeoutMillis: 1 });
    let ended = 0;
    const deadlineMs = performance.now() + 3_000;
    while (performance.now() < deadlineMs) {
      const reading = [store, store].map(({ read }) => read(httpIdentity("ended")).catch(() => null));
      const { rowCount } = await database.admin.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
      );
      ended += rowCount ?? 0;
      await Promise.all(reading);
    }
    expect(ended).toBeGreaterThan(10);
    await until(async () => (await store.read(httpIdentity("ended"))).record === null);
  });
});
