import { describe, expect, test } from "vitest";
import { type Doubt, seen, takeOver } from "../../src/core/transition.ts";
import { type Attempt, createAttempt } from "../../src/engine/attempt.ts";
import { LeaseLost, OncekeyError } from "../../src/errors.ts";
import type { Store } from "../../src/stores/store.ts";
import { sweep } from "../../src/worker/tick.ts";
import { until } from "../support/processes.ts";
import {
  answerOf,
  died,
  engineOn,
  lapsed,
  ofType,
  proceeded,
  requestFor,
  SHORT,
  standing,
  stoppedRuntime,
} from "./engines.ts";
import { type Opened, onEveryStore } from "./stores.ts";

const HELD: Doubt = {
  evidence: { reason: "nobody knows", result: null },
  disposition: "hold",
  nextLookAt: null,
};

/** Every way in which an attempt can end by itself. */
const ENDINGS: Readonly<Record<string, (attempt: Attempt<never>) => ReturnType<Attempt<never>["release"]>>> =
  {
    complete: (attempt) => attempt.complete(answerOf("done")),
    fail: (attempt) => attempt.fail(answerOf("no", 422)),
    release: (attempt) => attempt.release(),
    doubt: (attempt) => attempt.doubt(HELD),
  };

describe("an attempt", () => {
  onEveryStore((given) => {
    endings(given);
    takenOver(given);
    judgedDead(given);
    livesOn(given);
  });
});

function endings(given: () => Opened): void {
  const states = [
    ["complete", "completed"],
    ["fail", "failed_permanent"],
    ["release", "released"],
    ["doubt", "unknown"],
  ] as const;
  test.each(states)("that ends by %s leaves its record %s", async (end, state) => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = requestFor(`ends by ${end}`);
    const attempt = proceeded(await engine.begin(request));
    const ended = await ENDINGS[end]?.(attempt);
    const record = await standing(store, request);
    expect(ended).toEqual({ kind: "kept", record });
    expect(record).toMatchObject({ state, attempt: attempt.number, revision: 2 });
    expect(engine.context.running.size).toBe(0);
  });

  test.each(Object.keys(ENDINGS))(
    "that has ended refuses a second ending (%s) with a typed error",
    async (end) => {
      const { store } = given();
      const request = requestFor(`second ${end}`);
      const attempt = proceeded(await engineOn(store).engine.begin(request));
      await attempt.complete(answerOf("first"));
      const before = await standing(store, request);
      const second = ENDINGS[end]?.(attempt);
      await expect(second).rejects.toBeInstanceOf(OncekeyError);
      await expect(second).rejects.toMatchObject({ code: "attempt_ended" });
      expect(await standing(store, request)).toEqual(before);
    },
  );

  test("that is abandoned is judged by what it may have done", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    for (const [effects, state] of [
      ["none", "unknown"],
      ["declared", "released"],
      ["transaction", "released"],
    ] as const) {
      const request = requestFor(`abandoned ${effects}`, { effects });
      await proceeded(await engine.begin(request)).abandon("The process stops.");
      expect([effects, await standing(store, request)]).toMatchObject([effects, { state }]);
    }
  });
}

function takenOver(given: () => Opened): void {
  test.each(Object.keys(ENDINGS))(
    "that was taken over changes nothing by %s, and learns of it once",
    async (end) => {
      const { store } = given();
      const request = requestFor(`taken over ${end}`, { effects: "transaction" });
      const { attempt, events } = await heirOf(store, request);
      const before = await standing(store, request);
      expect(await ENDINGS[end]?.(attempt)).toEqual({ kind: "lost", record: before });
      expect(await standing(store, request)).toEqual(before);
      expect(attempt.signal.reason).toBeInstanceOf(LeaseLost);
      expect(ofType(events, "lease_lost")).toMatchObject([{ attempt: attempt.number }]);
    },
  );

  test("that was taken over does not renew its heir's lease, and learns of it by its renewal", async () => {
    const { store } = given();
    const request = requestFor("renews nothing", { effects: "transaction" });
    const { engine, events } = engineOn(store, { requestTimeout: 2_000, lease: 2_100 });
    const attempt = proceeded(await engine.begin(request));
    const { record } = await store.read(request.identity);
    if (record?.state !== "in_progress") throw new Error("It runs.");
    // As its lease had lapsed: somebody else takes over what it still believes to hold.
    const heir = { ...record, owner: "heir", writeId: "heir's claim", leaseMs: 90_000, steps: new Map() };
    await store.replace(seen(record), takeOver(record, heir), "wait");
    const before = await standing(store, request);
    await until(() => attempt.signal.aborted);
    expect(attempt.signal.reason).toBeInstanceOf(LeaseLost);
    expect(await standing(store, request)).toEqual(before);
    expect(ofType(events, "lease_lost")).toHaveLength(1);
    expect(await attempt.complete(answerOf("late"))).toEqual({ kind: "lost", record: before });
    expect(ofType(events, "lease_lost")).toHaveLength(1);
  });
}

function judgedDead(given: () => Opened): void {
  test.each([
    ["complete", "completed"],
    ["fail", "failed_permanent"],
    ["release", "released"],
  ] as const)(
    "that was judged dead still brings what it learnt (%s), unless it was taken over",
    async (end, state) => {
      const { store } = given();
      const request = requestFor(`late ${end}`);
      const attempt = await died(store, request);
      const { engine } = engineOn(store, { sweepGrace: 1 });
      await until(async () => {
        await sweep(engine);
        return (await standing(store, request)).state === "unknown";
      });
      expect(await ENDINGS[end]?.(attempt)).toMatchObject({ kind: "kept", record: { state } });
      expect(await standing(store, request)).toMatchObject({ state, attempt: attempt.number });
    },
  );

  test("that was judged dead changes nothing once another took over", async () => {
    const { store } = given();
    const request = requestFor("late and taken over", { onAmbiguous: "rerun" });
    const attempt = await died(store, request);
    const heir = proceeded(await engineOn(store).engine.begin(request));
    await heir.complete(answerOf("the heir's"));
    const before = await standing(store, request);
    expect(await attempt.complete(answerOf("late"))).toEqual({ kind: "lost", record: before });
    expect(await standing(store, request)).toEqual(before);
  });
}

function livesOn(given: () => Opened): void {
  test("that runs for several leases is kept alive, and ends as its own", async () => {
    const { store } = given();
    const { engine, events } = engineOn(store, { requestTimeout: 1_400, lease: 1_500 });
    const request = { ...requestFor("long run", { effects: "transaction" }), maxRunMs: 60_000 };
    const attempt = proceeded(await engine.begin(request));
    const { claimedAt } = attempt.record();
    await until(async () => (await store.read(request.identity)).now > claimedAt + 3_500, { everyMs: 100 });
    expect(await engineOn(store).engine.begin(request)).toMatchObject({ kind: "in_progress" });
    expect(attempt.signal.aborted).toBe(false);
    const record = await standing(store, request);
    expect(record.revision).toBeGreaterThan(3);
    expect(record.claimedAt).toBe(claimedAt);
    expect(await attempt.complete(answerOf("done"))).toMatchObject({ kind: "kept" });
    expect(ofType(events, "lease_lost")).toEqual([]);
  });

  test("whose renewals race its completion 200 times never looks stale to itself", {
    timeout: 120_000,
  }, async () => {
    const { store } = given();
    const { engine, events } = engineOn(store, { requestTimeout: 59_000, lease: 60_000 });
    const racing = { ...engine.context, policy: { ...engine.policy, heartbeatMs: 1 } };
    let renewed = 0;
    for (let round = 0; round < 200; round += 1) {
      const request = requestFor(`race ${round}`);
      const begun = proceeded(await engine.begin(request)).record();
      if (begun.state !== "in_progress") throw new Error("It runs.");
      const startedMs = engine.context.runtime.monotonicMs();
      const attempt = createAttempt<never>(racing, {
        record: begun,
        startedMs,
        maxRunMs: 60_000,
        match: () => "same",
        onEnded: () => {},
      });
      await new Promise((resolve) => setTimeout(resolve, round % 5));
      const ended = await attempt.complete(answerOf("done"));
      expect([round, ended.kind]).toEqual([round, "kept"]);
      renewed += (await standing(store, request)).revision > 2 ? 1 : 0;
    }
    expect(renewed).toBeGreaterThan(20);
    expect(ofType(events, "lease_lost")).toEqual([]);
  });
}

/** An attempt that died, whose key another has by now, and what it told its listeners. */
async function heirOf(store: Store, request: Parameters<typeof standing>[1]) {
  const dead = engineOn(store, { ...SHORT, runtime: stoppedRuntime() });
  const attempt = proceeded(await dead.engine.begin(request));
  await lapsed(store, request);
  proceeded(await engineOn(store).engine.begin(request));
  return { attempt, events: dead.events };
}
