import { describe, expect, test } from "vitest";
import { OncekeyError } from "../../src/errors.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import type { Store } from "../../src/stores/store.ts";
import { faultyStore } from "../support/faulty-store.ts";
import { until } from "../support/processes.ts";
import { answerOf, engineOn, ofType, proceeded, requestFor, standing } from "./engines.ts";
import { type Opened, onEveryStore } from "./stores.ts";
import { virtualTime } from "./virtual-time.ts";

describe("the outcome of an attempt", () => {
  onEveryStore(lostReplies);

  test("that the store does not take in time is unkept for the caller, and written once the store is back", async () => {
    const { time, faulty, engine, store } = inVirtualTime();
    const request = requestFor("store away");
    const attempt = proceeded(await time.until(engine.begin(request)));
    faulty.plan("replace", "every", "not_applied");
    const beganMs = time.elapsedMs();
    expect(await time.until(attempt.complete(answerOf("done")))).toEqual({ kind: "unkept" });
    expect(time.elapsedMs() - beganMs).toBe(engine.policy.completionTimeoutMs);
    await time.pass(60_000);
    expect(await standing(store, request)).toMatchObject({ state: "in_progress" });
    expect(engine.context.running.size).toBe(1);
    faulty.heal();
    await time.pass(2_000);
    expect(await standing(store, request)).toMatchObject({ state: "completed", answer: answerOf("done") });
    expect(engine.context.running.size).toBe(0);
  });

  test("that the store has not taken when the lease ends is given up, and told to the listeners", async () => {
    const { time, faulty, engine, events } = inVirtualTime();
    const attempt = proceeded(await time.until(engine.begin(requestFor("store gone"))));
    faulty.plan("replace", "every", "not_applied");
    expect(await time.until(attempt.complete(answerOf("done")))).toEqual({ kind: "unkept" });
    await time.pass(92_000);
    const calls = faulty.calls("replace");
    await time.pass(600_000);
    expect(faulty.calls("replace")).toBe(calls);
    expect(ofType(events, "failure")).toMatchObject([{ what: expect.stringContaining("POST /payments") }]);
    expect(engine.context.running.size).toBe(0);
  });

  test("that the store answers late is kept all the same, and nothing is written twice", async () => {
    const { time, faulty, engine, store } = inVirtualTime();
    const request = requestFor("late answer");
    const attempt = proceeded(await time.until(engine.begin(request)));
    faulty.plan("replace", 1, { kind: "slow", ms: 1_999 });
    expect(await time.until(attempt.complete(answerOf("done")))).toMatchObject({ kind: "kept" });
    expect(await standing(store, request)).toMatchObject({ state: "completed", revision: 2 });
  });

  test("that is too large for the store is done without its body, and the key is not left in doubt", async () => {
    const time = virtualTime();
    const store = memoryStore({ now: time.now });
    const small: Store = {
      ...store,
      replace: (seen, write, patience) =>
        write.state === "completed" && (write.answer.body?.length ?? 0) > 10
          ? Promise.reject(new OncekeyError("record_too_large", "The record is too large."))
          : store.replace(seen, write, patience),
    };
    const { engine } = engineOn(small, { runtime: time.runtime });
    const request = requestFor("too large");
    const attempt = proceeded(await time.until(engine.begin(request)));
    await time.until(attempt.complete(answerOf("x".repeat(100))));
    expect(await time.until(engine.begin(request))).toMatchObject({ kind: "response_not_stored" });
  });
});

function lostReplies(given: () => Opened): void {
  for (const fault of ["reply_lost", "not_applied", "contention"] as const) {
    for (const end of ["complete", "fail", "release", "doubt"] as const) {
      test(`by ${end} is settled by repeating the write (${fault}), and stands once`, async () => {
        const { store } = given();
        const faulty = faultyStore(store);
        const { engine, events } = engineOn(faulty.store);
        const request = requestFor(`${end} ${fault}`);
        const attempt = proceeded(await engine.begin(request));
        faulty.plan("replace", 1, fault);
        const evidence = { reason: "nobody knows", result: null };
        const ended =
          end === "release"
            ? await attempt.release()
            : end === "doubt"
              ? await attempt.doubt({ evidence, disposition: "hold", nextLookAt: null })
              : await attempt[end](answerOf("done", 410));
        const record = await standing(store, request);
        expect(ended).toEqual({ kind: "kept", record });
        expect(record.revision).toBe(2);
        expect(faulty.calls("replace")).toBe(2);
        expect(ofType(events, "lease_lost")).toEqual([]);
      });
    }
  }

  test("applied late, after its own repeat, changes nothing", async () => {
    const { store } = given();
    const faulty = faultyStore(store);
    const request = requestFor("late after its repeat");
    const attempt = proceeded(await engineOn(faulty.store).engine.begin(request));
    faulty.plan("replace", 1, "applied_later");
    expect(await attempt.complete(answerOf("done"))).toMatchObject({ kind: "kept" });
    const before = await standing(store, request);
    await faulty.applyHeld();
    expect(await standing(store, request)).toEqual(before);
  });

  test("applied late, after another took over, changes nothing", async () => {
    const { store } = given();
    const faulty = faultyStore(store);
    const request = requestFor("late and taken over", { effects: "transaction" });
    const settings = { requestTimeout: 150, lease: 200, completionTimeout: 50 };
    const attempt = proceeded(await engineOn(faulty.store, settings).engine.begin(request));
    faulty.plan("replace", "every", "applied_later");
    expect(await attempt.complete(answerOf("first"))).toEqual({ kind: "unkept" });
    const rival = engineOn(store).engine;
    await until(async () => (await rival.begin(request)).kind === "proceed");
    const before = await standing(store, request);
    for (const each of await faulty.applyHeld()) expect(each).toMatchObject({ value: { kind: "stale" } });
    expect(await standing(store, request)).toEqual(before);
  });
}

function inVirtualTime() {
  const time = virtualTime();
  const faulty = faultyStore(memoryStore({ now: time.now }), { sleep: time.runtime.sleep });
  return { time, faulty, store: faulty.store, ...engineOn(faulty.store, { runtime: time.runtime }) };
}
