import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { seen } from "../../src/core/transition.ts";
import { postgresStore } from "../../src/stores/postgres/index.ts";
import { postgresJsConnector } from "../../src/stores/postgres/postgres-js.ts";
import type { TransactionalStore } from "../../src/stores/store.ts";
import { postgresIsHere } from "../support/databases.ts";
import { until } from "../support/processes.ts";
import { openWireTap } from "../support/wire-tap.ts";
import { openGate } from "./postgres-js-gate.ts";
import { begun, completedFrom, openDoor, openTestDatabase, type TestDatabase } from "./postgres-server.ts";
import { claimOf, httpIdentity } from "./sample.ts";

type Options = Parameters<typeof postgres<Record<string, never>>>[1];

describe.skipIf(!postgresIsHere())("the store on postgres.js", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase();
    await database.admin.query("create table effects (id text primary key)");
  });
  afterAll(() => database.close());

  /** A store on a `sql` of the test's own; without a time-out of its end a connection in use would hold it up. */
  function storeOn(url: string, options: Options & { readonly idle?: string | number } = {}) {
    const { idle, ...rest } = options;
    const sql = postgres(url, { max: 4, fetch_types: false, backoff: () => 0.02, ...rest });
    onTestFinished(() => sql.end({ timeout: 1 }));
    const settings = idle === undefined ? {} : { idleInTransactionTimeout: idle };
    return { sql, store: postgresStore({ sql, ...settings }) };
  }

  const kill = () =>
    database.admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()`,
    );

  test("sends each statement, and each end of a unit, as one simple message with nothing prepared", async () => {
    const tap = await openWireTap(database.url);
    onTestFinished(() => tap.close());
    const { store } = storeOn(tap.url, { max: 1 });
    await store.read(httpIdentity("opens"));
    const before = tap.texts.length;
    const record = await begun(store, "wire");
    const ground = { kind: "held", seen: seen(record) } as const;
    const ended = await store.fenced(ground, async (tx) => {
      await tx`insert into effects values ('wire')`.simple();
      return { kind: "commit", write: completedFrom(record), value: 1 };
    });
    expect(ended.kind).toBe("committed");
    const [claim, begin, effect, end, ...others] = tap.texts.slice(before);
    expect([claim, begin, effect, end]).toEqual([
      ...[expect.stringMatching(/^SELECT .*claim/), expect.stringMatching(/^BEGIN .*; SELECT/)],
      ...["insert into effects values ('wire')", expect.stringMatching(/; COMMIT$/)],
    ]);
    expect(others).toEqual([]);
    expect([tap.preparedNames, tap.complaints]).toEqual([[], []]);
  });

  test("hands out a template tag whose effect commits with the record, or not at all", async () => {
    const { store, sql } = storeOn(database.url);
    for (const kind of ["commit", "rollback"] as const) {
      await store.transaction(async (tx) => {
        await tx`insert into effects values (${kind})`;
        await store.within(tx).insert(claimOf(httpIdentity(kind)));
        return { kind, value: null };
      });
    }
    expect(await sql`select id from effects where id in ('commit', 'rollback')`).toEqual([{ id: "commit" }]);
    expect((await store.read(httpIdentity("commit"))).record).not.toBeNull();
    expect((await store.read(httpIdentity("rollback"))).record).toBeNull();
  });

  test("says of a COMMIT that was answered with ROLLBACK that nothing was done", async () => {
    const { store } = storeOn(database.url);
    const unit = store.transaction(async (tx) => {
      await tx`select 1 / 0`.catch(() => "swallowed");
      return { kind: "commit", value: "success" };
    });
    await expect(unit).rejects.toMatchObject({ code: "not_performed" });
  });

  test("learns that the server ended a unit that does something else, lets nothing more through, and goes on", async () => {
    const { store } = storeOn(database.url, { max: 1, idle: "100ms" });
    let late: unknown;
    let resumed = false;
    const unit = store.transaction(async (tx) => {
      await tx`insert into effects values ('paused')`;
      await until(async () => resumed);
      try {
        await tx`insert into effects values ('late')`;
        late = "sent";
      } catch (error) {
        late = error;
      }
      return { kind: "commit", value: null };
    });
    await expect(unit).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/nothing of it was applied/),
    });
    // The only connection is somebody else's by now: what the unit sends must not reach them.
    const theirs = store.transaction(async (tx) => {
      resumed = true;
      await until(() => late !== undefined);
      return {
        kind: "commit",
        value: (await tx`select count(*)::int as count from effects where id = 'late'`)[0],
      };
    });
    expect(await theirs).toEqual({ count: 0 });
    expect(late).toMatchObject({ code: "store_unavailable" });
    const { rowCount } = await database.admin.query("select 1 from effects where id in ('paused', 'late')");
    expect(rowCount).toBe(0);
  });

  test("gives connections back from units that never return, once the server has ended their transaction", async () => {
    const { store } = storeOn(database.url, { max: 2, idle: "100ms" });
    const never = () => new Promise<never>(() => {});
    const units = await Promise.allSettled([store.transaction(never), store.transaction(never)]);
    const lost = { status: "rejected", reason: { code: "store_unavailable" } };
    expect(units).toMatchObject([lost, lost]);
    await Promise.all([1, 2, 3].map(() => store.read(httpIdentity("after"))));
  });

  test("outlives the end of idle connections, and the next call works", async () => {
    const { store } = storeOn(database.url);
    for (let round = 0; round < 10; round += 1) {
      const reads = () => Promise.allSettled([1, 2, 3].map(() => store.read(httpIdentity("idle"))));
      await until(async () => (await reads()).every(({ status }) => status === "fulfilled"));
      await kill();
    }
  });

  test("outlives a server that goes away while calls are under way, and uses all its connections afterwards", async () => {
    const gate = await openGate(database.url);
    onTestFinished(() => gate.close());
    const { store } = storeOn(gate.url, { max: 3 });
    let stopped = false;
    const errors = new Set<unknown>();
    const calls = Array.from({ length: 8 }, async () => {
      while (!stopped) {
        await store
          .read(httpIdentity("restart"))
          .catch((error: { readonly code: unknown }) => errors.add(error.code));
        await sleep(1);
      }
    });
    for (let round = 0; round < 10; round += 1) {
      await sleep(20);
      await gate.shut();
      await sleep(30);
      await gate.reopen();
    }
    stopped = true;
    await Promise.all(calls);
    expect([...errors]).toEqual(["store_unavailable"]);
    await allAtOnce(store, 3);
  });

  test("loses no connection to a server that refuses some while it serves others", async () => {
    const role = `oncekey_crowded_${randomBytes(4).toString("hex")}`;
    await database.admin.query(`create role ${role} login connection limit 2; grant all on schema public to ${role};
      grant all on all tables in schema public to ${role}`);
    onTestFinished(async () => void (await database.admin.query(`drop owned by ${role}; drop role ${role}`)));
    const url = new URL(database.url);
    url.username = role;
    const { store } = storeOn(url.href, { max: 6 });
    let refused = 0;
    const calls = Array.from({ length: 12 }, async () => {
      for (let call = 0; call < 40; call += 1) {
        await store.read(httpIdentity("crowded")).catch(() => {
          refused += 1;
        });
      }
    });
    await Promise.all(calls);
    expect(refused).toBeGreaterThan(0);
    await database.admin.query(`alter role ${role} connection limit 10`);
    await allAtOnce(store, 6);
  });

  test("sends nothing that waited too long for a connection", async () => {
    const { store } = storeOn(database.url, { max: 1 });
    let release = () => {};
    const held = store.transaction(async () => {
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return { kind: "rollback", value: null };
    });
    const late = store.insert(claimOf(httpIdentity("too late")));
    await expect(late).rejects.toMatchObject({ code: "store_unavailable", message: /Nothing was sent/ });
    release();
    await held;
    expect((await store.read(httpIdentity("too late"))).record).toBeNull();
  });

  test.each([
    ["short", 1],
    ["long", 30_000_000],
  ])(
    "gives up a %s statement that is not answered, and has the connection again once the server has it",
    async (_length, blanks) => {
      const { sql, store } = storeOn(database.url, { max: 2 });
      const slow = `select pg_sleep(0.5)${" ".repeat(blanks)}`;
      const unanswered = postgresJsConnector(sql, null).lend((link) => link.script(slow), 50);
      await expect(unanswered).rejects.toThrow(/had not answered within 50 ms/);
      await store.read(httpIdentity("meanwhile"));
      await until(async () => (await allAtOnce(store, 2).catch(() => "not yet")) !== "not yet");
    },
  );

  test.each([
    ["before it is sent", null],
    ["before its reply", "completed"],
  ] as const)("leaves it open what became of a COMMIT whose connection is cut %s", async (moment, state) => {
    const door = await openDoor(database.url);
    onTestFinished(() => door.close());
    const { store } = storeOn(door.url);
    const record = await begun(store, moment);
    const unit = store.fenced({ kind: "held", seen: seen(record) }, async () => {
      door.cutAt("; COMMIT", moment);
      return { kind: "commit", write: completedFrom(record), value: null };
    });
    await expect(unit).rejects.toMatchObject({ code: "store_unavailable", message: /it is open whether/ });
    const stands = await database.open().store.read(record.identity);
    expect(stands.record?.state).toBe(state ?? "in_progress");
  });
});

/** Holds so many transactions open at the same time. */
async function allAtOnce<Tx>(store: TransactionalStore<Tx, "async">, many: number): Promise<void> {
  let open = 0;
  const unit = () =>
    store.transaction(async () => {
      open += 1;
      await until(() => open === many);
      return { kind: "rollback", value: null };
    });
  await Promise.all(Array.from({ length: many }, unit));
}
