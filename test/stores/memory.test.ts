import { describe, expect, test } from "vitest";
import type { RecordWrite } from "../../src/core/record.ts";
import { conclude, seen } from "../../src/core/transition.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { answerOf, claimOf, httpIdentity } from "./sample.ts";

const alice = httpIdentity("k");

describe("the memory store", () => {
  test("judges time by the clock that it was given, and says so in every answer", async () => {
    let now = 1_000;
    const store = memoryStore({ now: () => now });
    const { record } = await store.insert(claimOf(alice, { leaseMs: 500 }));
    expect(record).toMatchObject({ createdAt: 1_000, claimedAt: 1_000, updatedAt: 1_000, leaseUntil: 1_500 });
    now = 1_499;
    expect(await store.due({ kind: "stale", graceMs: 0, limit: 9 })).toEqual({
      records: [],
      damaged: 0,
      now,
    });
    now = 1_500;
    expect(await store.due({ kind: "stale", graceMs: 0, limit: 9 })).toEqual({
      records: [record],
      damaged: 0,
      now,
    });
    expect(await store.due({ kind: "stale", graceMs: 1, limit: 9 })).toEqual({
      records: [],
      damaged: 0,
      now,
    });
    expect(await store.read(alice)).toEqual({ record, now });
  });

  test("keeps bytes of its own: what callers do to theirs reaches nothing", async () => {
    const store = memoryStore();
    const body = new Uint8Array([1, 2, 3]);
    const write = claimOf(alice);
    const { record } = await store.insert(write);
    if (record.state !== "in_progress") throw new Error(record.state);
    const ended = conclude(record, {
      writeId: "w",
      state: "completed",
      answer: answerOf(body),
      keep: { retainMs: 1_000, tombstoneMs: null },
    });
    const replaced = await store.replace(seen(record), ended, "wait");
    body.fill(9);
    write.fingerprint.raw.fill(9);
    if (replaced.kind !== "replaced" || replaced.record.state !== "completed") throw new Error(replaced.kind);
    replaced.record.answer.body?.fill(8);
    replaced.record.fingerprint.salt.fill(8);
    expect((await store.read(alice)).record).toMatchObject({
      answer: { body: new Uint8Array([1, 2, 3]) },
      fingerprint: { raw: new Uint8Array(32).fill(2), salt: new Uint8Array(16).fill(1) },
    });
  });

  test("numbers attempts over all keys, and never gives a number twice", async () => {
    const store = memoryStore();
    const attempts: number[] = [];
    for (const key of ["a", "b", "c"]) {
      attempts.push((await store.insert(claimOf(httpIdentity(key)))).record.attempt);
    }
    const again = await store.insert(claimOf(httpIdentity("a")));
    expect(again).toMatchObject({ inserted: false, record: { attempt: attempts[0] } });
    expect(new Set(attempts).size).toBe(3);
    expect(attempts).toEqual([...attempts].sort((one, other) => one - other));
  });

  test("forgets nothing that somebody is still to end, however old it is", async () => {
    let now = 0;
    const store = memoryStore({ now: () => now });
    const base = claimOf(alice);
    if (base.state !== "in_progress") throw new Error(base.state);
    const { leaseUntil: _, ...rest } = base;
    const doubt = {
      evidence: { reason: "?", result: null },
      looks: 0,
      nextLookAt: null,
      retainUntil: { inMs: 1 },
    };
    for (const disposition of ["hold", "review", "reconcile"] as const) {
      const unknown: RecordWrite = {
        ...rest,
        ...doubt,
        state: "unknown",
        disposition,
        identity: httpIdentity(disposition),
      };
      await store.insert(unknown);
    }
    await store.insert(claimOf(httpIdentity("running")));
    now = 1e12;
    expect((await store.count()).endedNotPurged).toBe(1);
    expect([await store.purge(10), await store.purge(10)]).toEqual([1, 0]);
    expect((await store.list({ limit: 9 })).records.map(({ identity }) => identity.key).sort()).toEqual([
      "reconcile",
      "review",
      "running",
    ]);
  });

  test("says that it is not durable and has no transactions", () => {
    expect(memoryStore().capabilities).toMatchObject({ durable: false, transactions: false });
    expect("transaction" in memoryStore()).toBe(false);
  });

  test("refuses what no SQL store could keep, and keeps nothing of it", async () => {
    const store = memoryStore();
    await expect(store.insert(claimOf(httpIdentity("a\0")))).rejects.toMatchObject({
      code: "value_unsupported",
    });
    expect((await store.list({ limit: 1 })).records).toEqual([]);
  });
});
