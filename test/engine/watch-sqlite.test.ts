import { AsyncLocalStorage } from "node:async_hooks";
import { enhance } from "@photostructure/sqlite";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import type { EngineEvent } from "../../src/engine/events.ts";
import { operation } from "../../src/engine/operation.ts";
import { createWatch } from "../../src/engine/watch.ts";
import { type SqliteConnection, sqliteStore } from "../../src/stores/sqlite/index.ts";
import { sqliteDriver } from "../support/databases.ts";
import { requestFor, sqlEngineOn } from "./engines.ts";
import { openSqlite, rowOf, type Sql } from "./stores.ts";
import { attempting, called, keysTold, told } from "./watching.ts";

describe("writes of the application's own SQLite database", () => {
  let sql: Sql<SqliteConnection>;
  beforeAll(async () => {
    sql = await openSqlite();
  });
  afterAll(() => sql.close());

  const open = () => new (sqliteDriver())(sql.url.replace("sqlite:", ""));

  function watching() {
    const { engine, events } = sqlEngineOn(sql.store);
    const watched = engine.watch(open());
    onTestFinished(() => watched.close());
    return { engine, events, watched };
  }

  test("are told, and done, by whatever runs the statement, one prepared long before included", async () => {
    const { engine, events, watched } = watching();
    const insert = watched.prepare(
      "INSERT INTO effects (id, key, state) VALUES (?, 'ways', 'x') RETURNING id",
    );
    insert.run("before");
    await attempting(engine, "ways", () => {
      insert.run("run");
      expect(insert.get("get")).toEqual({ id: "get" });
      expect(insert.all("all")).toEqual([{ id: "all" }]);
      watched.exec("/* all */ UPDATE effects SET state = 'y' WHERE key = 'ways'");
      watched.prepare("SELECT * FROM effects").all();
    });
    expect(told(events).map(({ statement }) => statement.slice(0, 16))).toEqual([
      ...Array.from({ length: 3 }, () => "INSERT INTO effe"),
      "/* all */ UPDATE",
    ]);
    expect((await sql.rows("ways")).map(({ state }) => state)).toEqual(["y", "y", "y", "y"]);
  });

  test("are told inside a unit, where SQLite refuses them; the transaction's own are not", async () => {
    const { engine, events, watched } = watching();
    watched.exec("PRAGMA busy_timeout = 0");
    await engine.runInTransaction(called("locked"), (tx) => {
      void sql.put(tx, rowOf("locked"));
      expect(() => watched.exec("DELETE FROM effects")).toThrow(/locked/);
    });
    expect(told(events)).toMatchObject([{ identity: { key: "locked" }, statement: "DELETE FROM effects" }]);
    expect(await sql.rows("locked")).toHaveLength(1);
  });

  /** An engine whose store's connections it watches itself. */
  function watchingItsOwn() {
    let watch = (connection: SqliteConnection) => connection;
    const connections: SqliteConnection[] = [];
    const connect = () => {
      const connection = watch(open());
      connections.push(connection);
      return connection;
    };
    const store = sqliteStore({ connect });
    onTestFinished(() => store.close());
    const { engine, events } = sqlEngineOn(store);
    watch = engine.watch;
    return { engine, events, connections };
  }

  test("are not those of the transaction itself, where its connection is a watched one", async () => {
    const { engine, events, connections } = watchingItsOwn();
    await engine.runInTransaction(called("own"), (tx) => void sql.put(tx, rowOf("own")));
    expect([told(events), (await sql.rows("own")).length]).toEqual([[], 1]);
    const [, ofUnits] = connections;
    await attempting(engine, "kept", () => ofUnits !== undefined && sql.put(ofUnits, rowOf("kept")));
    expect([keysTold(events), (await sql.rows("kept")).length]).toEqual([["kept"], 1]);
  });

  test("are not those of the transaction itself, where the driver's own function opens it", async () => {
    const events: EngineEvent[] = [];
    const { watch, within, ours } = createWatch((event) => events.push(event));
    const database = watch(enhance(open()));
    onTestFinished(() => database.close());
    const put = () => void sql.put(database, rowOf("driver"));
    const attempt = { ...requestFor("driver", { effects: "transaction" }), hasEnded: () => false };
    await within(attempt, () => ours(async (theirs) => database.transaction(() => theirs(put))()));
    expect([told(events), (await sql.rows("driver")).length]).toEqual([[], 1]);
    await within(attempt, () => database.transaction(put)());
    expect([keysTold(events), (await sql.rows("driver")).length]).toEqual([["driver"], 2]);
  });

  test("are silent in an operation that an attempt asks for: in its own transaction and in what it performs", async () => {
    const { engine, events } = watchingItsOwn();
    const watched = engine.watch(open());
    onTestFinished(() => watched.close());
    const settle = operation(engine, {
      name: "settle",
      provider: "blind",
      open: (tx) => {
        void sql.put(tx, rowOf("operation"));
        return "reference";
      },
      perform: async () => void (await sql.put(watched, rowOf("operation"))),
      finish: () => ({ status: 201 }),
    });
    await attempting(engine, "operation", () => settle.execute(requestFor("operation inner"), {}));
    expect([told(events), (await sql.rows("operation")).length]).toEqual([[], 2]);
  });

  test("come through a stand-in even where a handle has properties that nobody may show otherwise", () => {
    const { engine } = sqlEngineOn(sql.store);
    const fixed = () => 1;
    const odd = engine.watch(Object.defineProperty({ query: fixed }, "fixed", { value: fixed }));
    expect(Reflect.get(odd, "fixed")).toBe(fixed);
  });

  test("cost nothing where no handle is watched: no context is entered", async () => {
    const { engine } = sqlEngineOn(sql.store);
    const entered = vi.spyOn(AsyncLocalStorage.prototype, "run");
    onTestFinished(() => entered.mockRestore());
    await engine.runInTransaction(called("unwatched"), () => 1);
    await engine.run(called("unwatched run"), () => 1);
    expect(entered).not.toHaveBeenCalled();
    engine.watch({ query: () => {} });
    await engine.runInTransaction(called("watched"), () => 1);
    expect(entered).toHaveBeenCalled();
  });
});
