import type { Client, Pool } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { seen } from "../../src/core/transition.ts";
import { StoreUnavailable } from "../../src/errors.ts";
import { classify, classifyCommit } from "../../src/stores/postgres/classify.ts";
import { postgresIsHere } from "../support/databases.ts";
import { until } from "../support/processes.ts";
import {
  begun,
  completedFrom,
  type Door,
  type Opened,
  openDoor,
  openTestDatabase,
  renewed,
  type TestDatabase,
  untilOthersAreIdle,
} from "./postgres-server.ts";
import { claimOf, httpIdentity } from "./sample.ts";

describe.skipIf(!postgresIsHere())("the PostgreSQL store under faults", () => {
  let database: TestDatabase;
  let store: Opened["store"];
  let door: Door | undefined;
  beforeAll(async () => {
    database = await openTestDatabase();
    store = database.open().store;
  });
  afterEach(async () => {
    await door?.close();
    door = undefined;
  });
  afterAll(() => database.close());

  /** A store whose every connection goes through a door that is slammed at `text`. */
  async function behindDoor(text: string, moment: Parameters<Door["cutAt"]>[1]) {
    door = await openDoor(database.url);
    door.cutAt(text, moment);
    return database.open({ connectionString: door.url }).store;
  }

  for (const moment of ["before it is sent", "before its reply"] as const) {
    test(`a replace whose connection is cut ${moment} is settled by repeating it`, async () => {
      const record = await begun(store, `replace cut ${moment}`);
      const write = completedFrom(record);
      const cut = await behindDoor(write.writeId, moment);
      await expect(cut.replace(seen(record), write, "wait")).rejects.toBeInstanceOf(StoreUnavailable);
      const repeated = await store.replace(seen(record), write, "wait");
      expect(repeated).toMatchObject({ kind: "replaced", record: { state: "completed", revision: 2 } });
      expect((await store.read(record.identity)).record).toEqual(repeated.record);
    });

    test(`a claim whose connection is cut ${moment} is settled by repeating it`, async () => {
      const write = claimOf(httpIdentity(`claim cut ${moment}`));
      const cut = await behindDoor(write.writeId, moment);
      await expect(cut.insert(write)).rejects.toBeInstanceOf(StoreUnavailable);
      await untilOthersAreIdle(database.admin);
      const { inserted, record } = await store.insert(write);
      expect([inserted, record.owner]).toEqual([moment === "before it is sent", write.owner]);
    });

    test(`a unit whose COMMIT is cut ${moment} is neither success nor failure, and the repeated write tells`, async () => {
      const record = await begun(store, `commit cut ${moment}`);
      const write = completedFrom(record);
      const cut = await behindDoor("COMMIT\0", moment);
      const unit = cut.transaction(async (tx) => {
        return { kind: "commit", value: await cut.within(tx).replace(seen(record), write, "wait") };
      });
      await expect(unit).rejects.toMatchObject({
        code: "store_unavailable",
        message: expect.stringMatching(/COMMIT had been sent, .* open/),
      });
      const repeated = await store.replace(seen(record), write, "wait");
      expect(repeated).toMatchObject({ kind: "replaced", record: { revision: 2, writeId: write.writeId } });
    });
  }

  test("DB-12: connections that the server ends, idle or at work, cost one call each and never the process", async () => {
    const { pool, store } = database.open();
    const other = database.open().store;
    await Promise.all(Array.from({ length: 5 }, (_, number) => store.read(httpIdentity(`idle ${number}`))));
    await endSessionsOf(pool, database.admin);
    await until(() => pool.totalCount === 0);
    await store.check();

    const contested = httpIdentity("mid-claim");
    await other.transaction(async (tx) => {
      await other.within(tx).insert(claimOf(contested));
      const claims = [store.insert(claimOf(contested)), store.insert(claimOf(contested))];
      const failed = Promise.all(
        claims.map((claim) => expect(claim).rejects.toBeInstanceOf(StoreUnavailable)),
      );
      await database.waiting(2);
      await endSessionsOf(pool, database.admin);
      await failed;
      return { kind: "rollback", value: undefined };
    });
    expect(await store.insert(claimOf(contested))).toMatchObject({ inserted: true });

    const broken = store.transaction(async (tx) => {
      await store.within(tx).insert(claimOf(httpIdentity("mid-unit")));
      const ended = new Promise<void>((resolve) => tx.once("end", resolve));
      await endSessionsOf(pool, database.admin);
      await ended;
      return { kind: "commit", value: undefined };
    });
    await expect(broken).rejects.toMatchObject({
      ...{ code: "store_unavailable", message: expect.stringMatching(/nothing of it was applied/) },
    });
    const met = store.transaction(async (tx) => {
      await endSessionsOf(pool, database.admin);
      return { kind: "commit", value: await store.within(tx).insert(claimOf(httpIdentity("mid-unit"))) };
    });
    await expect(met).rejects.toMatchObject({
      ...{ code: "store_unavailable", message: expect.stringMatching(/nothing of it was applied/) },
    });
    expect((await store.read(httpIdentity("mid-unit"))).record).toBeNull();
  });

  test("a fault of the driver's leaves the verb as it is, and the store goes on", async () => {
    const { pool, store } = database.open();
    const fault = new TypeError("Cannot read properties of undefined (reading 'rows')");
    pool.once("acquire", (client) => {
      const { query } = client;
      client.query = () => {
        client.query = query;
        throw fault;
      };
    });
    await expect(store.read(httpIdentity("faulty driver"))).rejects.toBe(fault);
    expect(await store.insert(claimOf(httpIdentity("faulty driver")))).toMatchObject({ inserted: true });
  });

  test("a server that cannot be reached, or is too slow, is unavailable", async () => {
    const nowhere = database.open({ connectionString: "postgres://postgres@127.0.0.1:1/nowhere" }).store;
    await expect(nowhere.insert(claimOf(httpIdentity("nowhere")))).rejects.toMatchObject({
      ...{ code: "store_unavailable", message: expect.stringMatching(/ECONNREFUSED.*Nothing was sent/) },
    });
    for (const limit of [{ statement_timeout: 50 }, { query_timeout: 50 }]) {
      const record = await begun(store, `slow ${Object.keys(limit)}`);
      const write = renewed(record);
      const impatient = database.open(limit).store;
      await store.transaction(async (tx) => {
        await store.within(tx).replace(seen(record), renewed(record), "wait");
        const late = impatient.replace(seen(record), write, "wait");
        await expect(late).rejects.toBeInstanceOf(StoreUnavailable);
        return { kind: "rollback", value: undefined };
      });
      // The server may still carry out what the driver gave up waiting for; repeating it settles that.
      const repeated = await store.replace(seen(record), write, "wait");
      expect(repeated).toMatchObject({ kind: "replaced", record: { revision: 2 } });
      await impatient.check();
    }
  });
});

describe("an error that no server sent", () => {
  const origin = { client: null, schema: null };

  test.each([
    new TypeError("Cannot read properties of undefined (reading 'id')"),
    new RangeError("Invalid array length"),
    new ReferenceError("clock is not defined"),
    new SyntaxError("Unexpected end of JSON input"),
  ])("is a program's fault where it is %s: it stays as it is and nobody tries again", (fault) => {
    expect(classify(fault, origin)).toBe(fault);
  });

  test.each([
    Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }),
    new Error("timeout exceeded when trying to connect"),
    new Error("Connection terminated unexpectedly", { cause: new TypeError("of the driver's") }),
    "text",
  ])("is a server that did not answer where it is %s", (error) => {
    expect(classify(error, origin)).toMatchObject({ code: "store_unavailable", cause: error });
  });

  test("leaves a COMMIT open, whatever it is", () => {
    const fault = new TypeError("Cannot read properties of undefined (reading 'command')");
    expect(classifyCommit(fault, origin)).toMatchObject({ code: "store_unavailable", cause: fault });
  });
});

/** Ends every session of the pool from the server's side. */
async function endSessionsOf(pool: Pool, admin: Client): Promise<void> {
  const { application_name } = pool.options;
  await admin.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = $1",
    [application_name],
  );
}
