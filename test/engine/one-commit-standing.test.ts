import type { PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { InProgress, KeyRecord } from "../../src/core/record.ts";
import { type Claim, claim, concludeClaim, doubt, seen, touch } from "../../src/core/transition.ts";
import type { BeginRequest } from "../../src/engine/begin.ts";
import { bindFingerprint } from "../../src/engine/fingerprint.ts";
import { inputFingerprint } from "../../src/engine/input.ts";
import type { Store } from "../../src/stores/store.ts";
import { claimOf } from "../stores/sample.ts";
import { postgresIsHere } from "../support/databases.ts";
import { answerOf, died, ofType, proceeded, requestFor, sqlEngineOn } from "./engines.ts";
import {
  called,
  failing,
  gate,
  identityOf,
  local,
  outcomesOf,
  paying,
  recordOf,
  working,
} from "./one-commit-calls.ts";
import { onEverySqlStore, openPostgres, type Sql } from "./stores.ts";

describe("a claim in its effect's own commit, where a record stands", () => {
  onEverySqlStore((given) => {
    takesOver(given);
    answers(given);
    inherits(given);
  });
});

describe.skipIf(!postgresIsHere())(
  "a claim in its effect's own commit, on PostgreSQL, where a record is held,",
  () => {
    let sql: Sql<PoolClient>;
    beforeAll(async () => {
      sql = await openPostgres();
    });
    afterAll(() => sql.close());

    test.each(["transaction", "none"] as const)(
      "does not wait for whoever holds it, and runs nothing (effects %s)",
      async (effects) => {
        const { store, other } = sql;
        const key = `held ${effects}`;
        await died(store, standingFor(key, { effects }));
        const held = inProgress(await recordOf(store, identityOf(key)));
        const [holding, holds] = [gate(), gate()];
        const holder = other.transaction(async (tx) => {
          await other.within(tx).replace(seen(held), touch(held, { writeId: "a worker's" }), "wait");
          holds.open();
          await holding.opened;
          return { kind: "rollback", value: null };
        });
        await holds.opened;
        const { end, runs } = await calledOn(sql, key);
        holding.open();
        await holder;
        expect(end).toMatchObject({ reason: { code: "in_progress" } });
        expect(runs).toBe(0);
      },
    );
  },
);

function inProgress(record: KeyRecord | null): InProgress {
  if (record?.state !== "in_progress") throw new Error("It is not in progress.");
  return record;
}

/** The same call in the default form, as an earlier release or another route made it. */
const standingFor = (key: string, rest: Partial<BeginRequest> = {}): BeginRequest => ({
  ...requestFor(key, { effects: "transaction" }),
  identity: identityOf(key),
  operation: "transfer",
  fingerprint: inputFingerprint(undefined),
  ...rest,
});

/** Calls once more and tells all that came of it. */
async function calledOn<Tx>(sql: Sql<Tx>, key: string, rest: Parameters<typeof called>[1] = {}) {
  const { engine, events } = sqlEngineOn(sql.store);
  const { work, runs } = working(sql, key);
  const numbers: number[] = [];
  const add = work(() => "made");
  const ran = engine.runInTransaction(called(key, rest), (tx, { number }) => {
    numbers.push(number);
    return add(tx);
  });
  const [end] = await Promise.allSettled([ran]);
  const record = await recordOf(sql.store, identityOf(key));
  return { end, record, events, numbers, runs: runs(), rows: await sql.rows(key) };
}

function takesOver<Tx>(given: () => Sql<Tx>): void {
  test("takes a released one over in one commit, as the next attempt", async () => {
    const { store } = given();
    const attempt = proceeded(await sqlEngineOn(store).engine.begin(standingFor("released")));
    await attempt.release();
    const before = await recordOf(store, identityOf("released"));
    const { end, record, numbers, rows, events } = await calledOn(given(), "released");
    expect(end).toMatchObject({ value: "made" });
    expect(record).toMatchObject({
      state: "completed",
      createdAt: before?.createdAt,
      revision: (before?.revision ?? 0) + 1,
    });
    expect(record?.attempt).toBeGreaterThan(attempt.number);
    expect(numbers).toEqual([record?.attempt]);
    expect([rows.length, outcomesOf(events)]).toEqual([1, ["claimed"]]);
  });

  test("takes one over that is released, with another input, and binds that", async () => {
    const { store } = given();
    await proceeded(await sqlEngineOn(store).engine.begin(standingFor("corrected"))).release();
    expect((await calledOn(given(), "corrected", { input: 2 })).end).toMatchObject({ value: "made" });
    expect((await calledOn(given(), "corrected", { input: 2 })).end).toMatchObject({ value: "made" });
    expect((await calledOn(given(), "corrected", { input: 3 })).end).toMatchObject({
      reason: { code: "key_reused" },
    });
  });

  test("takes one over whose lease has lapsed, as the next attempt, and tells that", async () => {
    const { store } = given();
    const dead = await died(store, standingFor("lapsed"));
    const { end, record, numbers, rows, events } = await calledOn(given(), "lapsed");
    expect(end).toMatchObject({ value: "made" });
    expect(record?.attempt).toBeGreaterThan(dead.number);
    expect(numbers).toEqual([record?.attempt]);
    expect([rows.length, outcomesOf(events)]).toEqual([1, ["stale_reclaimed"]]);
    const moved = { by: "duplicate", from: "in_progress", to: "completed", attempt: record?.attempt };
    expect(ofType(events, "transition")).toMatchObject([moved]);
    expect(await dead.complete(answerOf("too late"))).toMatchObject({ kind: "lost" });
    expect(await recordOf(store, identityOf("lapsed"))).toEqual(record);
  });

  test("starts again in the place of one whose retention is over, as if the key had never been seen", async () => {
    const { store } = given();
    const standing: Claim = { ...ended("over"), operation: "another" };
    const change = {
      writeId: "w",
      state: "completed",
      answer: answerOf("old"),
      keep: { retainMs: -1, tombstoneMs: null },
    } as const;
    await store.insert(concludeClaim(claim(standing), { ...change, attempt: 1 }));
    const { end, record, rows } = await calledOn(given(), "over", { input: "another" });
    expect(end).toMatchObject({ value: "made" });
    expect(record).toMatchObject({ state: "completed", operation: "transfer", revision: 2 });
    expect(rows).toHaveLength(1);
  });
}

/** A claim of long ago. */
function ended(key: string): Claim {
  const { fingerprint, owner, writeId } = claimOf(identityOf(key));
  return {
    ...{ identity: identityOf(key), operation: "transfer", effects: "transaction", correlationId: null },
    ...{ fingerprint, owner, writeId, leaseMs: 1, steps: new Map() },
  };
}

function answers<Tx>(given: () => Sql<Tx>): void {
  test("is told that a live one is in progress, and runs nothing", async () => {
    const { store } = given();
    const attempt = proceeded(await sqlEngineOn(store).engine.begin(standingFor("live")));
    const { end, runs, record, events } = await calledOn(given(), "live");
    expect(end).toMatchObject({ reason: { code: "in_progress" } });
    expect([runs, outcomesOf(events)]).toEqual([0, ["in_progress_conflict"]]);
    expect(record).toEqual(attempt.record());
    const other = await calledOn(given(), "live", { input: 2 });
    expect(other.end).toMatchObject({ reason: { code: "key_reused" } });
    expect(await attempt.complete(answerOf("done"))).toMatchObject({ kind: "kept" });
  });

  test("is told that nobody knows of an unknown one, and runs nothing", async () => {
    const { store } = given();
    const { engine } = sqlEngineOn(store);
    const { commits: _, ...plain } = called("unknown");
    const failing = engine.run(plain, () => {
      throw new Error("silence");
    });
    await expect(failing).rejects.toThrow("silence");
    const before = await recordOf(store, identityOf("unknown"));
    const { end, runs, record, events } = await calledOn(given(), "unknown");
    expect(end).toMatchObject({ reason: { code: "outcome_unknown" } });
    expect([runs, record, outcomesOf(events)]).toEqual([0, before, ["outcome_unknown"]]);
    expect(before?.state).toBe("unknown");
  });

  test("doubts a dead one whose effects may be anywhere, tells that, and runs nothing", async () => {
    const { store } = given();
    await died(store, standingFor("doubted", { effects: "none" }));
    const { end, runs, record, events } = await calledOn(given(), "doubted");
    expect(end).toMatchObject({ reason: { code: "outcome_unknown" } });
    expect(record).toMatchObject({ state: "unknown", disposition: "hold" });
    expect([runs, outcomesOf(events)]).toEqual([0, ["outcome_unknown"]]);
    const moved = { by: "duplicate", from: "in_progress", to: "unknown" };
    expect(ofType(events, "transition")).toMatchObject([moved]);
  });

  test("is told that a record is damaged, once, and runs nothing", async () => {
    const { store, damage } = given();
    await proceeded(await sqlEngineOn(store).engine.begin(standingFor("damaged"))).release();
    await damage();
    const { engine, events } = sqlEngineOn(store);
    const { work, runs } = working(given(), "damaged");
    const ran = engine.runInTransaction(
      called("damaged"),
      work(() => 1),
    );
    await expect(ran).rejects.toMatchObject({ code: "record_corrupt" });
    expect([runs(), ofType(events, "record_corrupt").length]).toEqual([0, 1]);
    expect([await given().rows("damaged"), engine.context.running.size]).toEqual([[], 0]);
  });
}

function inherits<Tx>(given: () => Sql<Tx>): void {
  test("in doubt itself, leaves the doubt that it met as it was once it can never be applied", async () => {
    const { store, rows } = given();
    const request = local("inherited");
    const before = await doubtedCall(store, request);
    const { faulty, engine } = failing(store, []);
    faulty.plan("transaction", 2, "applied_later");
    for (const call of [3, 4, 5, 6]) faulty.plan("transaction", call, "not_applied");
    const attempt = proceeded(await engine.begin(request));
    const transacting = attempt.transaction(paying(given(), "inherited").pay);
    await expect(transacting).rejects.toMatchObject({ code: "store_unavailable" });
    expect(await attempt.release()).toMatchObject({ kind: "kept", record: { state: "unknown" } });
    await faulty.applyHeld();
    const after = await recordOf(store, request.identity);
    expect(after).toMatchObject({ state: "unknown", steps: before.steps });
    expect(await rows("inherited")).toEqual([]);
  });
}

/** The record of an attempt that had called a provider which knows a call again, and heard nothing. */
async function doubtedCall(store: Store, { identity, fingerprint }: BeginRequest): Promise<KeyRecord> {
  const call = { state: "open", provider: "repeatable", generation: 0, keyTtlMs: 86_400_000 } as const;
  const steps = new Map([["pay", { ...call, openedAt: { inMs: 0 }, validUntil: null }]]);
  const bound = bindFingerprint(fingerprint, new Uint8Array(16));
  const write = claimOf(identity, { effects: "declared", steps, fingerprint: bound });
  const { record } = await store.insert(write);
  const evidence = { reason: "Nothing was heard.", result: null };
  const doubted = doubt(inProgress(record), {
    ...{ writeId: "doubt", heldRetainMs: 1_000 },
    doubt: { evidence, disposition: "review", nextLookAt: null },
  });
  await store.replace(seen(record), doubted, "wait");
  const { record: standing } = await store.read(identity);
  if (standing?.state !== "unknown") throw new Error("It is not in doubt.");
  return standing;
}
