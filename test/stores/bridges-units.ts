import { expect, test } from "vitest";
import type { InProgress } from "../../src/core/record.ts";
import { seen } from "../../src/core/transition.ts";
import type { TransactionSource } from "../../src/stores/postgres/index.ts";
import type { FencedEnd, TransactionalStore } from "../../src/stores/store.ts";
import { type OpenedLayer, undoneBySavepoint } from "./bridges-layers.ts";
import { begun, completedFrom } from "./postgres-server.ts";
import { claimOf } from "./sample.ts";

/** What every layer that opens units must let them keep. */
export function unitTests<Tx>(given: () => OpenedLayer<Tx>): void {
  keepsTogether(given);
  fails(given);
  isProven(given);
}

function keepsTogether<Tx>(given: () => OpenedLayer<Tx>): void {
  test("is at READ COMMITTED, whatever the default, and sits idle no longer than it may", async () => {
    const { store, source } = given();
    const facts =
      "SELECT current_setting('transaction_isolation') AS level, current_setting('idle_in_transaction_session_timeout') AS idle";
    const unit = store.transaction(
      async (tx) => ({ kind: "commit", value: (await source.send(tx, facts))[0] }),
      { idleMs: 12_345 },
    );
    expect(await unit.then((row) => [row?.["level"], row?.["idle"]])).toEqual(["read committed", "12345ms"]);
  });

  test("commits the effect, the record and the answer together, and hands back its value", async () => {
    const { store, effects } = given();
    const { record, unit } = await unitOn(given(), store, "together");
    const write = completedFrom(record);
    expect(await unit(async () => ({ kind: "commit", write, value: "mine" }))).toMatchObject({
      ...{ kind: "committed", value: "mine", record: { writeId: write.writeId, revision: 2 } },
    });
    expect((await store.read(record.identity)).record).toMatchObject({
      state: "completed",
      answer: { body: expect.anything() },
    });
    expect(await effects()).toContain("together");
  });

  test("that rolls back or throws leaves neither, and its own value or error comes out", async () => {
    const { store, effects } = given();
    const reason = Object.assign(new Error("the card was declined"), { code: "EPIPE" });
    const back = await unitOn(given(), store, "rolled back");
    expect(await back.unit(async () => ({ kind: "rollback", value: 7 }))).toEqual({
      kind: "rolled_back",
      value: 7,
    });
    const thrown = await unitOn(given(), store, "thrown");
    const failing = thrown.unit(async () => {
      throw reason;
    });
    await expect(failing).rejects.toBe(reason);
    for (const { record } of [back, thrown])
      expect((await store.read(record.identity)).record).toEqual(record);
    expect(await effects()).not.toContain("rolled back");
    expect(await effects()).not.toContain("thrown");
  });

  test("TX-05: a claim that loses inside the user's own transaction leaves it usable", async () => {
    const { store, source, statement, effects } = given();
    const record = await begun(store, "TX-05");
    const lost = await source.open(
      async (tx) => {
        await statement(tx, "insert into effects values ('X')");
        const claimed = await store.within(tx).insert(claimOf(record.identity));
        await statement(tx, "select 1");
        await statement(tx, "insert into effects values ('Y')");
        return claimed;
      },
      { idleMs: 5_000 },
    );
    expect(lost).toMatchObject({ inserted: false, record });
    expect(await effects()).toEqual(expect.arrayContaining(["X", "Y"]));
  });

  test("finds the tables in a schema whose name a layer could take for placeholders", async () => {
    const store = await given().inSchema("od?d ??:name $1 \u00e9");
    const { record, unit } = await unitOn(given(), store, "odd schema");
    const end = await unit(async () => ({ kind: "commit", write: completedFrom(record), value: null }));
    expect(end.kind).toBe("committed");
  });
}

function fails<Tx>(given: () => OpenedLayer<Tx>): void {
  test.each(["40001", "40P01", "55P03"])(
    "that the database gives way with %s is contention",
    async (code) => {
      const { store, statement } = given();
      const unit = store.transaction(async (tx) => {
        await statement(tx, `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${code}'; END $$`);
        return { kind: "commit", value: null };
      });
      await expect(unit).rejects.toMatchObject({ code: "store_contention" });
    },
  );

  test("whose last write meets a conflict is contention, also where the layer quotes the statement", async () => {
    const { store, admin } = given();
    const { record, unit } = await unitOn(given(), store, "gives way");
    await admin.query(`create function give_way() returns trigger language plpgsql as
      $$ begin raise exception using errcode = '40001'; end $$;
      create trigger give_way before update on oncekey_records for each row execute function give_way()`);
    const end = unit(async () => ({ kind: "commit", write: completedFrom(record), value: null }));
    await expect(end).rejects.toMatchObject({ code: "store_contention" });
    await admin.query("drop function give_way cascade");
    expect((await store.read(record.identity)).record).toEqual(record);
  });

  test("whose own write meets another version is refused, with all that it did", async () => {
    const { store, effects } = given();
    const { record, unit } = await unitOn(given(), store, "other version");
    const write = completedFrom(record);
    const end = await unit(async (tx) => {
      await store.within(tx).replace(seen(record), completedFrom(record), "wait");
      return { kind: "commit", write, value: null };
    });
    expect(end).toMatchObject({ kind: "refused", record });
    expect(await effects()).not.toContain("other version");
  });

  test("whose connection is lost is out of reach, nothing of it stays, and the next one works", async ({
    skip,
  }) => {
    const { store, source, admin, statement, outlivesLoss } = given();
    skip(!outlivesLoss, "the layer ends the process with its connection");
    const { record, unit } = await unitOn(given(), store, "lost");
    const end = unit(async (tx) => {
      const [me] = await source.send(tx, "SELECT pg_backend_pid()::text AS pid");
      await admin.query("select pg_terminate_backend($1)", [Number(me?.["pid"])]);
      await statement(tx, "select 1");
      return { kind: "commit", write: completedFrom(record), value: null };
    });
    await expect(end).rejects.toMatchObject({
      ...{ code: "store_unavailable", message: expect.stringMatching(/nothing of it was applied/) },
    });
    const again = await unitOn(given(), store, "after the loss");
    expect(await again.unit(async () => ({ kind: "rollback", value: 1 }))).toMatchObject({ value: 1 });
    expect((await store.read(record.identity)).record).toEqual(record);
  });
}

function isProven<Tx>(given: () => OpenedLayer<Tx>): void {
  test("in which the error of a statement was swallowed is no success", async () => {
    const { store, statement, effects } = given();
    const { record, unit } = await unitOn(given(), store, "swallowed");
    const end = unit(async (tx) => {
      await statement(tx, "select 1 / 0").then(null, () => "swallowed");
      return { kind: "commit", write: completedFrom(record), value: null };
    });
    await expect(end).rejects.toMatchObject({
      code: "not_performed",
      message: expect.stringMatching(/rolled .* back/),
    });
    expect((await store.read(record.identity)).record).toEqual(record);
    expect(await effects()).not.toContain("swallowed");
  });

  test("whose COMMIT is answered with ROLLBACK, because of a statement that nobody waited for, is no success", async () => {
    const { source, statement, storeThrough, effects, untilSent } = given();
    const floating: TransactionSource<Tx> = {
      ...source,
      send: async (tx, text) => {
        const rows = await source.send(tx, text);
        if (!text.includes("oncekey_conclude")) return rows;
        void statement(tx, "select 1 / 0").then(null, () => "nobody waits for it");
        await untilSent();
        return rows;
      },
    };
    const store = storeThrough(floating);
    const { record, unit } = await unitOn(given(), store, "floating");
    const end = unit(async () => ({ kind: "commit", write: completedFrom(record), value: null }));
    await expect(end).rejects.toMatchObject({ code: "not_performed" });
    expect((await store.read(record.identity)).record).toEqual(record);
    expect(await effects()).not.toContain("floating");
  });

  test("that the layer reports as committed and that never was is no success", async () => {
    const { source, statement, storeThrough } = given();
    const store = storeThrough({
      ...source,
      open: (work, bounds) =>
        source.open(async (tx) => {
          const value = await work(tx);
          await statement(tx, "rollback");
          return value;
        }, bounds),
    });
    const { record, unit } = await unitOn(given(), store, "never was");
    const end = unit(async () => ({ kind: "commit", write: completedFrom(record), value: null }));
    await expect(end).rejects.toMatchObject({
      code: expect.stringMatching(/not_performed|store_unavailable/),
    });
    expect((await store.read(record.identity)).record).toEqual(record);
  });

  test("whose write a savepoint undid is no success, though its transaction committed", async () => {
    const { source, statement, storeThrough } = given();
    const store = storeThrough(undoneBySavepoint(source, statement));
    const { record, unit } = await unitOn(given(), store, "savepoint");
    const end = unit(async () => ({ kind: "commit", write: completedFrom(record), value: null }));
    await expect(end).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/open whether/),
    });
  });

  test("whose COMMIT had no reply is a success where the database says so", async () => {
    const { source, storeThrough, effects } = given();
    const store = storeThrough({
      ...source,
      open: async (work, bounds) => {
        await source.open(work, bounds);
        throw new Error("socket hang up");
      },
    });
    const { record, unit } = await unitOn(given(), store, "no reply");
    const write = completedFrom(record);
    expect(await unit(async () => ({ kind: "commit", write, value: 1 }))).toMatchObject({
      ...{ kind: "committed", value: 1 },
    });
    expect(await effects()).toContain("no reply");
  });

  test("whose COMMIT the database refuses in its own words is refused in these words", async () => {
    const { store, admin, statement } = given();
    await admin.query("create table if not exists checked (id int unique deferrable initially deferred)");
    const { record, unit } = await unitOn(given(), store, "deferred");
    const end = unit(async (tx) => {
      await statement(tx, "insert into checked values (1), (1)");
      return { kind: "commit", write: completedFrom(record), value: null };
    });
    await expect(end).rejects.toSatisfy((error: unknown) => codes(error).includes("23505"));
    expect((await store.read(record.identity)).record).toEqual(record);
  });
}

/** The codes of an error and of what it wraps. */
function codes(error: unknown): readonly unknown[] {
  if (!(error instanceof Error)) return [];
  return ["code" in error ? error.code : null, ...codes(error.cause)];
}

/** A record that is in progress, and units on it that leave an effect of the same name. */
async function unitOn<Tx>(
  { statement }: OpenedLayer<Tx>,
  store: TransactionalStore<Tx, "async">,
  name: string,
): Promise<{
  readonly record: InProgress;
  readonly unit: <T>(work: (tx: Tx) => Promise<FencedEnd<T>>) => ReturnType<typeof store.fenced<T>>;
}> {
  const record = await begun(store, name);
  return {
    record,
    unit: (work) =>
      store.fenced({ kind: "held", seen: seen(record) }, async (tx) => {
        await statement(tx, `insert into effects values ('${name}')`);
        return await work(tx);
      }),
  };
}
