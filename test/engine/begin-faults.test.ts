import { describe, expect, test } from "vitest";
import { StoreUnavailable } from "../../src/errors.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import type { Store } from "../../src/stores/store.ts";
import { type FaultyStore, faultyStore } from "../support/faulty-store.ts";
import { answerOf, engineOn, ofType, proceeded, requestFor, standing } from "./engines.ts";
import { type Opened, onEveryStore } from "./stores.ts";
import { type VirtualTime, virtualTime } from "./virtual-time.ts";

describe("a claim whose reply is lost", () => {
  onEveryStore((given) => {
    lostInsert(given);
    lostTakeOver(given);
  });
});

function lostInsert(given: () => Opened): void {
  test.each(["reply_lost", "not_applied", "contention"] as const)(
    "is settled by repeating the insert (%s): one attempt, and its time is the record's",
    async (fault) => {
      const { store } = given();
      const faulty = faultyStore(store);
      const { engine, events } = engineOn(faulty.store);
      const request = requestFor(`insert ${fault}`);
      faulty.plan("insert", 1, fault);
      const attempt = proceeded(await engine.begin(request));
      const record = await standing(store, request);
      expect(faulty.calls("insert")).toBe(2);
      expect(attempt.record()).toEqual(record);
      expect(record).toMatchObject({ state: "in_progress", revision: 1, attempt: attempt.number });
      expect(ofType(events, "request")).toMatchObject([{ outcome: "claimed" }]);
      expect(await attempt.complete(answerOf("done"))).toMatchObject({ kind: "kept" });
    },
  );

  test("does not make a second owner when the insert is applied late, after its own repeat", async () => {
    const { store } = given();
    const faulty = faultyStore(store);
    const request = requestFor("late after repeat");
    faulty.plan("insert", 1, "applied_later");
    const attempt = proceeded(await engineOn(faulty.store).engine.begin(request));
    const before = await standing(store, request);
    expect(await faulty.applyHeld()).toMatchObject([{ value: { inserted: false } }]);
    expect(await standing(store, request)).toEqual(before);
    expect(await attempt.complete(answerOf("done"))).toMatchObject({ kind: "kept" });
  });

  test("does not make a second owner when the insert is applied late, after another has won", async () => {
    const { store } = given();
    const faulty = faultyStore(store);
    const request = requestFor("late after another");
    faulty.plan("insert", "every", "applied_later");
    const { engine } = engineOn(faulty.store, { storeTimeout: 60 });
    expect(await engine.begin(request)).toMatchObject({ kind: "store_unavailable" });
    const winner = proceeded(await engineOn(store).engine.begin(request));
    const held = await faulty.applyHeld();
    expect(held.length).toBeGreaterThan(1);
    for (const each of held) expect(each).toMatchObject({ value: { inserted: false } });
    expect(await standing(store, request)).toEqual(winner.record());
    expect(await winner.complete(answerOf("done"))).toMatchObject({ kind: "kept" });
  });
}

function lostTakeOver(given: () => Opened): void {
  test.each(["reply_lost", "not_applied", "contention"] as const)(
    "is settled by repeating the take-over (%s): it runs as the next attempt, once",
    async (fault) => {
      const { store } = given();
      const faulty = faultyStore(store);
      const request = requestFor(`take-over ${fault}`);
      await proceeded(await engineOn(store).engine.begin(request)).release();
      faulty.plan("replace", 1, fault);
      const attempt = proceeded(await engineOn(faulty.store).engine.begin(request));
      expect(faulty.calls("replace")).toBe(2);
      expect(await standing(store, request)).toEqual(attempt.record());
      expect(attempt.record().revision).toBe(3);
    },
  );

  test("changes nothing when the take-over is applied late, after another took over", async () => {
    const { store } = given();
    const faulty = faultyStore(store);
    const request = requestFor("late take-over");
    await proceeded(await engineOn(store).engine.begin(request)).release();
    faulty.plan("replace", "every", "applied_later");
    const { engine } = engineOn(faulty.store, { storeTimeout: 60 });
    expect(await engine.begin(request)).toMatchObject({ kind: "store_unavailable" });
    const winner = proceeded(await engineOn(store).engine.begin(request));
    for (const each of await faulty.applyHeld()) expect(each).toMatchObject({ value: { kind: "stale" } });
    expect(await standing(store, request)).toEqual(winner.record());
  });
}

describe("a store out of reach", () => {
  test.each(["not_applied", "silent", "contention"] as const)(
    "is an answer within the store timeout, and nothing runs (%s)",
    async (fault) => {
      const { time, faulty, engine } = inVirtualTime();
      faulty.plan("insert", "every", fault);
      let runs = 0;
      const request = { operation: "o", principal: "p", key: "k" };
      const ran = await time.until(engine.attemptRun(request, () => runs++));
      expect(ran).toMatchObject({ kind: "store_unavailable" });
      expect(runs).toBe(0);
      expect(time.elapsedMs()).toBeLessThanOrEqual(engine.policy.storeTimeoutMs);
    },
  );

  test("is an answer within the store timeout when it first refuses and then falls silent", async () => {
    const { time, faulty, engine } = inVirtualTime();
    faulty.plan("insert", "every", "not_applied");
    void time.runtime.timer(1_000).expired.then(() => faulty.plan("insert", "every", "silent"));
    const begun = await time.until(engine.begin(requestFor("refuses, then silent")));
    expect(begun.kind).toBe("store_unavailable");
    expect(time.elapsedMs()).toBeLessThanOrEqual(engine.policy.storeTimeoutMs);
  });

  test("is tried again while the store timeout lasts", async () => {
    const { time, faulty, engine } = inVirtualTime();
    faulty.plan("insert", "every", "not_applied");
    void time.runtime.timer(900).expired.then(() => faulty.heal());
    const begun = await time.until(engine.begin(requestFor("heals")));
    expect(begun.kind).toBe("proceed");
  });

  test.each(["none", "transaction", "declared"] as const)(
    "does not lock a key beyond the lease when it applied a claim that nobody heard of (effects %s)",
    async (effects) => {
      const { time, faulty, engine } = inVirtualTime();
      const request = requestFor("given up", { effects });
      faulty.plan("insert", "every", "silent");
      expect(await time.until(engine.begin(request))).toMatchObject({ kind: "store_unavailable" });
      faulty.heal();
      await time.pass(engine.policy.leaseMs + 1_000);
      expect(await time.until(engine.begin(request))).toMatchObject({ kind: "proceed" });
    },
  );

  test.each(["silent", "applied_later", "not_applied"] as const)(
    "leaves a free key once it is back, whatever became of a claim that was given up (%s)",
    async (fault) => {
      const { time, faulty, store, engine } = inVirtualTime();
      const request = requestFor(`given up, ${fault}`);
      faulty.plan("insert", "every", fault);
      expect(await time.until(engine.begin(request))).toMatchObject({ kind: "store_unavailable" });
      faulty.heal();
      await time.pass(5_000);
      expect(await standing(store, request)).toMatchObject({ state: "released" });
      await faulty.applyHeld();
      expect(await standing(store, request)).toMatchObject({ state: "released" });
      const another = requestFor(`given up, ${fault}`, { body: "another" });
      expect(await time.until(engine.begin(another))).toMatchObject({ kind: "proceed" });
    },
  );

  test("whose loss of a reply is noticed only after the lease lets the claim run under a new lease, not the lapsed one", async () => {
    const { time, store } = inVirtualTime();
    let losses = 0;
    const losing: Store = {
      ...store,
      insert: async (write) => {
        const standing = await store.insert(write);
        if (losses > 0) return standing;
        losses += 1;
        await time.runtime.sleep(1_500);
        throw new StoreUnavailable("The reply was lost.");
      },
    };
    const settings = { requestTimeout: 500, lease: 1_000, storeTimeout: 5_000, runtime: time.runtime };
    const attempt = proceeded(
      await time.until(engineOn(losing, settings).engine.begin(requestFor("lapsed"))),
    );
    expect(attempt.record()).toMatchObject({ revision: 2, leaseUntil: time.now() + 1_000 });
  });

  test("an error that no repeat can overcome reaches the caller as it is", async () => {
    const broken: Store = { ...memoryStore(), insert: () => Promise.reject(new TypeError("a bug")) };
    await expect(engineOn(broken).engine.begin(requestFor("bug"))).rejects.toThrow(/a bug/);
  });
});

test("a key that changes hands each time it is looked at is given up after a bounded number of writes", async () => {
  const store = memoryStore();
  const rival = engineOn(store).engine;
  const request = requestFor("contested");
  await proceeded(await rival.begin(request)).release();
  let writes = 0;
  const contested: Store = {
    ...store,
    replace: async (seen, write, patience) => {
      writes += 1;
      await proceeded(await rival.begin(request)).release();
      return await store.replace(seen, write, patience);
    },
  };
  const { engine, events } = engineOn(contested);
  expect(await engine.begin(request)).toMatchObject({
    kind: "store_unavailable",
    error: { code: "store_contention" },
  });
  expect(writes).toBeLessThanOrEqual(20);
  expect(ofType(events, "request")).toMatchObject([{ outcome: "store_unavailable" }]);
});

function inVirtualTime(): {
  readonly time: VirtualTime;
  readonly faulty: FaultyStore<Store>;
  readonly store: Store;
  readonly engine: ReturnType<typeof engineOn>["engine"];
} {
  const time = virtualTime();
  const faulty = faultyStore(memoryStore({ now: time.now }), { sleep: time.runtime.sleep });
  return {
    time,
    faulty,
    store: faulty.store,
    engine: engineOn(faulty.store, { runtime: time.runtime }).engine,
  };
}
