import { Pool, type PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { seen } from "../../src/core/transition.ts";
import { fromPg, postgresStore, type TransactionSource } from "../../src/stores/postgres/index.ts";
import { postgresIsHere } from "../support/databases.ts";
import { until } from "../support/processes.ts";
import { begun, completedFrom, openDoor, openTestDatabase, type TestDatabase } from "./postgres-server.ts";

/** Opens a unit as a layer does that has a fault. */
type Opening = (source: TransactionSource<PoolClient>) => TransactionSource<PoolClient>["open"];

describe.skipIf(!postgresIsHere())("a layer that opens units", () => {
  let database: TestDatabase;
  let pool: Pool;
  let source: TransactionSource<PoolClient>;
  beforeAll(async () => {
    database = await openTestDatabase();
    await database.admin.query("create table effects (id text primary key)");
    pool = database.open().pool;
    pool.setMaxListeners(0); // one store for each test, and none is closed
    source = fromPg(pool);
  });
  afterAll(() => database.close());

  async function unitOpenedBy(name: string, opening: Opening) {
    const store = postgresStore({ pool, transactions: { ...source, open: opening(source) } });
    const record = await begun(store, name);
    const unit = store.fenced({ kind: "held", seen: seen(record) }, async (tx) => {
      await tx.query("insert into effects values ($1) on conflict (id) do nothing", [name]);
      return { kind: "commit", write: completedFrom(record), value: name };
    });
    return {
      store,
      record,
      unit,
      effects: async () => (await pool.query("select 1 from effects where id = $1", [name])).rowCount,
    };
  }

  test.each<[name: string, says: RegExp, effect: number, opening: Opening]>([
    ["never runs its work", /without having run/, 0, () => async () => JSON.parse("null")],
    [
      "tries again what was rolled back",
      /more than once/,
      0,
      ({ open }) =>
        async (work, bounds) => {
          await open(async (tx) => {
            await work(tx);
            throw new Error("could not serialise");
          }, bounds).catch(() => "and once more");
          return await open(work, bounds);
        },
    ],
    [
      "does not wait for its work",
      /still running/,
      0, // the handle refuses what comes when the connection is free again
      ({ open }) =>
        (work, bounds) =>
          open(async (tx) => {
            void work(tx).catch(() => "nobody waits for it");
            return JSON.parse("null");
          }, bounds),
    ],
  ])("that %s is named as a fault of the set-up", async (name, says, effect, opening) => {
    const { unit, record, store, effects } = await unitOpenedBy(name, opening);
    await expect(unit).rejects.toMatchObject({ code: "configuration", field: "transactions", message: says });
    expect((await store.read(record.identity)).record).toEqual(record);
    expect(await effects()).toBe(effect);
  });

  test("that ends the transaction while work goes on gets nothing more of it to send", async () => {
    let goOn = () => {};
    let isOver = false;
    const store = postgresStore({
      pool,
      transactions: {
        ...source,
        open: (work, bounds) =>
          source.open(async (tx) => {
            const over = () => {
              isOver = true;
            };
            void work(tx).then(over, over);
            return JSON.parse("null");
          }, bounds),
      },
    });
    const record = await begun(store, "goes on");
    const unit = store.fenced({ kind: "held", seen: seen(record) }, async () => {
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
      return { kind: "commit", write: completedFrom(record), value: null };
    });
    await expect(unit).rejects.toMatchObject({ code: "configuration" });
    await until(() => {
      goOn();
      return isOver;
    });
    expect((await store.read(record.identity)).record).toEqual(record);
  });

  test("that runs its work again after a commit changes nothing: the first run counts", async () => {
    const opening: Opening =
      ({ open }) =>
      (work, bounds) =>
        open(work, bounds).then(() => open(work, bounds));
    const { unit, effects } = await unitOpenedBy("twice", opening);
    expect(await unit).toMatchObject({ kind: "committed", value: "twice" });
    expect(await effects()).toBe(1);
  });

  test("that hides a throw of its work is named as a fault of the set-up", async () => {
    const opening: Opening =
      ({ open }) =>
      (work, bounds) =>
        open(work, bounds).catch(() => JSON.parse("null"));
    const store = postgresStore({ pool, transactions: { ...source, open: opening(source) } });
    for (const kind of ["rollback", "throw"] as const) {
      const unit = store.transaction(async () => {
        if (kind === "throw") throw new Error("not hidden");
        return { kind, value: null };
      });
      await expect(unit).rejects.toMatchObject({ code: "configuration", message: /resolved although/ });
    }
  });

  test("that says it is done while the transaction is still open leaves it open what became of it", async () => {
    let end = () => {};
    const { unit, record, store } = await unitOpenedBy("still open", ({ open }) => (work, bounds) => {
      return new Promise((resolve, reject) => {
        void open(async (tx) => {
          resolve(await work(tx));
          await new Promise<void>((ended) => {
            end = ended;
          });
        }, bounds).catch(reject);
      });
    });
    await expect(unit).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/open whether/),
    });
    end();
    await until(async () => (await store.read(record.identity)).record?.state === "completed");
  });

  test("that rejects with the database's own words while the transaction is still open leaves it open, too", async () => {
    let end = () => {};
    const { unit, record, store } = await unitOpenedBy("worded and open", ({ open }) => (work, bounds) => {
      return new Promise((_resolve, reject) => {
        void open(async (tx) => {
          await work(tx);
          reject(Object.assign(new Error("duplicate key"), { code: "23505" }));
          await new Promise<void>((ended) => {
            end = ended;
          });
        }, bounds);
      });
    });
    await expect(unit).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/open whether/),
    });
    end();
    await until(async () => (await store.read(record.identity)).record?.state === "completed");
  });

  test("may share a pool of one with the store: what stands instead of the ground is read once it is free", async () => {
    const one = new Pool({ connectionString: database.url, max: 1 });
    onTestFinished(() => one.end());
    const store = postgresStore({ pool: one, transactions: fromPg(one) });
    const record = await begun(store, "one pool");
    const gone = { ...seen(record), owner: "somebody else" };
    const work = async () => ({ kind: "rollback", value: null }) as const;
    const refused = await store.fenced({ kind: "held", seen: gone }, work, { idleMs: 600_000 });
    expect(refused).toMatchObject({ kind: "refused", record });
    const write = completedFrom(record);
    const done = store.fenced({ kind: "held", seen: seen(record) }, async () => {
      return { kind: "commit", write, value: "mine" };
    });
    expect(await done).toMatchObject({ kind: "committed", value: "mine" });
  });

  test("whose connection ends under work that waits for something else says once that nothing was applied", async () => {
    const store = postgresStore({ pool, transactions: source });
    const unit = store.transaction(async (tx) => {
      const [me] = await source.send(tx, "SELECT pg_backend_pid()::text AS pid");
      await database.admin.query("select pg_terminate_backend($1)", [Number(me?.["pid"])]);
      return await new Promise<never>(() => {});
    });
    const error = await unit.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "store_unavailable" });
    expect(String(error).match(/nothing of it was applied/g)).toHaveLength(1);
  });

  test("cannot pass on a success while the store's own way to the database is blocked", async () => {
    const door = await openDoor(database.url);
    const own = new Pool({ connectionString: door.url });
    own.on("error", () => {});
    onTestFinished(async () => {
      await own.end();
      await door.close();
    });
    const store = postgresStore({ pool: own, transactions: source });
    const record = await begun(store, "blocked");
    door.cutAt("pg_xact_status", "before it is sent");
    const unit = store.fenced({ kind: "held", seen: seen(record) }, async () => {
      return { kind: "commit", write: completedFrom(record), value: null };
    });
    await expect(unit).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/open whether/),
    });
  });

  test("that has no connection to give meets a store out of reach, and nothing was sent", async () => {
    const nowhere = fromPg(new Pool({ connectionString: "postgres://nobody@127.0.0.1:1/none" }));
    const { unit } = await unitOpenedBy("nowhere", () => nowhere.open);
    await expect(unit).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/Nothing was sent/),
    });
  });

  test.each([
    ["before it is sent", "in_progress"],
    ["before its reply", "completed"],
  ] as const)(
    "whose connection is cut at COMMIT %s: the database is asked, and has the last word",
    async (moment, state) => {
      const door = await openDoor(database.url);
      const theirs = new Pool({ connectionString: door.url });
      theirs.on("error", () => {});
      onTestFinished(async () => {
        await theirs.end();
        await door.close();
      });
      const { unit, store, record } = await unitOpenedBy(`cut ${moment}`, () => {
        const layer = fromPg(theirs);
        return (work, bounds) =>
          layer.open(async (tx) => {
            const value = await work(tx);
            door.cutAt("COMMIT", moment);
            return value;
          }, bounds);
      });
      if (state === "completed") expect(await unit).toMatchObject({ kind: "committed" });
      else
        await expect(unit).rejects.toMatchObject({
          message: expect.stringMatching(/nothing of it was applied/),
        });
      expect((await store.read(record.identity)).record?.state).toBe(state);
    },
  );
});
