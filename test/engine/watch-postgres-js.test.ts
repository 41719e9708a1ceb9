import type { PoolClient } from "pg";
import postgres, { type Sql as PostgresJs } from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EngineEvent } from "../../src/engine/events.ts";
import { createWatch } from "../../src/engine/watch.ts";
import { postgresIsHere } from "../support/databases.ts";
import { sqlEngineOn } from "./engines.ts";
import { openPostgres, rowOf, type Sql } from "./stores.ts";
import { attempting, keysTold, told } from "./watching.ts";

describe.skipIf(!postgresIsHere())("writes of the application's own postgres.js", () => {
  let sql: Sql<PoolClient>;
  let db: PostgresJs;
  beforeAll(async () => {
    sql = await openPostgres();
    db = postgres(sql.url, { max: 2, onnotice: () => {} });
  });
  afterAll(async () => {
    await db.end();
    await sql.close();
  });

  function watching() {
    const { engine, events } = sqlEngineOn(sql.store);
    return { engine, events, watched: engine.watch(db) };
  }

  const ways: Readonly<Record<string, (db: PostgresJs, key: string) => Promise<unknown>>> = {
    "a tagged template": async (db, key) => {
      const { id } = rowOf(key);
      await db`insert into effects (id, key, state) values (${id}, ${key}, ${"a secret"})`;
    },
    "a template with a builder": async (db, key) => void (await db`insert into effects ${db(rowOf(key))}`),
    fragments: async (db, key) => {
      const [into, rest] = [db`insert into effects`, db` (id, key, state) `];
      await db`${into}${rest}select ${rowOf(key).id}, ${key}, 'x' ${db`where true`}`;
    },
    "execute()": async (db, key) => {
      const query = db`insert into effects ${db(rowOf(key))}`.execute();
      await query;
    },
    unsafe: async (db, key) =>
      void (await db.unsafe("insert into effects (id, key, state) values ($1, $2, 'x')", [
        rowOf(key).id,
        key,
      ])),
    begin: async (db, key) =>
      void (await db.begin((tx) => [tx`select 1`, tx`insert into effects ${tx(rowOf(key))}`])),
    "a savepoint": async (db, key) =>
      void (await db.begin((tx) => tx.savepoint((sp) => sp`insert into effects ${sp(rowOf(key))}`))),
    "a reserved connection": async (db, key) => {
      const reserved = await db.reserve();
      await reserved`insert into effects ${reserved(rowOf(key))}`.finally(() => reserved.release());
    },
    forEach: async (db, key) => {
      await db`insert into effects ${db(rowOf(key))} returning id`.forEach(() => {});
    },
    "a cursor": async (db, key) => {
      for await (const [row] of db`insert into effects ${db(rowOf(key))} returning key`.cursor(1))
        expect(row).toEqual({ key });
    },
    "values()": async (db, key) => {
      const rows = await db`insert into effects ${db(rowOf(key))} returning key`.values();
      expect([...rows]).toEqual([[key]]);
    },
  };
  test.each(Object.entries(ways))("are told once, and done, through %s", async (way, write) => {
    const { engine, events, watched } = watching();
    await attempting(engine, way, () => write(watched, way));
    expect(keysTold(events)).toEqual([way]);
    expect(told(events)[0]?.statement).toMatch(/^insert into effects/);
    expect(JSON.stringify(events)).not.toContain("a secret");
    expect(await sql.rows(way)).toHaveLength(1);
  });

  test("are not told of a query that is never sent, nor of a read with fragments, nor outside an attempt", async () => {
    const { engine, events, watched } = watching();
    await attempting(engine, "unsent", async () => {
      void watched`insert into effects ${watched(rowOf("unsent"))}`;
      const where = watched`where key = ${"unsent"}`;
      expect([...(await watched`select * from ${watched("effects")} ${where}`)]).toEqual([]);
      expect([
        ...(await watched`select 1 as a, ${watched.json({ b: 1 })}::jsonb as b, ${watched.array([1])}::int[] as c`),
      ]).toEqual([{ a: 1, b: { b: 1 }, c: [1] }]);
    });
    await watched`insert into effects ${watched(rowOf("unsent"))}`;
    expect([told(events), (await sql.rows("unsent")).length]).toEqual([[], 1]);
  });

  test("are not those of a transaction that is the engine's own, nor of its savepoints", async () => {
    const events: EngineEvent[] = [];
    const { watch, within, ours } = createWatch((event) => events.push(event));
    const watched = watch(db);
    const identity = { kind: "http", principal: "alice", key: "own" } as const;
    await within({ identity, operation: "transfer", effects: "transaction", hasEnded: () => false }, () =>
      ours(async (theirs) => {
        await watched.begin(async (tx) => {
          await tx`insert into effects ${tx(rowOf("own"))}`;
          await theirs(async () => {
            await tx`insert into effects ${tx(rowOf("own"))}`;
            await tx.savepoint((sp) => sp`insert into effects ${sp(rowOf("own"))}`);
            await watched`insert into effects ${watched(rowOf("own"))}`;
          });
        });
      }),
    );
    expect([keysTold(events), (await sql.rows("own")).length]).toEqual([["own"], 4]);
  });

  test("leave what the callback of begin brings as it is", async () => {
    const { watched } = watching();
    const brought = { query: () => "of the user's own" };
    expect(await watched.begin(() => brought)).toBe(brought);
  });

  test("that fail do so as they would unwatched", async () => {
    const { engine, watched } = watching();
    const failing = attempting(engine, "fails", () => watched`insert into nowhere values (1)`);
    await expect(failing).rejects.toBeInstanceOf(postgres.PostgresError);
  });
});
