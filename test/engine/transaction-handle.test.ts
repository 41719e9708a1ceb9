import { drizzle } from "drizzle-orm/node-postgres";
import { Kysely, PostgresDialect, sql as raw } from "kysely";
import { Client, Pool, type PoolClient } from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  fromPg,
  fromPostgresJs,
  type PostgresJsHandle,
  postgresStore,
} from "../../src/stores/postgres/index.ts";
import type { SqliteConnection } from "../../src/stores/sqlite/index.ts";
import type { Awaitable, Settling, TransactionalStore } from "../../src/stores/store.ts";
import { postgresIsHere } from "../support/databases.ts";
import { sqlEngineOn } from "./engines.ts";
import { openPostgres, openSqlite, type Sql } from "./stores.ts";
import { gate } from "./watching.ts";

/** A store whose units have one connection, and how its users send a text on it. */
interface Lending<Tx> {
  readonly store: TransactionalStore<Tx, Settling>;
  readonly send: (tx: Tx, text: string) => Awaitable<unknown>;
  /** The keys of the effects that stand. */
  readonly effects: (key: string) => Promise<number>;
  readonly end: () => Promise<void>;
}

type Open<Tx> = () => Promise<Lending<Tx>>;

const insert = (key: string) => `insert into effects (id, key, state) values ('${key}', '${key}', 'x')`;

function over<Tx, Own>(sql: Sql<Own>, { store, send, end }: Omit<Lending<Tx>, "effects">): Lending<Tx> {
  const effects = async (key: string) => (await sql.rows(key)).length;
  return { store, send, effects, end: () => end().then(() => sql.close()) };
}

const onSqlite: Open<SqliteConnection> = async () => {
  const sql = await openSqlite();
  return over(sql, { store: sql.store, send: (tx, text) => tx.exec(text), end: async () => {} });
};

const onPg: Open<PoolClient> = async () => {
  const sql = await openPostgres();
  const pool = new Pool({ connectionString: sql.url, max: 1 });
  const send = (tx: PoolClient, text: string) => tx.query(text);
  return over(sql, { store: postgresStore<PoolClient>({ pool }), send, end: () => pool.end() });
};

const onPostgresJs: Open<PostgresJsHandle> = async () => {
  const sql = await openPostgres();
  const own = postgres(sql.url, { max: 1, fetch_types: false, onnotice: () => {} });
  const store = postgresStore<PostgresJsHandle>({ sql: own });
  return over(sql, { store, send: sendUnsafe, end: () => own.end({ timeout: 1 }) });
};

const onPgBridge: Open<PoolClient> = async () => {
  const sql = await openPostgres();
  const [pool, layer] = [1, 2].map(() => new Pool({ connectionString: sql.url, max: 1 }));
  if (pool === undefined || layer === undefined) throw new Error("Two were made.");
  const store = postgresStore({ pool, transactions: fromPg(layer) });
  const send = (tx: PoolClient, text: string) => tx.query(text);
  return over(sql, { store, send, end: async () => void (await Promise.all([pool.end(), layer.end()])) });
};

const onPostgresJsBridge: Open<PostgresJsHandle> = async () => {
  const sql = await openPostgres();
  const pool = new Pool({ connectionString: sql.url, max: 1 });
  const own = postgres(sql.url, { max: 1, fetch_types: false, onnotice: () => {} });
  const store = postgresStore<PostgresJsHandle>({ pool, transactions: fromPostgresJs(own) });
  const end = async () => void (await Promise.all([pool.end(), own.end({ timeout: 1 })]));
  return over(sql, { store, send: sendUnsafe, end });
};

function sendUnsafe(tx: PostgresJsHandle, text: string): PromiseLike<unknown> {
  return tx.unsafe(text, [], { prepare: false, onexecute: () => true }).raw();
}

function given<Tx>(open: Open<Tx>): () => Lending<Tx> {
  let opened: Lending<Tx> | undefined;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened?.end());
  return () => {
    if (opened === undefined) throw new Error("It is open only while a test runs.");
    return opened;
  };
}

/** A call whose answer follows its statements, as far as its store lets it wait. */
function after<T>(sent: readonly Awaitable<unknown>[], value: T): Awaitable<T> {
  return sent.some((each) => each instanceof Promise) ? Promise.all(sent).then(() => value) : value;
}

describe("the handle of a transaction on SQLite", () => {
  const lending = given(onSqlite);
  laws(lending);

  test("does nothing late by a statement that was prepared in time, nor by the verbs, and is its driver's own", async () => {
    const { store, effects } = lending();
    let kept: SqliteConnection | undefined;
    let prepared: ReturnType<SqliteConnection["prepare"]> | undefined;
    await store.transaction((tx) => {
      kept = tx;
      prepared = tx.prepare(insert("prepared"));
      expect(tx.constructor.name).toMatch(/Database/);
      return { kind: "commit", value: null };
    });
    const ended = expect.objectContaining({ code: "attempt_ended" });
    expect(() => prepared?.run()).toThrow(ended);
    expect(() => kept?.prepare(insert("prepared"))).toThrow(ended);
    expect(() => kept && store.within(kept).read({ kind: "http", principal: "a", key: "k" })).toThrow(ended);
    expect(await effects("prepared")).toBe(0);
  });
});

describe.skipIf(!postgresIsHere())("the handle of a transaction on PostgreSQL", () => {
  describe("through pg", () => {
    const lending = given(onPg);
    laws(lending);
    late(lending);

    test("is a client in everything else: for its class, its events, and the layers that are put on it", async () => {
      const { store, effects } = lending();
      await store.transaction(async (tx) => {
        expect(tx).toBeInstanceOf(Client);
        expect(tx.constructor).toBe(Object.getPrototypeOf(tx).constructor);
        expect(tx.query).toBe(tx.query);
        const heard: unknown[] = [];
        const listener = (notice: { readonly message?: string | undefined }) => heard.push(notice.message);
        expect(tx.on("notice", listener)).toBe(tx);
        await tx.query("do $$ begin raise notice 'heard'; end $$");
        tx.off("notice", listener);
        expect([heard, tx.listenerCount("notice")]).toEqual([["heard"], 0]);
        tx.release();
        const connection = { connect: async () => tx, end: async () => {} };
        const kysely = new Kysely<object>({ dialect: new PostgresDialect({ pool: connection }) });
        await raw.raw(insert("kysely")).execute(kysely);
        await drizzle(tx).execute(insert("drizzle"));
        await new Promise<void>((resolve, reject) => {
          tx.query(insert("callback"), (error) => (error ? reject(error) : resolve()));
        });
        return { kind: "commit", value: null };
      });
      expect(await Promise.all(["kysely", "drizzle", "callback"].map(effects))).toEqual([1, 1, 1]);
    });
  });

  describe("through postgres.js", () => {
    const lending = given(onPostgresJs);
    laws(lending);
    late(lending);

    test("sends nothing of a query that was made in time and is waited for too late", async () => {
      const { store, effects } = lending();
      let query: PromiseLike<unknown> | undefined;
      await store.transaction(async (tx) => {
        query = sendUnsafe(tx, insert("lazy"));
        return { kind: "commit", value: null };
      });
      await expect(Promise.resolve(query)).rejects.toMatchObject({ code: "attempt_ended" });
      expect(await effects("lazy")).toBe(0);
    });
  });

  describe("through a bridge over pg", () => {
    const lending = given(onPgBridge);
    laws(lending);
    late(lending);
  });

  describe("through a bridge over postgres.js", () => {
    const lending = given(onPostgresJsBridge);
    laws(lending);
    late(lending);
  });
});

function laws<Tx>(lending: () => Lending<Tx>): void {
  const ways = (["one", "two"] as const).flatMap((commits) =>
    ["rollback", "commit", "rollback; begin", "commit; begin"].map((text) => [text, commits] as const),
  );
  test.each(ways)("with a %s on it keeps no answer, commits: %s", async (text, commits) => {
    const { store, send, effects } = lending();
    const { engine } = sqlEngineOn(store);
    const key = `${text} ${commits}`;
    const request = { operation: "transfer", principal: "alice", key, commits };
    const run = engine.runInTransaction(request, (tx) => {
      const sent = [send(tx, insert(key)), send(tx, text)];
      return after(sent, "done");
    });
    await expect(run).rejects.toMatchObject({
      ...{ code: "not_performed", message: expect.stringMatching(/ended inside it.*use a savepoint/) },
    });
    expect(await effects(key)).toBe(text.startsWith("rollback") ? 0 : 1);
    const { record } = await store.read({ kind: "run", principal: "alice", operation: "transfer", key });
    expect(record?.state ?? "none").not.toBe("completed");
    const next = await engine.runInTransaction({ ...request, key: `after ${key}` }, () => "next");
    expect(next).toBe("next");
  });

  test("with a savepoint on it, and one that nobody released, keeps its answer", async () => {
    const { store, send, effects } = lending();
    const { engine } = sqlEngineOn(store);
    const request = { operation: "transfer", principal: "alice", key: "savepoint" };
    const ran = await engine.runInTransaction(request, (tx) => {
      const texts = [
        "savepoint a",
        insert("undone"),
        "rollback to savepoint a",
        "savepoint b",
        insert("kept"),
      ];
      return after(
        texts.map((text) => send(tx, text)),
        "done",
      );
    });
    expect([ran, await effects("undone"), await effects("kept")]).toEqual(["done", 0, 1]);
  });

  test("with a COMMIT and a BEGIN on it is told in a bare transaction of the store too", async () => {
    const { store, send } = lending();
    const unit = store.transaction((tx) =>
      after([send(tx, "commit; begin")], { kind: "commit" as const, value: null }),
    );
    await expect(unit).rejects.toMatchObject({ code: "not_performed" });
  });
}

/** What is sent too late, on the only connection, while it is somebody else's. */
function late<Tx>(lending: () => Lending<Tx>): void {
  test.each(["one", "two"] as const)(
    "sends nothing once it is over, least of all into the next one's transaction, commits: %s",
    async (commits) => {
      const { store, send, effects } = lending();
      const { engine } = sqlEngineOn(store);
      const [first, next] = [`first ${commits}`, `next ${commits}`];
      const isNext = gate();
      let tooLate: Promise<unknown> | undefined;
      const request = { operation: "transfer", principal: "alice", commits };
      const failing = engine.runInTransaction({ ...request, key: first }, async (tx) => {
        tooLate = isNext.opened.then(() => send(tx, insert(first)));
        tooLate.catch(() => {}); // looked at below
        throw new Error("one branch failed");
      });
      await expect(failing).rejects.toThrow("one branch failed");
      await engine.runInTransaction({ ...request, key: next }, async (tx) => {
        await send(tx, insert(next));
        isNext.open();
        await Promise.allSettled([tooLate]);
      });
      await expect(tooLate).rejects.toMatchObject({ code: "attempt_ended" });
      expect([await effects(first), await effects(next)]).toEqual([0, 1]);
    },
  );
}
