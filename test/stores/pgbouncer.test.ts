import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Hono } from "hono";
import type { PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type StoreSubject, storeLaws, unmetNeeds } from "../../src/conformance/index.ts";
import { createEngine } from "../../src/engine/engine.ts";
import { NotRun } from "../../src/engine/not-run.ts";
import { protect } from "../../src/http/hono.ts";
import { recordId } from "../../src/stores/codec.ts";
import type { TransactionalStore } from "../../src/stores/store.ts";
import { freshPostgresDatabase, pgbouncerIsHere, pooled } from "../support/databases.ts";
import type { Pgbouncer } from "../support/pgbouncer.ts";
import { startProcess, until } from "../support/processes.ts";
import { seededRandom } from "../support/seed.ts";
import { openWireTap } from "../support/wire-tap.ts";
import { outliving, pooledSessions } from "./pooled-sessions.ts";
import { storm } from "./pooled-storm.ts";
import { type Opened, openTestDatabase, type TestDatabase } from "./postgres-server.ts";

/** Fewer than anybody would give it, so that almost every transaction meets another's session. */
const POOL_SIZE = 2;

describe.skipIf(!pgbouncerIsHere())("behind PgBouncer in transaction mode the PostgreSQL store", () => {
  let database: TestDatabase;
  let pooler: Pgbouncer;
  beforeAll(async () => {
    database = await openTestDatabase();
    await database.admin.query("create table effects (key text not null)");
    pooler = await pooled({ url: database.url, poolSize: POOL_SIZE });
  });
  afterAll(async () => {
    await database?.close();
    await pooler?.stop();
  });

  /** A store as one process has it: more connections than there are sessions behind them. */
  const open = (url = pooler.url, max = 16): Opened => database.open({ connectionString: url, max });

  describe("keeps what the port promises", () => {
    const named = storeLaws.map((law) => [law.id, law.promise, law] as const);
    let subject: StoreSubject;
    beforeAll(() => {
      const [{ store }, { store: other }] = [open(), open()];
      const spoil = "update oncekey_records set tail = '[' where id = $1";
      subject = {
        ...{ store, another: async () => other, random: seededRandom().fraction },
        pause: (durationMs) => sleep(durationMs),
        damage: async (identity) => void (await database.admin.query(spoil, [recordId(identity)])),
      };
    });

    test("all of it", () => expect(unmetNeeds(subject)).toEqual([]));

    test.each(named)("%s: %s", (_id, _promise, law) => law.check(subject));
  });

  test("DB-10: leaves nothing in a session, whatever it did there", async () => {
    const tap = await openWireTap(pooler.url);
    const before = await pooledSessions({ url: pooler.url, poolSize: POOL_SIZE });
    const opened = [open(tap.url), open(tap.url)];
    const stores = opened.map(({ store }) => store);
    const { swept, purged } = await storm({ stores, random: seededRandom(), steps: 400, atOnce: 16 });
    const after = await pooledSessions({ url: pooler.url, poolSize: POOL_SIZE });

    expect(after).toEqual(before);
    expect(after).toMatchObject(Array(POOL_SIZE).fill({ prepared: [], channels: [], temporary: [] }));
    expect(await advisoryLocks(database, database.url)).toBe(0);
    expect(tap.preparedNames).toEqual([]);
    expect(outliving(tap.texts)).toEqual([]);
    // The storm's own division by zero, and no word of a statement, a transaction or a setting that is not there.
    expect(new Set(tap.complaints)).toEqual(new Set(["22012"]));

    // All of this would be easily said of a storm that did nothing.
    expect(opened.every(({ pool }) => pool.totalCount > POOL_SIZE)).toBe(true);
    expect([swept > 0, purged > 0]).toEqual([true, true]);
    const effects = await effectsOf(database, "call %");
    expect(effects.length).toBeGreaterThan(1);
    expect(effects.filter(({ times }) => times !== 1)).toEqual([]);
    await tap.close();
  });

  test("CR-01: runs one of fifty simultaneous copies to two engines that share nothing else, and answers all", async () => {
    const shops = [openShop(open().store), openShop(open().store)];
    for (let round = 0; round < 10; round += 1) {
      const key = `charge ${round}`;
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, copy) => shops[copy % 2]?.charge(key)),
      );
      const last = await shops[0]?.charge(key);
      const winners = answers.filter((answer) => answer?.status === 201 && !answer.replayed);
      expect(winners).toHaveLength(1);
      const replay = { ...winners[0], replayed: true };
      expect(last).toEqual(replay);
      for (const answer of answers) {
        if (answer === winners[0]) continue;
        if (answer?.status === 409) expect(JSON.parse(answer.body)).toMatchObject({ code: "in_progress" });
        else expect(answer).toEqual(replay);
      }
      expect(await effectsOf(database, key)).toEqual([{ key, times: 1 }]);
    }
  });

  test("runs one of 64 simultaneous calls, and answers those and 64 more while it runs: none waits for a lock", async () => {
    const four = await pooled({ url: database.url, poolSize: 4 });
    const engine = createEngine({ store: open(four.url, 65).store, storeTimeout: 20_000 });
    const request = { operation: "charge", principal: "alice", key: "call of 64" };
    const answers: unknown[] = [];
    const waits: number[] = [];
    let later: Promise<unknown> | undefined;
    const work = async (tx: PoolClient) => {
      await tx.query("insert into effects (key) values ('call of 64')");
      // The first ones may have been answered before this transaction had its session; these meet its locks.
      later = calls();
      // Half a second at least, and as long as it takes the others to be answered.
      await until(async () => {
        waits.push(await waitingForLocks(database));
        return waits.length >= 25 && answers.length === 127;
      });
      return "done";
    };
    const call = async () => {
      const answer = await engine.runInTransaction(request, work).catch((error: unknown) => error);
      answers.push(answer instanceof NotRun ? answer.code : answer);
    };
    const calls = () => Promise.all(Array.from({ length: 64 }, call));
    await calls();
    await later;
    expect(answers).toEqual([...Array(127).fill("in_progress"), "done"]);
    expect(waits.filter((waiting) => waiting > 0)).toEqual([]);
    expect(await effectsOf(database, "call of 64")).toEqual([{ key: "call of 64", times: 1 }]);
    await four.stop();
  });

  test("CL-01: is rid of a process that was killed inside its transaction once the lease is over", async () => {
    const args = ["--input-type=module", "--eval", DIES_INSIDE, pooler.url];
    const child = await startProcess({ command: process.execPath, args, readyWhen: /^inside$/ });
    child.kill("SIGKILL");
    await child.exited;
    const engine = createEngine({ store: open().store });
    const again = () =>
      engine
        .runInTransaction({ operation: "charge", principal: "alice", key: "killed" }, async (tx) => {
          await tx.query("insert into effects (key) values ('killed')");
          return "done";
        })
        .catch((error: unknown) => (error instanceof NotRun ? error.code : error));
    const answers: unknown[] = [];
    await until(async () => {
      answers.push(await again());
      return answers.at(-1) !== "in_progress";
    });
    expect(new Set(answers)).toEqual(new Set(["in_progress", "done"]));
    expect(await effectsOf(database, "killed")).toEqual([{ key: "killed", times: 1 }]);
  });

  test("has its tables made by the command line, which leaves no lock behind", async () => {
    const { url, drop } = await freshPostgresDatabase();
    const through = await pooled({ url, poolSize: POOL_SIZE });
    const migrate = () => spawnSync(process.execPath, [CLI, "migrate", through.url], { encoding: "utf8" });
    expect(migrate()).toMatchObject({ status: 0, stdout: expect.stringMatching(/^Applied to/), stderr: "" });
    expect(migrate()).toMatchObject({ status: 0, stdout: expect.stringMatching(/^Nothing to do/) });
    expect(await advisoryLocks(database, url)).toBe(0);
    await through.stop();
    await drop();
  });
});

test("a statement is known to outlive its transaction by what it does, not by a word in it", () => {
  const outlive = [
    ...["set idle_in_transaction_session_timeout = 1", "SET SESSION x = 1", "reset all", "listen to_me"],
    ...["prepare p as select 1", "deallocate p", "create temp table t ()", "discard all"],
    ...[
      "select pg_advisory_lock(1)",
      "select pg_try_advisory_lock_shared(1)",
      "select set_config('x', '1', false)",
    ],
  ];
  const end = [
    ...["update t\nset x = 1", "set local x = 1", "set transaction read only", "create table temp ()"],
    ...[
      "select pg_advisory_xact_lock(1)",
      "select pg_try_advisory_xact_lock(1)",
      "select set_config('x', '1', true)",
      "commit",
    ],
  ];
  expect(outliving(["begin", ...outlive, ...end])).toEqual(outlive);
  expect(outliving([`begin; ${outlive.join("; ")}; ${end.join(";")}`])).toEqual(outlive);
});

const CLI = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

/** A process that gets as far as its effect, and no further. */
const DIES_INSIDE = `
  import { createEngine } from "oncekey";
  import { postgresStore } from "oncekey/postgres";
  import pg from "pg";
  const pool = new pg.Pool({ connectionString: process.argv[1] });
  const engine = createEngine({ store: postgresStore({ pool }), lease: "4s" });
  await engine.runInTransaction({ operation: "charge", principal: "alice", key: "killed" }, async (tx) => {
    await tx.query("insert into effects (key) values ('killed')");
    console.log("inside");
    await new Promise(() => {});
  });`;

interface Answer {
  readonly status: number;
  readonly replayed: boolean;
  readonly body: string;
}

/** A service with one route, whose effect is a row. */
function openShop(store: TransactionalStore<PoolClient, "async">) {
  const engine = createEngine({ store, storeTimeout: 20_000 });
  const app = new Hono();
  app.post(
    "/charges",
    protect(engine, { principal: () => "alice", effects: "transaction" }, (c, { transaction }) =>
      transaction(async (tx) => {
        await tx.query("insert into effects (key) values ($1)", [c.req.header("idempotency-key")]);
        return { status: 201, json: { id: randomUUID() } };
      }),
    ),
  );
  const charge = async (key: string): Promise<Answer> => {
    const headers = { "content-type": "application/json", "idempotency-key": key };
    const answer = await app.request("/charges", { method: "POST", headers, body: '{"amount":100}' });
    const replayed = answer.headers.get("idempotent-replayed") === "true";
    return { status: answer.status, replayed, body: await answer.text() };
  };
  return { charge };
}

interface Effects {
  readonly key: string;
  readonly times: number;
}

async function effectsOf({ admin }: TestDatabase, pattern: string): Promise<readonly Effects[]> {
  const text = "select key, count(*)::int as times from effects where key like $1 group by key";
  return (await admin.query<Effects>(text, [pattern])).rows;
}

/** How many are held in the database behind `url`. */
async function advisoryLocks({ admin }: TestDatabase, url: string): Promise<number> {
  const text = `select count(*)::int as locks from pg_locks where locktype = 'advisory'
    and database = (select oid from pg_database where datname = $1)`;
  return (await admin.query(text, [new URL(url).pathname.slice(1)])).rows[0].locks;
}

/** Whoever waits just now; one whose lock has been freed and who has not woken up yet waits no more. */
async function waitingForLocks({ admin }: TestDatabase): Promise<number> {
  const text = `select count(*)::int as waiting from pg_stat_activity where datname = current_database()
    and wait_event_type = 'Lock' and cardinality(pg_blocking_pids(pid)) > 0`;
  return (await admin.query(text)).rows[0].waiting;
}
