import { Client, Pool, type PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { claim } from "../../src/core/transition.ts";
import { askedFor } from "../../src/engine/begin.ts";
import type { Worked } from "../../src/engine/transaction.ts";
import { postgresStore } from "../../src/stores/postgres/index.ts";
import { sweep } from "../../src/worker/tick.ts";
import { openDoor } from "../stores/postgres-server.ts";
import { postgresIsHere } from "../support/databases.ts";
import { until } from "../support/processes.ts";
import {
  answerOf,
  lapsed,
  ofType,
  proceeded,
  requestFor,
  SHORT,
  sqlEngineOn,
  standing,
  stoppedRuntime,
} from "./engines.ts";
import { openPostgres, rowOf, type Sql } from "./stores.ts";

const KEPT: Worked<string> = { kind: "keep", state: "completed", answer: answerOf("kept"), value: "mine" };
const local = (key: string) => requestFor(key, { effects: "transaction" });

describe.skipIf(!postgresIsHere())("a transaction on PostgreSQL", () => {
  let sql: Sql<PoolClient>;
  let admin: Client;
  beforeAll(async () => {
    sql = await openPostgres();
    admin = new Client({ connectionString: sql.url });
    await admin.connect();
  });
  afterAll(async () => {
    await admin.end();
    await sql.close();
  });

  test("that PostgreSQL ends as the victim of a deadlock (40P01) runs again as a whole, under the same claim", async () => {
    const [one, two] = [rowOf("deadlock", "one"), rowOf("deadlock", "two")];
    for (const { id, key, state } of [one, two])
      await admin.query("INSERT INTO effects (id, key, state) VALUES ($1, $2, $3)", [id, key, state]);
    const attempt = proceeded(await sqlEngineOn(sql.store).engine.begin(local("deadlock")));
    const codes: unknown[] = [];
    let runs = 0;
    await admin.query("BEGIN; SET LOCAL deadlock_timeout = '30s'");
    await admin.query("UPDATE effects SET state = 'theirs' WHERE id = $1", [two.id]);
    const work = async (tx: PoolClient): Promise<Worked<string>> => {
      runs += 1;
      await tx.query("UPDATE effects SET state = state || ' ours' WHERE id = $1", [one.id]);
      if (runs === 1)
        void admin
          .query("UPDATE effects SET state = 'theirs' WHERE id = $1", [one.id])
          .then(() => admin.query("COMMIT"));
      try {
        await tx.query("UPDATE effects SET state = state || ' ours' WHERE id = $1", [two.id]);
      } catch (error) {
        codes.push(error instanceof Error && "code" in error ? error.code : error);
        throw error;
      }
      return KEPT;
    };
    const { number } = attempt;
    expect(await attempt.transaction(work)).toMatchObject({
      kind: "committed",
      value: "mine",
      record: { attempt: number },
    });
    expect([runs, codes]).toEqual([2, ["40P01"]]);
    const states = (await sql.rows("deadlock")).map(({ state }) => state);
    expect(states).toEqual(["theirs ours", "theirs ours"]);
  });

  test("that PostgreSQL cannot serialise (40001) runs again as a whole", async () => {
    const attempt = proceeded(await sqlEngineOn(sql.store).engine.begin(local("40001")));
    let runs = 0;
    const work = async (tx: PoolClient) => {
      runs += 1;
      await sql.put(tx, rowOf("40001"));
      if (runs < 3) await tx.query("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$");
      return KEPT;
    };
    expect(await attempt.transaction(work)).toMatchObject({ kind: "committed" });
    expect([runs, (await sql.rows("40001")).length]).toEqual([3, 1]);
  });

  /** A store whose connections are cut at the COMMIT of the first run of a unit, once `arm` was told which run it is. */
  async function behindDoor(moment: "before it is sent" | "before its reply") {
    const door = await openDoor(sql.url);
    const pool = new Pool({ connectionString: door.url });
    onTestFinished(async () => {
      await pool.end();
      await door.close();
    });
    const arm = (run: number) => door.cutAt(run === 1 ? "COMMIT\0" : "\0never\0", moment);
    return { store: postgresStore<PoolClient>({ pool }), arm };
  }

  test.each([
    ["before its reply", "had committed", 1],
    ["before it is sent", "had not committed", 2],
  ] as const)(
    "whose connection is cut at COMMIT %s, and which %s, runs so often: %i",
    async (moment, _what, expected) => {
      const { store, arm } = await behindDoor(moment);
      const { engine, events } = sqlEngineOn(store);
      const request = local(`cut ${moment}`);
      const attempt = proceeded(await engine.begin(request));
      let runs = 0;
      const work = async (tx: PoolClient) => {
        runs += 1;
        await sql.put(tx, rowOf(request.identity.key));
        arm(runs);
        return KEPT;
      };
      expect(await attempt.transaction(work)).toMatchObject({ kind: "committed" });
      expect(runs).toBe(expected);
      expect(await sql.rows(request.identity.key)).toHaveLength(1);
      expect(await standing(sql.store, request)).toMatchObject({
        state: "completed",
        attempt: attempt.number,
      });
      expect(ofType(events, "lease_lost")).toEqual([]);
    },
  );

  test("that is open beyond its lease is not taken over: duplicates are told to wait at once, workers pass", async () => {
    const request = local("open");
    const { engine } = sqlEngineOn(sql.store, { ...SHORT, runtime: stoppedRuntime() });
    const attempt = proceeded(await engine.begin(request));
    let inside = false;
    let open = true;
    onTestFinished(() => {
      open = false;
    });
    const transacting = attempt.transaction(async (tx) => {
      await sql.put(tx, rowOf("open"));
      inside = true;
      while (open) await tx.query("select pg_sleep(0.005)"); // idle for as long as its lease, it would be ended
      return KEPT;
    });
    await until(() => inside);
    await lapsed(sql.store, request);
    const other = sqlEngineOn(sql.other, { sweepGrace: 1 });
    expect(await other.engine.begin(request)).toMatchObject({ kind: "in_progress", retryAfterMs: 1000 });
    await until(async () => (await sweep(other.engine)).passed === 1);
    expect(await sweep(other.engine)).toMatchObject({ released: 0, doubted: 0, passed: 1 });
    open = false;
    expect(await transacting).toMatchObject({ kind: "committed" });
    expect(await sql.rows("open")).toHaveLength(1);
    expect(await other.engine.begin(request)).toMatchObject({ kind: "replay" });
  });

  test.each(["one", "two"] as const)(
    "whose record a trigger keeps from being written commits nothing, with commits: %s",
    async (commits) => {
      const { engine } = sqlEngineOn(sql.store);
      const event = commits === "one" ? "INSERT" : "UPDATE";
      await admin.query(`CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER swallow BEFORE ${event} ON oncekey_records FOR EACH ROW EXECUTE FUNCTION swallow()`);
      const key = `swallowed ${commits}`;
      const call = engine.runInTransaction(
        { operation: "o", principal: "alice", key, commits },
        async (tx) => {
          await sql.put(tx, rowOf(key));
        },
      );
      await expect(call).rejects.toBeInstanceOf(Error);
      await admin.query("DROP FUNCTION swallow CASCADE");
      expect(await sql.rows(key)).toEqual([]);
    },
  );

  test("CR-05: a claim that waited for somebody's open insert is made once that rolls back, and runs", async () => {
    const { engine } = sqlEngineOn(sql.store);
    const request = requestFor("rolled back");
    const begun = await sql.other.transaction(async (tx) => {
      const draft = { ...askedFor(engine.context, request).claim, owner: "somebody else" };
      await sql.other.within(tx).insert(claim(draft));
      const claiming = engine.begin(request);
      await until(async () => {
        const { rows } = await admin.query("select 1 from pg_locks where not granted");
        return rows.length > 0;
      });
      return { kind: "rollback", value: { claiming } };
    });
    const attempt = proceeded(await begun.claiming);
    expect(await attempt.complete(answerOf("ran"))).toMatchObject({ kind: "kept" });
    expect(await standing(sql.store, request)).toMatchObject({
      state: "completed",
      owner: attempt.record().owner,
    });
  });

  test.each(["two", "one"] as const)(
    "may sit idle for what is left of its lease and no longer, with commits: %s",
    async (commits) => {
      const pool = new Pool({ connectionString: sql.url, max: 1 });
      onTestFinished(() => pool.end());
      const store = postgresStore<PoolClient>({ pool });
      const { engine } = sqlEngineOn(store, { requestTimeout: "20s", lease: "30s" });
      const request = { operation: "idle", principal: "alice", key: commits, commits };
      const said = await engine.runInTransaction(request, async (tx) => {
        const { rows } = await tx.query(
          "select setting::int as ms from pg_settings where name = 'idle_in_transaction_session_timeout'",
        );
        return Number(rows[0]?.ms);
      });
      expect(said).toBeLessThanOrEqual(30_000);
      expect(said).toBeGreaterThan(20_000);
      const { rows } = await pool.query("show idle_in_transaction_session_timeout");
      expect(rows).toEqual([{ idle_in_transaction_session_timeout: "0" }]);
    },
  );
});
