import { Hono } from "hono";
import { Client, Pool, type PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { EngineEvent } from "../../src/engine/events.ts";
import { createWatch } from "../../src/engine/watch.ts";
import { protect } from "../../src/http/hono.ts";
import { type PostgresPool, postgresStore } from "../../src/stores/postgres/index.ts";
import type { Settling } from "../../src/stores/store.ts";
import { postgresIsHere } from "../support/databases.ts";
import { until } from "../support/processes.ts";
import { proceeded, requestFor, sqlEngineOn } from "./engines.ts";
import { openPostgres, rowOf, type Sql } from "./stores.ts";
import { attempting, called, gate, keysTold, told } from "./watching.ts";

const INSERT = "INSERT INTO effects (id, key, state) VALUES ($1, $2, $3)";
const valuesOf = (key: string) => Object.values(rowOf(key));

describe.skipIf(!postgresIsHere())("writes of the application's own pg handles", () => {
  let sql: Sql<PoolClient>;
  let pool: Pool;
  beforeAll(async () => {
    sql = await openPostgres();
    pool = poolOn(4);
  });
  afterAll(async () => {
    await pool.end();
    await sql.close();
  });

  function poolOn(max: number): Pool {
    const opened = new Pool({ connectionString: sql.url, max });
    opened.on("error", () => {}); // the drop at the end cuts what a pool is still closing
    return opened;
  }

  /** A pool that ends with its test. */
  function briefly(max: number): Pool {
    const opened = poolOn(max);
    onTestFinished(() => opened.end());
    return opened;
  }

  function watching() {
    const { engine, events } = sqlEngineOn(sql.store);
    return { engine, events, watched: engine.watch(pool) };
  }

  test("are told with the operation, the key and the text, never a value, and are carried out", async () => {
    const { engine, events, watched } = watching();
    const text = `\n  ${INSERT}, ($1 || 'b', $2, $3) -- ${"long".repeat(100)}`;
    await engine.runInTransaction(called("told"), async (tx) => {
      await sql.put(tx, rowOf("told"));
      expect(await watched.query(text, ["a secret", "told", "x"])).toMatchObject({ rowCount: 2 });
    });
    const identity = { kind: "run", principal: "alice", operation: "transfer", key: "told" };
    const statement = text.trim().slice(0, 200);
    expect(told(events)).toEqual([
      { type: "write_outside_transaction", operation: "transfer", identity, statement },
    ]);
    expect(JSON.stringify(events)).not.toContain("a secret");
    expect(await sql.rows("told")).toHaveLength(3);
  });

  type Write = (watched: Pool, values: string[], engine: Engine<PoolClient, Settling>) => Promise<unknown>;
  const ways: Readonly<Record<string, Write>> = {
    "the pool": (watched, values) => watched.query(INSERT, values),
    "a config object": (watched, values) => watched.query({ text: INSERT, values }),
    "a callback": (watched, values) =>
      new Promise((resolve, reject) =>
        watched.query(INSERT, values, (error, result) => (error ? reject(error) : resolve(result))),
      ),
    "a client of the pool": async (watched, values) => {
      const client = await watched.connect();
      await client.query(INSERT, values).finally(() => client.release());
    },
    "a client handed to a callback": (watched, values) =>
      new Promise((resolve, reject) =>
        watched.connect((unconnected, client, done) => {
          if (client === undefined) return reject(unconnected);
          client.query(INSERT, values, (error, result) => {
            done();
            if (error) reject(error);
            else resolve(result);
          });
        }),
      ),
    "a client of its own": async (_, values, engine) => {
      const client = await engine.watch(new Client({ connectionString: sql.url })).connect();
      await client.query(INSERT, values).finally(() => client.end());
    },
  };
  test.each(Object.entries(ways))("are told, and done, through %s", async (way, write) => {
    const { engine, events, watched } = watching();
    await attempting(engine, way, () => write(watched, valuesOf(way), engine));
    expect(told(events)).toMatchObject([{ identity: { key: way }, statement: INSERT }]);
    expect(await sql.rows(way)).toHaveLength(1);
  });

  test("that fail do so as they would unwatched", async () => {
    const { engine, events, watched } = watching();
    const values = valuesOf("twice");
    await pool.query(INSERT, values);
    const failing = attempting(engine, "twice", () => watched.query(INSERT, values));
    await expect(failing).rejects.toMatchObject({ name: "error", code: "23505", table: "effects" });
    expect(keysTold(events)).toEqual(["twice"]);
  });

  test("are silent as reads are, outside an attempt, and in one that has declared nothing", async () => {
    const { engine, events, watched } = watching();
    const write = async () => void (await watched.query(INSERT, valuesOf("silent")));
    await write();
    await engine.run(called("silent run"), write);
    await engine.runInTransaction(called("silent"), async (tx) => {
      await sql.put(tx, rowOf("silent"));
      await watched.query("SELECT 1");
      await engine.run(called("silent inner"), write);
    });
    await write();
    expect(await sql.rows("silent")).toHaveLength(5);
    expect(told(events)).toEqual([]);
  });

  test("are told while their handler goes on, though its attempt has ended", async () => {
    const { engine, events, watched } = watching();
    const { open, opened } = gate();
    const attempt = proceeded(await engine.begin(requestFor("late", { effects: "transaction" })));
    const handler = attempt.watched(() => opened.then(() => watched.query(INSERT, valuesOf("late"))));
    await attempt.release();
    open();
    await handler;
    expect(keysTold(events)).toEqual(["late"]);
  });

  test("are told while their attempt goes on, though its handler has settled, and no longer", async () => {
    const { engine, events, watched } = watching();
    const [before, after] = [gate(), gate()];
    const attempt = proceeded(await engine.begin(requestFor("left", { effects: "transaction" })));
    const write = () => watched.query(INSERT, valuesOf("left"));
    const { left } = await attempt.watched(async () => ({
      left: [before, after].map(({ opened }) => opened.then(write)),
    }));
    before.open();
    await left[0];
    expect(keysTold(events)).toEqual(["left"]);
    await attempt.release();
    after.open();
    await left[1];
    expect(keysTold(events)).toEqual(["left"]);
  });

  test("belong to the attempt that gave the callback, whoever's release lets it be called", async () => {
    const { engine, events } = watching();
    const watched = engine.watch(briefly(1));
    let asked = 0;
    const inserting = (key: string) =>
      new Promise<void>((resolve, reject) => {
        asked += 1;
        watched.connect(async (_, client, done) => {
          await until(() => asked === 2);
          client?.query(INSERT, valuesOf(key), (error) => {
            done();
            if (error) reject(error);
            else resolve();
          });
        });
      });
    await Promise.all(["first", "second"].map((key) => attempting(engine, key, () => inserting(key))));
    expect([...keysTold(events)].sort()).toEqual(["first", "second"]);
  });

  test("that a listener makes are not told", async () => {
    const { engine, events, watched } = watching();
    const heard: Promise<unknown>[] = [];
    engine.subscribe(({ type }) => {
      if (type === "write_outside_transaction") heard.push(watched.query(INSERT, valuesOf("heard")));
    });
    await attempting(engine, "listened", () => watched.query(INSERT, valuesOf("listened")));
    await Promise.all(heard);
    expect([keysTold(events), (await sql.rows("heard")).length]).toEqual([["listened"], 1]);
  });

  /** An engine whose store's pool it watches itself. */
  function watchingItsOwn(max: number) {
    const raw = briefly(max);
    let source = raw;
    const late: PostgresPool<PoolClient> = {
      ...{ connect: () => source.connect(), totalCount: 0 },
      ...{ on: () => undefined, off: () => undefined },
    };
    const { engine, events } = sqlEngineOn(postgresStore<PoolClient>({ pool: late }));
    source = engine.watch(raw);
    return { engine, events, watched: source };
  }

  test("are not those of the transaction itself, nor of the store, where both come from the watched pool", async () => {
    const { engine, events, watched } = watchingItsOwn(3);
    await engine.runInTransaction(called("own"), async (tx) => {
      await tx.query(INSERT, valuesOf("own"));
      await engine.run(called("own inner"), () => tx.query(INSERT, valuesOf("own")).then(() => 1));
    });
    expect([told(events), (await sql.rows("own")).length]).toEqual([[], 2]);
    await engine.runInTransaction(called("other"), () =>
      watched.query(INSERT, valuesOf("other")).then(() => 1),
    );
    expect(keysTold(events)).toEqual(["other"]);
  });

  test("are told of a client, too, that a transaction had before", async () => {
    const { engine, events, watched } = watchingItsOwn(1);
    await engine.runInTransaction(called("before"), (tx) => tx.query(INSERT, valuesOf("lent")).then(() => 1));
    await attempting(engine, "lent", async () => {
      const client = await watched.connect();
      await client.query(INSERT, valuesOf("lent")).finally(() => client.release());
    });
    expect([keysTold(events), (await sql.rows("lent")).length]).toEqual([["lent"], 2]);
  });

  test("are told of a client that the engine has given back, though its work goes on; one it holds is its own", async () => {
    const events: EngineEvent[] = [];
    const { watch, within, ours } = createWatch((event) => events.push(event));
    const watched = watch(briefly(1));
    const write = (client: PoolClient, key: string) => client.query(INSERT, valuesOf(key));
    const attempt = { ...requestFor("given back", { effects: "transaction" }), hasEnded: () => false };
    await within(attempt, () =>
      ours(async (theirs) => {
        const held = await watched.connect();
        await theirs(() => write(held, "held"));
        held.release();
        const again = await theirs(() => watched.connect());
        await theirs(() => write(again, "given back"));
        again.release();
        expect(again === held).toBe(true);
      }),
    );
    expect(told(events)).toMatchObject([{ statement: INSERT }]);
    expect(await sql.rows("held")).toHaveLength(1);
  });

  test("come through stand-ins that are their handles in everything else", async () => {
    const { engine, watched } = watching();
    expect(watched).toBeInstanceOf(Pool);
    expect(engine.watch(watched) === watched).toBe(true);
    expect(watched.query).toBe(watched.query);
    const released: unknown[] = [];
    const listener = (_: unknown, client: unknown) => released.push(client);
    expect(watched.on("release", listener) === watched).toBe(true);
    const client = await watched.connect();
    expect(watched.totalCount).toBe(pool.totalCount);
    client.release();
    watched.off("release", listener);
    (await watched.connect()).release();
    expect(released).toHaveLength(1);
  });

  test("are told of a route of Hono's, before and after its transaction; its own rows and another route's are not", async () => {
    const { engine, events, watched } = watching();
    const principal = () => "alice";
    const app = new Hono()
      .post(
        "/transfers",
        protect(engine, { principal, effects: "transaction" }, async (_, { transaction }) => {
          await watched.query(INSERT, valuesOf("route"));
          const kept = await transaction(async (tx) => {
            await sql.put(tx, rowOf("route"));
            return { status: 201 };
          });
          await watched.query("DELETE FROM effects WHERE key = 'nobody'");
          return kept;
        }),
      )
      .post(
        "/charges",
        protect(engine, { principal }, async (c) => {
          await watched.query(INSERT, valuesOf("route"));
          return c.text("made", 201);
        }),
      );
    for (const path of ["/transfers", "/charges"]) {
      const headers = { "Idempotency-Key": `k${path}` };
      expect((await app.request(path, { method: "POST", headers })).status).toBe(201);
    }
    expect(told(events).map(({ operation, statement }) => [operation, statement])).toEqual([
      ["POST /transfers", INSERT],
      ["POST /transfers", "DELETE FROM effects WHERE key = 'nobody'"],
    ]);
    expect(await sql.rows("route")).toHaveLength(3);
  });
});
