import { describe, expect, test } from "vitest";
import { LeaseLost, OutcomeUnknown } from "../../src/errors.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { faultyStore } from "../support/faulty-store.ts";
import { answerOf, engineOn, ofType, proceeded, requestFor, standing } from "./engines.ts";
import { virtualTime } from "./virtual-time.ts";

/** With the defaults: 60 s for a request, a lease of 90 s, a renewal each 30 s. */
function inVirtualTime() {
  const time = virtualTime();
  const faulty = faultyStore(memoryStore({ now: time.now }), { sleep: time.runtime.sleep });
  return { time, faulty, store: faulty.store, ...engineOn(faulty.store, { runtime: time.runtime }) };
}

describe("a lease", () => {
  test("is renewed from a third of its length on, and not before", async () => {
    const { time, faulty, store, engine } = inVirtualTime();
    const request = requestFor("renewed");
    const attempt = proceeded(await time.until(engine.begin(request)));
    await time.pass(29_999);
    expect(faulty.calls("replace")).toBe(0);
    await time.pass(1);
    expect(faulty.calls("replace")).toBe(1);
    const { claimedAt } = attempt.record();
    expect(await standing(store, request)).toMatchObject({ revision: 2, leaseUntil: claimedAt + 120_000 });
    expect(attempt.record().revision).toBe(2);
  });

  test("of a short run is never renewed", async () => {
    const { time, faulty, engine } = inVirtualTime();
    const attempt = proceeded(await time.until(engine.begin(requestFor("short"))));
    await time.pass(20_000);
    await time.until(attempt.complete(answerOf("done")));
    await time.pass(300_000);
    expect(faulty.calls("replace")).toBe(1);
  });

  test("is renewed no more once the work has had its time, which the signal tells", async () => {
    const { time, faulty, engine, events } = inVirtualTime();
    const attempt = proceeded(await time.until(engine.begin(requestFor("time is up"))));
    await time.pass(59_999);
    expect(attempt.signal.aborted).toBe(false);
    const before = faulty.calls("replace");
    await time.pass(1);
    expect(attempt.signal.reason).toBeInstanceOf(OutcomeUnknown);
    await time.pass(29_000);
    expect(faulty.calls("replace")).toBe(before);
    expect(ofType(events, "lease_lost")).toEqual([]);
  });

  test("lasts as long as the work may run, where that is said", async () => {
    const { time, store, engine } = inVirtualTime();
    const request = { ...requestFor("long"), maxRunMs: 1_000_000 };
    const attempt = proceeded(await time.until(engine.begin(request)));
    await time.pass(999_000);
    expect(attempt.signal.aborted).toBe(false);
    expect(await time.until(engine.begin(request))).toMatchObject({ kind: "in_progress" });
    await time.pass(1_000);
    expect(attempt.signal.reason).toBeInstanceOf(OutcomeUnknown);
    expect(await standing(store, request)).toMatchObject({ state: "in_progress" });
  });

  test("that could not be renewed ends on our own clock, not later than the store's", async () => {
    const { time, faulty, store, engine, events } = inVirtualTime();
    faulty.plan("insert", 1, { kind: "slow", ms: 1_500 });
    const request = { ...requestFor("unreachable"), maxRunMs: 1_000_000 };
    const attempt = proceeded(await time.until(engine.begin(request)));
    const { leaseUntil } = { leaseUntil: 0, ...(await standing(store, request)) };
    faulty.plan("replace", "every", "silent");
    while (!attempt.signal.aborted) await time.pass(10);
    expect(time.now()).toBeLessThanOrEqual(leaseUntil);
    expect(attempt.signal.reason).toBeInstanceOf(LeaseLost);
    expect(ofType(events, "lease_lost")).toHaveLength(1);
  });

  test("survives a store that is away for a while", async () => {
    const { time, faulty, store, engine, events } = inVirtualTime();
    const request = { ...requestFor("away"), maxRunMs: 1_000_000 };
    const attempt = proceeded(await time.until(engine.begin(request)));
    faulty.plan("replace", "every", "not_applied");
    await time.pass(60_000);
    faulty.heal();
    await time.pass(60_000);
    expect(attempt.signal.aborted).toBe(false);
    expect(await standing(store, request)).toMatchObject({ state: "in_progress" });
    expect(ofType(events, "lease_lost")).toEqual([]);
    expect(await time.until(attempt.complete(answerOf("done")))).toMatchObject({ kind: "kept" });
  });

  test("survives an error of the store that says nothing about the lease", async () => {
    const time = virtualTime();
    const store = memoryStore({ now: time.now });
    let bad = true;
    const odd = {
      ...store,
      replace: (...given: Parameters<typeof store.replace>) =>
        bad ? Promise.reject(new TypeError("odd")) : store.replace(...given),
    };
    const { engine, events } = engineOn(odd, { runtime: time.runtime });
    const attempt = proceeded(await time.until(engine.begin({ ...requestFor("odd"), maxRunMs: 1_000_000 })));
    await time.pass(31_000);
    bad = false;
    await time.pass(200_000);
    expect(ofType(events, "failure")).toHaveLength(1);
    expect(attempt.signal.aborted).toBe(false);
  });

  test("whose renewal was applied and not heard of does not make the completion look stale", async () => {
    const { time, faulty, engine, events } = inVirtualTime();
    const attempt = proceeded(await time.until(engine.begin(requestFor("renewal lost"))));
    faulty.plan("replace", 1, "reply_lost");
    await time.pass(30_000);
    expect(await time.until(attempt.complete(answerOf("done")))).toMatchObject({ kind: "kept" });
    expect(ofType(events, "lease_lost")).toEqual([]);
  });

  test("whose renewal is still under way when the work ends does not make the completion look stale", async () => {
    const { time, faulty, store, engine, events } = inVirtualTime();
    const request = requestFor("renewal late");
    const attempt = proceeded(await time.until(engine.begin(request)));
    faulty.plan("replace", 1, { kind: "slow", ms: 1_000 });
    await time.pass(30_000);
    expect(await time.until(attempt.complete(answerOf("done")))).toMatchObject({ kind: "kept" });
    expect(await standing(store, request)).toMatchObject({ state: "completed", revision: 3 });
    expect(ofType(events, "lease_lost")).toEqual([]);
  });

  test("of a process that stood still past it is lost at its next write, and not before another took over", async () => {
    const { time, store, engine, events } = inVirtualTime();
    const request = requestFor("stood still", { effects: "transaction" });
    const attempt = proceeded(await time.until(engine.begin(request)));
    time.stop();
    await time.pass(90_001);
    const heir = proceeded(await engineOn(store).engine.begin(request));
    await heir.complete(answerOf("the heir's"));
    time.resume();
    await time.pass(0);
    expect(attempt.signal.aborted).toBe(true);
    expect(await time.until(attempt.complete(answerOf("late")))).toMatchObject({ kind: "lost" });
    expect(ofType(events, "lease_lost")).toHaveLength(1);
  });
});
