import { Pool, type PoolClient } from "pg";
import { afterEach, describe, expect, test } from "vitest";
import { postgresStore } from "../../src/stores/postgres/index.ts";
import { postgresIsHere } from "../support/databases.ts";
import { sendsCommit, startPostgresProxy } from "../support/postgres-wire.ts";
import { until } from "../support/processes.ts";
import { openTestDatabase } from "./postgres-server.ts";
import { claimOf, httpIdentity } from "./sample.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

describe.skipIf(!postgresIsHere())("a PostgreSQL server that never answers a COMMIT", () => {
  test("does not keep the connection: the pool is free again once nobody waits any more", async () => {
    const database = await openTestDatabase();
    closing.push(() => database.close());
    const proxy = await startPostgresProxy(database.url);
    closing.push(() => proxy.close());
    const pool = new Pool({ connectionString: proxy.url(database.url), max: 1 });
    pool.on("error", () => {});
    closing.push(() => pool.end());
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
});
