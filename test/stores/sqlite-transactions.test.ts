import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { InProgress, RecordWrite } from "../../src/core/record.ts";
import { conclude, renew, seen } from "../../src/core/transition.ts";
import type { SqliteConnection, SqliteStore } from "../../src/stores/sqlite/index.ts";
import { answerOf, claimOf, httpIdentity } from "./sample.ts";
import { openForTest, sqliteStoreForTest } from "./sqlite-files.ts";

const alice = httpIdentity("k");
const boom = new Error("boom");

describe("a transaction", () => {
  test("commits the record with the user's rows, or neither of them", async () => {
    const { store, effects } = await storeWithEffects();
    const record = await claimed(store);
    const pay = (end: "commit" | "rollback" | "throw") =>
      store.transaction((tx) => {
        const replaced = store.within(tx).replace(seen(record), completed(record), "wait");
        tx.exec("INSERT INTO effects VALUES ('paid')");
        if (end === "throw") throw boom;
        return { kind: end, value: replaced.kind };
      });
    await expect(pay("throw")).rejects.toBe(boom);
    expect(await pay("rollback")).toBe("replaced");
    expect([(await store.read(alice)).record, effects()]).toEqual([record, []]);
    expect(await pay("commit")).toBe("replaced");
    expect((await store.read(alice)).record).toMatchObject({ state: "completed", revision: 2 });
    expect(effects()).toEqual(["paid"]);
  });

  test("of a function that returns a promise is refused, and what it did or still does changes nothing", async () => {
    const { store, effects } = await storeWithEffects();
    let late: Promise<unknown> | undefined;
    const unit = (tx: SqliteConnection) => {
      const pays = async () => {
        tx.exec("INSERT INTO effects VALUES ('before')");
        await Promise.resolve();
        tx.exec("INSERT INTO effects VALUES ('after')");
        return { kind: "commit" as const, value: null };
      };
      const promise = pays();
      late = promise;
      return promise;
    };
    await expect(store.transaction(unit)).rejects.toMatchObject({
      code: "configuration",
      field: "transaction",
    });
    await expect(late).rejects.toMatchObject({ code: "attempt_ended" });
    expect(effects()).toEqual([]);
    expect(await store.transaction(() => ({ kind: "commit", value: 7 }))).toBe(7);
  });

  test("runs its unit once, hands back the unit's own errors, and leaves no transaction open", async () => {
    const { store, effects } = await storeWithEffects();
    let runs = 0;
    const unit = (tx: SqliteConnection) => {
      runs += 1;
      tx.exec("INSERT INTO effects VALUES ('once'), ('once')");
      return { kind: "commit" as const, value: null };
    };
    await expect(store.transaction(unit)).rejects.toThrow(/UNIQUE constraint failed: effects.what/);
    await expect(store.transaction((tx) => unit(tx))).rejects.not.toHaveProperty("retryable");
    expect([runs, effects()]).toEqual([2, []]);
    expect(await store.insert(claimOf(alice))).toMatchObject({ inserted: true });
  });

  test("may be asked for, and the verbs too, from inside another: they have their turn after it", async () => {
    const { store, effects } = await storeWithEffects();
    const inner: Promise<unknown>[] = [];
    await store.transaction((tx) => {
      inner.push(store.insert(claimOf(alice)), store.transaction(pays("second")));
      return pays("first")(tx);
    });
    await Promise.all(inner);
    expect(effects()).toEqual(["first", "second"]);
  });

  test("that SQLite ended by itself is not taken for a commit", async () => {
    const { store, effects } = await storeWithEffects();
    const unit = store.transaction((tx) => {
      tx.exec("INSERT INTO effects VALUES ('lost')");
      tx.exec("ROLLBACK");
      return { kind: "commit", value: null };
    });
    await expect(unit).rejects.toMatchObject({ code: "not_performed" });
    expect(effects()).toEqual([]);
    expect(await store.insert(claimOf(alice))).toMatchObject({ inserted: true });
  });
});

describe("the verbs on a connection of the user's", () => {
  test("stand and fall with the user's transaction", async () => {
    const { store, path } = await storeWithEffects();
    const mine = openForTest(path);
    mine.exec("BEGIN IMMEDIATE");
    expect(store.within(mine).tryClaim(alice)).toBe(true);
    expect(store.within(mine).insert(claimOf(alice))).toMatchObject({
      inserted: true,
      record: { revision: 1 },
    });
    expect(store.within(mine).read(alice).record).not.toBeNull();
    expect((await store.read(alice)).record).toBeNull();
    mine.exec("ROLLBACK");
    expect((await store.read(alice)).record).toBeNull();
    mine.exec("BEGIN");
    const { record } = store.within(mine).insert(claimOf(alice));
    mine.exec("COMMIT");
    expect((await store.read(alice)).record).toEqual(record);
  });

  test("tell at once that another transaction may be claiming, whatever patience the connection has", async () => {
    const { store, path } = await storeWithEffects();
    const record = await claimed(store);
    const [holder, mine] = [openForTest(path), openForTest(path)];
    mine.exec("PRAGMA busy_timeout = 15000");
    holder.exec("BEGIN IMMEDIATE");
    mine.exec("BEGIN");
    const startedMs = performance.now();
    expect(store.within(mine).tryClaim(httpIdentity("other"))).toBe(false);
    expect(store.within(mine).replace(seen(record), renewed(record), "never")).toMatchObject({
      kind: "locked",
      record,
    });
    expect(performance.now() - startedMs, "it waited for the lock").toBeLessThan(15_000);
    expect(mine.prepare("PRAGMA busy_timeout").get()).toMatchObject({ timeout: 15_000 });
    holder.exec("COMMIT");
    expect(store.within(mine).tryClaim(httpIdentity("other"))).toBe(true);
    expect(store.within(mine).replace(seen(record), renewed(record), "never")).toMatchObject({
      kind: "replaced",
    });
    mine.exec("COMMIT");
  });

  test("say contention when the user's transaction read before others wrote", async () => {
    const { store, path } = await storeWithEffects();
    const mine = openForTest(path);
    mine.exec("BEGIN");
    mine.prepare("SELECT * FROM effects").all();
    await store.insert(claimOf(alice));
    const contention = expect.objectContaining({ code: "store_contention", retryable: true });
    expect(() => store.within(mine).insert(claimOf(httpIdentity("other")))).toThrowError(contention);
    expect(() => store.within(mine).tryClaim(alice)).toThrowError(contention);
    mine.exec("ROLLBACK");
  });
});

describe("while another connection holds the write lock", () => {
  test("a write tries until storeTimeout, then says contention, and the event loop turns meanwhile", async () => {
    const { store, path } = await storeWithEffects({ storeTimeout: 400 });
    const holder = openForTest(path);
    holder.exec("BEGIN IMMEDIATE");
    let turned = 0;
    const timer = setInterval(() => {
      turned += 1;
    }, 1);
    const contention = { code: "store_contention", message: expect.stringContaining(path) };
    const refused = [store.insert(claimOf(alice)), store.transaction(pays("paid")), store.beat("purge")];
    for (const each of await Promise.allSettled(refused)) expect(each).toMatchObject({ reason: contention });
    clearInterval(timer);
    expect(turned).toBeGreaterThan(10);
    holder.exec("ROLLBACK");
    expect(await store.insert(claimOf(alice))).toMatchObject({ inserted: true });
  });

  test("a duplicate is answered, for it takes no lock", async () => {
    const { store, path } = await storeWithEffects();
    const record = await claimed(store);
    const holder = openForTest(path);
    holder.exec("BEGIN IMMEDIATE");
    expect(await store.insert(claimOf(alice))).toMatchObject({ inserted: false, record });
    holder.exec("ROLLBACK");
  });

  test("a takeover without patience outlasts a short write of another key, and the event loop turns meanwhile", async () => {
    const { store, path } = await storeWithEffects();
    const record = await claimed(store);
    const holder = openForTest(path);
    holder.exec("BEGIN IMMEDIATE");
    store.within(holder).insert(claimOf(httpIdentity("another key")));
    const committed = sleep(60).then(() => holder.exec("COMMIT"));
    const replaced = await store.replace(seen(record), renewed(record), "never");
    await committed;
    expect(replaced).toMatchObject({ kind: "replaced", record: { revision: 2 } });
  });

  test("a takeover without patience gives up long before the patience of other writes has ended", async () => {
    const { store, path } = await storeWithEffects({ storeTimeout: 3_600_000 });
    const record = await claimed(store);
    const holder = openForTest(path);
    holder.exec("BEGIN IMMEDIATE");
    const refused = await store.replace(seen(record), renewed(record), "never");
    expect(refused).toMatchObject({ kind: "locked", record });
    holder.exec("ROLLBACK");
  });

  test("a replacement without patience says what stands, one with patience is made once the lock is free", async () => {
    const { store, path } = await storeWithEffects();
    const record = await claimed(store);
    const holder = openForTest(path);
    holder.exec("BEGIN IMMEDIATE");
    const write = renewed(record);
    expect(await store.replace(seen(record), write, "never")).toMatchObject({ kind: "locked", record });
    const gone = { ...seen(record), revision: 7 };
    expect(await store.replace(gone, write, "never")).toMatchObject({ kind: "stale", record });
    const patient = store.replace(seen(record), write, "wait");
    holder.exec("ROLLBACK");
    expect(await patient).toMatchObject({ kind: "replaced", record: { revision: 2 } });
    holder.exec("BEGIN IMMEDIATE");
    expect(await store.replace(seen(record), write, "never")).toMatchObject({ kind: "replaced" });
  });
});

async function storeWithEffects(options: { readonly storeTimeout?: number } = {}) {
  const { store, path } = await sqliteStoreForTest(options);
  const connection = openForTest(path);
  connection.exec("CREATE TABLE effects (what TEXT PRIMARY KEY)");
  const effects = () =>
    connection
      .prepare("SELECT what FROM effects ORDER BY what")
      .all()
      .map((row) => Object(row).what);
  return { store, path, effects };
}

function pays(what: string) {
  return (tx: SqliteConnection) => {
    tx.prepare("INSERT INTO effects VALUES (?)").run(what);
    return { kind: "commit" as const, value: null };
  };
}

async function claimed(store: SqliteStore): Promise<InProgress> {
  const { record } = await store.insert(claimOf(alice));
  if (record.state !== "in_progress") throw new Error(record.state);
  return record;
}

function completed(record: InProgress): RecordWrite {
  return conclude(record, {
    writeId: "end",
    state: "completed",
    answer: answerOf(null),
    keep: { retainMs: 60_000, tombstoneMs: null },
  });
}

function renewed(record: InProgress): RecordWrite {
  return renew(record, { writeId: "renewal", leaseMs: 90_000 });
}
