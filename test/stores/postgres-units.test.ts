import type { PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seen } from "../../src/core/transition.ts";
import { StoreContention } from "../../src/errors.ts";
import { recordId } from "../../src/stores/codec.ts";
import { type PostgresPool, postgresStore } from "../../src/stores/postgres/index.ts";
import { postgresIsHere } from "../support/databases.ts";
import { until } from "../support/processes.ts";
import {
  begun,
  completedFrom,
  type Opened,
  openTestDatabase,
  renewed,
  type TestDatabase,
  untilOthersAreIdle,
} from "./postgres-server.ts";
import { claimOf, httpIdentity } from "./sample.ts";

describe.skipIf(!postgresIsHere())("a unit on the PostgreSQL store", () => {
  let database: TestDatabase;
  let store: Opened["store"];
  beforeAll(async () => {
    database = await openTestDatabase();
    store = database.open().store;
  });
  afterAll(() => database.close());

  test("a unit that is paused for too long is ended by the server, so that others learn what became of the record", async () => {
    const record = await begun(store, "paused");
    const { pool } = database.open();
    const short = postgresStore<PoolClient>({ pool, idleInTransactionTimeout: "100ms" });
    const paused = short.transaction(async (tx) => {
      await short.within(tx).replace(seen(record), completedFrom(record), "wait");
      await untilOthersAreIdle(database.admin);
      return { kind: "commit", value: undefined };
    });
    await expect(paused).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/nothing of it was applied/),
    });
    expect(await store.replace(seen(record), completedFrom(record), "never")).toMatchObject({
      kind: "replaced",
    });
    const { rows } = await pool.query("show idle_in_transaction_session_timeout");
    expect(rows).toEqual([{ idle_in_transaction_session_timeout: "0" }]);
  });

  test("a COMMIT that the server turned into a rollback is an error", async () => {
    const identity = httpIdentity("aborted");
    const unit = store.transaction(async (tx) => {
      await store.within(tx).insert(claimOf(identity));
      await tx.query("select 1 / 0").catch(() => "swallowed");
      return { kind: "commit", value: "success" };
    });
    await expect(unit).rejects.toMatchObject({
      code: "not_performed",
      message: expect.stringMatching(/rolled .* back/),
    });
    expect((await store.read(identity)).record).toBeNull();
  });

  test("a deadlock is contention for one, and the other goes on", async () => {
    const [a, b] = [await begun(store, "deadlock a"), await begun(store, "deadlock b")];
    const ready = [0, 0];
    const both = [
      [a, b],
      [b, a],
    ].map(([first, second], side) =>
      store.transaction(async (tx) => {
        if (first === undefined || second === undefined) throw new Error("There are two.");
        await store.within(tx).replace(seen(first), renewed(first), "wait");
        ready[side] = 1;
        await until(() => ready.every((each) => each === 1));
        return {
          kind: "commit",
          value: await store.within(tx).replace(seen(second), renewed(second), "wait"),
        };
      }),
    );
    const [lost, ...others] = (await Promise.allSettled(both)).flatMap((end) =>
      end.status === "rejected" ? [end.reason] : [],
    );
    expect(lost).toBeInstanceOf(StoreContention);
    expect(lost.cause).toMatchObject({ code: "40P01" });
    expect(others).toEqual([]);
  });

  test("a serialization failure in the user's own transaction, and a lock that is not to be had, are contention", async () => {
    const record = await begun(store, "serializable");
    const client = await database.open().pool.connect();
    await client.query("begin isolation level repeatable read");
    await client.query("select 1");
    await store.replace(seen(record), renewed(record), "wait");
    const outdated = store.within(client).replace(seen(record), renewed(record), "wait");
    await expect(outdated).rejects.toMatchObject({ code: "store_contention", cause: { code: "40001" } });
    await client.query("rollback");

    await client.query("begin");
    await client.query("select 1 from oncekey_records where id = $1 for update", [recordId(record.identity)]);
    const refused = store.transaction(async (tx) => {
      await tx.query("select 1 from oncekey_records where id = $1 for update nowait", [
        recordId(record.identity),
      ]);
      return { kind: "commit", value: undefined };
    });
    await expect(refused).rejects.toMatchObject({ code: "store_contention", cause: { code: "55P03" } });
    await client.query("rollback");
    client.release();
  });

  test("what a unit throws for reasons of its own is thrown on as it is, and nothing stays", async () => {
    const identity = httpIdentity("thrown");
    const reason = Object.assign(new Error("the card was declined"), { code: "EPIPE" });
    const unit = store.transaction(async (tx) => {
      await store.within(tx).insert(claimOf(identity));
      throw reason;
    });
    await expect(unit).rejects.toBe(reason);
    expect((await store.read(identity)).record).toBeNull();
    const duplicate = store.transaction(async (tx) => {
      await tx.query("create table twice (id int primary key); insert into twice values (1), (1)");
      return { kind: "commit", value: undefined };
    });
    await expect(duplicate).rejects.toMatchObject({ code: "23505" });
  });

  test("DB-10: behind a pooler every transaction may land on another session, and none keeps anything of ours", async () => {
    const sessions = await Promise.all([0, 1].map(() => database.open({ max: 1 }).pool.connect()));
    const pooled = postgresStore({ pool: poolerOver(sessions) });
    const record = await begun(pooled, "pooled");
    const kept = await pooled.transaction(async (tx) => {
      expect(await pooled.within(tx).tryClaim(record.identity)).toBe(true);
      return {
        kind: "commit",
        value: await pooled.within(tx).replace(seen(record), completedFrom(record), "never"),
      };
    });
    expect(await pooled.insert(claimOf(record.identity))).toMatchObject({
      inserted: false,
      record: kept.record,
    });
    await pooled.beat("purge");
    await pooled.check();
    for (const session of sessions) {
      const { rows: statements } = await session.query("select name from pg_prepared_statements");
      const { rows: locks } = await session.query(
        "select 1 from pg_locks where pid = pg_backend_pid() and locktype = 'advisory'",
      );
      const { rows: settings } = await session.query("select name from pg_settings where source = 'session'");
      expect({ statements, locks, settings }).toEqual({ statements: [], locks: [], settings: [] });
      session.release();
    }
  });

  test("a closed store leaves no listener on the pool", async () => {
    const { pool, store } = database.open();
    expect(pool.listenerCount("error")).toBe(1);
    await store.read(httpIdentity("nobody"));
    await store.close();
    expect(pool.listenerCount("error")).toBe(0);
    const client = await pool.connect();
    expect(client.listenerCount("error")).toBe(0);
    client.release();
  });
});

/** A pooler in transaction mode: takes the next session for every transaction, and for every statement outside one. */
function poolerOver(sessions: readonly PoolClient[]): PostgresPool {
  let turn = 0;
  const none = () => {};
  return {
    ...{ totalCount: sessions.length, on: none, off: none },
    connect: async () => {
      let bound: PoolClient | undefined;
      const query = async (sent: { readonly text: string; readonly values?: unknown[] } | string) => {
        const text = typeof sent === "string" ? sent : sent.text;
        const session = bound ?? sessions[turn++ % sessions.length];
        if (session === undefined) throw new Error("There is no session.");
        if (text.startsWith("BEGIN")) bound = session;
        if (/^(COMMIT|ROLLBACK)/.test(text)) bound = undefined;
        return typeof sent === "string" ? session.query(sent) : session.query(sent);
      };
      return { ...{ query, on: none, off: none, release: none } };
    },
  };
}
