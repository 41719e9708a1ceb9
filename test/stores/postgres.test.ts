import { types } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Identity } from "../../src/core/record.ts";
import { seen } from "../../src/core/transition.ts";
import { RecordCorrupt } from "../../src/errors.ts";
import { recordId } from "../../src/stores/codec.ts";
import type { Store } from "../../src/stores/store.ts";
import { postgresIsHere } from "../support/databases.ts";
import { until } from "../support/processes.ts";
import {
  begun,
  completedFrom,
  lockWaits,
  type Opened,
  openTestDatabase,
  renewed,
  type TestDatabase,
} from "./postgres-server.ts";
import { claimOf, httpIdentity } from "./sample.ts";

describe.skipIf(!postgresIsHere())("the PostgreSQL store", () => {
  let database: TestDatabase;
  let store: Opened["store"];
  beforeAll(async () => {
    database = await openTestDatabase();
    store = database.open().store;
  });
  afterAll(() => database.close());

  test("DB-01: of two claims at once one wins and the other gets its record, which is not rewritten, 300 times over", async () => {
    const [a, b] = [database.open({ max: 1 }).store, database.open({ max: 1 }).store];
    for (let round = 0; round < 300; round += 1) {
      const identity = httpIdentity(`race ${round}`);
      const both = await Promise.all([a, b].map((each) => each.insert(claimOf(identity))));
      const [winner, loser] = both.toSorted((x, y) => Number(y.inserted) - Number(x.inserted));
      expect([winner?.inserted, loser?.inserted]).toEqual([true, false]);
      expect(loser?.record).toEqual(winner?.record);
    }
    const identity = httpIdentity("race 0");
    const before = await tracesOn(database, identity);
    await store.insert(claimOf(identity));
    expect(await tracesOn(database, identity)).toEqual(before);
  });

  test("DB-01: a claim that waits for another's commit finds the record that its own snapshot cannot show", async () => {
    const identity = httpIdentity("waits for the commit");
    let waiter: ReturnType<Store["insert"]> | undefined;
    const won = await store.transaction(async (tx) => {
      const { record } = await store.within(tx).insert(claimOf(identity));
      waiter = store.insert(claimOf(identity));
      await database.waiting(1);
      return { kind: "commit", value: record };
    });
    expect(await waiter).toMatchObject({ inserted: false, record: won });
  });

  test("a claim that waits for another's rollback wins", async () => {
    const identity = httpIdentity("waits for the rollback");
    let waiter: ReturnType<Store["insert"]> | undefined;
    await store.transaction(async (tx) => {
      await store.within(tx).insert(claimOf(identity));
      waiter = store.insert(claimOf(identity));
      await database.waiting(1);
      return { kind: "rollback", value: undefined };
    });
    expect(await waiter).toMatchObject({ inserted: true });
  });

  test("nobody waits for a transaction that claims or holds a record", async () => {
    const fresh = httpIdentity("claimed in a transaction");
    const held = await begun(store, "held by a transaction");
    await store.transaction(async (tx) => {
      expect(await store.within(tx).tryClaim(fresh)).toBe(true);
      await store.within(tx).insert(claimOf(fresh));
      await store.within(tx).replace(seen(held), renewed(held), "wait");

      await store.transaction(async (other) => {
        expect(await store.within(other).tryClaim(fresh)).toBe(false);
        expect(await store.within(other).tryClaim(httpIdentity("another"))).toBe(true);
        const replaced = await store.within(other).replace(seen(held), renewed(held), "never");
        expect(replaced).toMatchObject({ kind: "locked", record: held });
        return { kind: "rollback", value: undefined };
      });
      expect(await store.replace(seen(held), renewed(held), "never")).toMatchObject({ kind: "locked" });
      expect(await store.insert(claimOf(held.identity))).toMatchObject({ inserted: false, record: held });
      expect(await lockWaits(database.admin)).toBe(0);
      return { kind: "rollback", value: undefined };
    });
    expect(
      await store.transaction(async (tx) => {
        return { kind: "rollback", value: await store.within(tx).tryClaim(fresh) };
      }),
    ).toBe(true);
  });

  test("a replace that waits learns what the holder of the lock made of the record", async () => {
    const held = await begun(store, "waited for");
    let waiter: ReturnType<Store["replace"]> | undefined;
    const ended = completedFrom(held);
    await store.transaction(async (tx) => {
      await store.within(tx).replace(seen(held), ended, "wait");
      waiter = store.replace(seen(held), renewed(held), "wait");
      await database.waiting(1);
      return { kind: "commit", value: undefined };
    });
    expect(await waiter).toMatchObject({
      kind: "stale",
      record: { state: "completed", writeId: ended.writeId },
    });
  });

  test("a foreign key to the record never makes a write of the record wait", async () => {
    await database.admin.query(
      "create table orders (id int primary key, record bytea not null unique references oncekey_records (id))",
    );
    const record = await begun(store, "referred to");
    await store.transaction(async (tx) => {
      await tx.query("insert into orders values (1, $1)", [recordId(record.identity)]);
      expect(await store.replace(seen(record), renewed(record), "never")).toMatchObject({ kind: "replaced" });
      return { kind: "rollback", value: undefined };
    });
  });

  test("TX-05: a claim that loses inside the user's own transaction leaves the transaction usable", async () => {
    await database.admin.query("create table effects (name text primary key)");
    const { record } = await store.insert(claimOf(httpIdentity("poison")));
    const { pool } = database.open();
    const client = await pool.connect();
    await client.query("begin");
    await client.query("insert into effects values ('before')");
    expect(await store.within(client).insert(claimOf(record.identity))).toMatchObject({
      inserted: false,
      record,
    });
    await client.query("insert into effects values ('after')");
    await client.query("commit");
    client.release();
    const { rows } = await database.admin.query("select name from effects order by name");
    expect(rows).toEqual([{ name: "after" }, { name: "before" }]);
  });

  test("with serializable as the default, 64 claims of one key at once have one winner and no error", async () => {
    const settings = { default_transaction_isolation: "serializable" };
    const strict = database.open({ max: 16, settings });
    expect((await strict.pool.query("show transaction_isolation")).rows).toEqual([
      { transaction_isolation: "serializable" },
    ]);
    for (let round = 0; round < 5; round += 1) {
      const identity = httpIdentity(`serializable ${round}`);
      const claims = Array.from({ length: 64 }, () => strict.store.insert(claimOf(identity)));
      const standings = await Promise.all(claims);
      const [winner, ...others] = standings.filter(({ inserted }) => inserted);
      expect(others).toEqual([]);
      for (const { record } of standings) expect(record).toEqual(winner?.record);
    }
    const isolation = await strict.store.transaction(async (tx) => {
      return { kind: "commit", value: (await tx.query("show transaction_isolation")).rows };
    });
    expect(isolation).toEqual([{ transaction_isolation: "read committed" }]);
  });

  test("no setting of a session, no flag of the driver and no type parser of the process changes a record", async () => {
    const plain = await store.replace(...(await completing(store, "odd settings")), "wait");
    const odd = database.open({
      ...{ binary: true },
      settings: {
        ...{ TimeZone: "Asia/Kathmandu", DateStyle: "Postgres, DMY", IntervalStyle: "sql_standard" },
        ...{ bytea_output: "escape", extra_float_digits: "-15", standard_conforming_strings: "off" },
      },
    });
    const oids = [16, 17, 20, 21, 23, 25, 701, 1114, 1184, 1700, 2278];
    const parsers = oids.map((oid) => [oid, types.getTypeParser(oid)] as const);
    for (const oid of oids) types.setTypeParser(oid, () => "parsed by somebody else");
    try {
      const { record, now } = await odd.store.read(httpIdentity("odd settings"));
      expect(record).toEqual(plain.record);
      expect(Math.abs(now - Date.now())).toBeLessThan(60_000);
      const written = await odd.store.replace(...(await completing(odd.store, "odd settings too")), "wait");
      expect(await store.read(httpIdentity("odd settings too"))).toMatchObject({ record: written.record });
      const listed = await odd.store.list({ limit: 1, key: "odd settings" });
      expect(listed.records).toEqual([plain.record]);
      expect((await odd.store.count()).byState.completed).toBeGreaterThan(1);
      await odd.store.check();
    } finally {
      for (const [oid, parser] of parsers) types.setTypeParser(oid, parser);
    }
  });

  test("every instant comes back to the millisecond, in every time zone", async () => {
    for (const TimeZone of ["UTC", "Africa/Monrovia", "Asia/Kathmandu", "Pacific/Kiritimati"]) {
      const there = database.open({ settings: { TimeZone } }).store;
      for (const at of [0, 1, 20, 300, 4_000, 63_072_000_000, 1_700_000_000_120, 8_640_000_000_000_000]) {
        const write = { ...claimOf(httpIdentity(`${TimeZone} ${at}`)), createdAt: { at } };
        await there.insert(write);
        expect((await there.read(write.identity)).record?.createdAt).toBe(at);
      }
    }
  });

  test("an attempt number is never given twice, not even once the record is purged", async () => {
    const [seenRecord, write] = await completing(store, "numbers");
    const ended = await store.replace(seenRecord, { ...write, ...{ retainUntil: { inMs: 0 } } }, "wait");
    await until(async () => {
      await store.purge(100);
      return (await store.read(seenRecord.identity)).record === null;
    });
    const again = await store.insert(claimOf(seenRecord.identity));
    expect(again.inserted).toBe(true);
    expect(again.record.attempt).toBeGreaterThan(ended.record?.attempt ?? Number.NaN);
  });

  test("a damaged record is said to be damaged, and does not hide those that are due behind it", async () => {
    const first = await store.insert(claimOf(httpIdentity("damaged"), { leaseMs: 1 }));
    await database.admin.query("update oncekey_records set tail = '{' where id = $1", [
      recordId(first.record.identity),
    ]);
    const second = await store.insert(claimOf(httpIdentity("readable"), { leaseMs: 1 }));
    await expect(store.read(first.record.identity)).rejects.toBeInstanceOf(RecordCorrupt);
    await expect(store.insert(claimOf(first.record.identity))).rejects.toBeInstanceOf(RecordCorrupt);
    await until(async () => (await store.due({ kind: "stale", graceMs: 0, limit: 1 })).records.length > 0);
    const due = await store.due({ kind: "stale", graceMs: 0, limit: 1 });
    expect(due).toMatchObject({ records: [second.record], damaged: 1 });
  });

  test("a wrong UPDATE by hand is told at the next look, and removes nothing that runs", async () => {
    const wrong = [
      ...["state = 'completed'", "state = 'running'", "due_at = null", "revision = -9223372036854775808"],
      ...[withMember("tail", '"answer_status":200'), withMember("tail", '"looks":1')],
      ...[withMember("head", '"identity_operation":"x"'), withMember("head", '"effects":"some"')],
    ];
    for (const assignment of wrong) {
      const { identity } = await begun(store, assignment);
      await byHand(identity, assignment);
      await expect(store.read(identity), assignment).rejects.toMatchObject({ code: "record_corrupt" });
    }
    const { identity } = await begun(store, "runs");
    await byHand(identity, "due_at = due_at - 86400000000");
    await store.purge(100);
    expect((await store.read(identity)).record).toMatchObject({ state: "in_progress" });
  });

  async function byHand(identity: Identity, assignment: string): Promise<void> {
    const update = `update oncekey_records set ${assignment} where id = $1`;
    await database.admin.query(update, [recordId(identity)]);
  }

  test("a row that a foreign key holds stays, and every other row goes", async () => {
    await database.admin.query(
      "create table invoices (record bytea references oncekey_records (id) on delete restrict)",
    );
    const identities = Array.from({ length: 9 }, (_, number) => httpIdentity(`invoice ${number}`));
    for (const identity of identities) {
      const record = await begun(store, identity.key);
      await store.replace(seen(record), completedFrom(record, 0), "wait");
    }
    const held = [identities[0], identities[4]].flatMap((identity) =>
      identity === undefined ? [] : [identity],
    );
    for (const identity of held)
      await database.admin.query("insert into invoices values ($1)", [recordId(identity)]);
    await until(async () => (await store.count()).endedNotPurged === 9);
    expect(await store.purge(1)).toBe(1);
    expect(await store.purge(100)).toBe(6);
    expect(await store.purge(100)).toBe(0);
    const left = await Promise.all(
      identities.map(async (identity) => (await store.read(identity)).record?.identity ?? null),
    );
    expect(left.filter((identity) => identity !== null)).toEqual(held);
    const { endedNotPurged, oldestEndedMs } = await store.count();
    expect([endedNotPurged, oldestEndedMs ?? -1]).toEqual([2, expect.toSatisfy((ms: number) => ms >= 0)]);
  });
});

/** Sets a packed column to what it is with one member more, or in the place of the one before it. */
function withMember(column: "head" | "tail", member: string): string {
  return `${column} = left(${column}, -1) || ',${member}}'`;
}

async function completing(store: Store, key: string) {
  const record = await begun(store, key);
  return [seen(record), completedFrom(record)] as const;
}

/** What a write of the row, a lock on it or a number drawn for it would change. */
async function tracesOn({ admin }: TestDatabase, identity: Identity): Promise<unknown> {
  const { rows } = await admin.query(
    "select r.xmin::text, r.xmax::text, r.ctid::text, last_value from oncekey_records r, oncekey_attempts where id = $1",
    [recordId(identity)],
  );
  return rows;
}
