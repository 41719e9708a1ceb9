import { describe, expect, test } from "vitest";
import type { Unknown } from "../../src/core/record.ts";
import { nodeRuntime, type Runtime } from "../../src/engine/runtime.ts";
import { reconcile } from "../../src/worker/tick.ts";
import { type Bank, type Mood, openBank, order, paying } from "../engine/bank.ts";
import { ofType, sqlEngineOn, standing, stoppedRuntime } from "../engine/engines.ts";
import { onEverySqlStore, type Sql } from "../engine/stores.ts";
import { until } from "../support/processes.ts";

describe("the reconciler", () => {
  onEverySqlStore((given) => {
    truth(given);
    waiting(given);
    persons(given);
  });
});

/** Payments whose answer never came, each under a key of its own. */
async function doubtful<Tx>(sql: Sql<Tx>, bank: Bank, keys: readonly string[], mood: Mood): Promise<void> {
  const { pay } = paying(sqlEngineOn(sql.store).engine, sql, bank);
  bank.setMood(mood);
  for (const key of keys) expect(await pay(order(key))).toMatchObject({ kind: "in_doubt" });
  bank.setMood("well");
}

/** A worker that knows the payment, changed where a test says so. */
function worker<Tx>(
  sql: Sql<Tx>,
  bank: Bank,
  { changed = {}, settings = {} }: { changed?: Parameters<typeof paying<Tx>>[3]; settings?: object } = {},
) {
  const told = sqlEngineOn(sql.store, { reconcileInterval: 40, ...settings });
  return { ...told, ...paying(told.engine, sql, bank, changed) };
}

/** Chance is even: what is jittered is as long as it is meant to be. */
function evenRuntime(): Runtime {
  return { ...nodeRuntime(), random: () => 0.5 };
}

async function unknown<Tx>({ store }: Sql<Tx>, key: string): Promise<Unknown> {
  const record = await standing(store, order(key));
  if (record.state !== "unknown") throw new Error(`It is ${record.state}.`);
  return record;
}

async function dueAgain<Tx>(sql: Sql<Tx>, key: string): Promise<void> {
  const { nextLookAt } = await unknown(sql, key);
  await until(async () => (await sql.store.read(order(key).identity)).now >= (nextLookAt ?? Number.NaN));
}

const NOTHING = {
  settled: 0,
  released: 0,
  waiting: 0,
  reviewed: 0,
  passed: 0,
  unreachable: 0,
  failed: 0,
  damaged: 0,
  more: false,
};

function truth<Tx>(given: () => Sql<Tx>): void {
  test("ends an effect that happened with the provider's truth: one payment, one row, one answer", async () => {
    const bank = openBank();
    await doubtful(given(), bank, ["happened"], "pays silently");
    const before = await unknown(given(), "happened");
    const { engine, events, pay } = worker(given(), bank);
    expect(await reconcile(engine)).toEqual({ ...NOTHING, settled: 1 });
    const after = await standing(given().store, order("happened"));
    expect(after.state).toBe("completed");
    expect(after.attempt).toBeGreaterThan(before.attempt);
    expect(after.owner).not.toBe(before.owner);
    expect(await given().rows("happened")).toMatchObject([{ state: "paid" }]);
    expect([bank.asked.length, bank.paid.size]).toEqual([1, 1]);
    expect(ofType(events, "transition")).toMatchObject([
      { by: "reconciler", from: "unknown", to: "completed" },
    ]);
    expect(await pay(order("happened"))).toMatchObject({ kind: "replay", answer: { status: 201 } });
    expect((await given().store.beats()).map((beat) => beat.worker)).toContain("reconciler");
  });

  test("cancels an effect that did not happen, and frees its key for the next generation", async () => {
    const bank = openBank();
    await doubtful(given(), bank, ["lost"], "loses requests");
    const { engine, pay } = worker(given(), bank);
    expect(await reconcile(engine)).toEqual({ ...NOTHING, released: 1 });
    const released = await standing(given().store, order("lost"));
    expect(released.steps.get("perform")).toEqual({ state: "clear", generation: 1 });
    const [row] = await given().rows("lost");
    expect(row?.state).toBe("abandoned");
    expect(await pay(order("lost"))).toMatchObject({ kind: "settled" });
    expect(new Set(bank.asked).size).toBe(2);
    expect(await given().rows("lost")).toEqual([{ ...row, state: "paid" }]);
  });

  test("believes a provider that cannot cancel because it was paid after all", async () => {
    const bank = openBank();
    await doubtful(given(), bank, ["hidden"], "pays silently");
    const changed = { look: async () => ({ kind: "not_found" as const }) };
    const { engine } = worker(given(), bank, { changed });
    expect(await reconcile(engine)).toEqual({ ...NOTHING, settled: 1 });
    expect(await given().rows("hidden")).toMatchObject([{ state: "paid" }]);
  });

  test("two at once look at each record once and end each once", async () => {
    const bank = openBank();
    const keys = Array.from({ length: 10 }, (_, n) => `pair ${n}`);
    await doubtful(given(), bank, keys, "pays silently");
    const [one, other] = [worker(given(), bank), worker({ ...given(), store: given().other }, bank)];
    const ticks = await Promise.all([reconcile(one.engine), reconcile(other.engine), reconcile(one.engine)]);
    expect(ticks.reduce((sum, { settled }) => sum + settled, 0)).toBe(10);
    expect(bank.looks()).toBe(10);
    for (const key of keys) expect(await given().rows(key)).toMatchObject([{ state: "paid" }]);
    expect([...ofType(one.events, "transition"), ...ofType(other.events, "transition")]).toHaveLength(10);
  });

  test("that is killed after its look leaves the record to the next one", async () => {
    const bank = openBank();
    await doubtful(given(), bank, ["killed"], "loses requests");
    const { engine } = worker(given(), bank, { settings: { requestTimeout: 1_000, lease: 1_500 } });
    const stalled = worker(given(), bank, {
      changed: { cancel: () => new Promise(() => {}) },
      settings: { requestTimeout: 1_000, lease: 1_500, runtime: stoppedRuntime() },
    });
    void reconcile(stalled.engine);
    await until(() => bank.looks() === 1);
    expect(await reconcile(engine)).toEqual(NOTHING);
    await dueAgain(given(), "killed");
    expect(await reconcile(engine)).toMatchObject({ released: 1 });
  });

  test("that stood still while another freed the key, and it ran again, changes nothing", async () => {
    const bank = openBank();
    await doubtful(given(), bank, ["stood still"], "loses requests");
    const left = await unknown(given(), "stood still");
    let goOn = () => {};
    const gate = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const slow = worker(given(), bank, {
      settings: { requestTimeout: 60, lease: 80, runtime: stoppedRuntime() },
      changed: {
        look: async () => {
          await gate;
          return { kind: "not_found" };
        },
      },
    });
    const ticking = reconcile(slow.engine);
    await until(async () => (await unknown(given(), "stood still")).owner !== left.owner);
    await dueAgain(given(), "stood still");
    const { engine, pay } = worker(given(), bank);
    await until(async () => (await reconcile(engine)).released === 1);
    expect(await pay(order("stood still"))).toMatchObject({ kind: "settled" });
    const before = await standing(given().store, order("stood still"));
    goOn();
    expect(await ticking).toMatchObject({ passed: 1 });
    expect(await standing(given().store, order("stood still"))).toEqual(before);
    expect(await given().rows("stood still")).toMatchObject([{ state: "paid" }]);
    expect(bank.paid.size).toBe(1);
  });
}

function waiting<Tx>(given: () => Sql<Tx>): void {
  test("looks again at what the provider has not decided, later each time", async () => {
    const bank = openBank();
    await doubtful(given(), bank, ["pending"], "pays silently");
    const { engine } = worker(given(), bank, {
      changed: { look: async () => ({ kind: "pending" }) },
      settings: { runtime: evenRuntime() },
    });
    const pauses: number[] = [];
    for (let look = 1; look <= 4; look += 1) {
      await dueAgain(given(), "pending");
      expect(await reconcile(engine)).toEqual({ ...NOTHING, waiting: 1 });
      const { looks, nextLookAt, updatedAt } = await unknown(given(), "pending");
      expect(looks).toBe(look);
      pauses.push((nextLookAt ?? 0) - updatedAt);
    }
    expect(pauses).toEqual([40, 80, 160, 320]);
    expect(await reconcile(engine)).toEqual(NOTHING);
  });

  test("spends no look on a provider that cannot be reached, and tells of it", async () => {
    const bank = openBank();
    await doubtful(given(), bank, ["down"], "pays silently");
    bank.setDown("down");
    const { engine, events } = worker(given(), bank, { settings: { maxReconcileLooks: 2 } });
    for (let tick = 0; tick < 4; tick += 1) {
      await dueAgain(given(), "down");
      expect(await reconcile(engine)).toEqual({ ...NOTHING, unreachable: 1 });
      expect(await unknown(given(), "down")).toMatchObject({ looks: 0, disposition: "reconcile" });
    }
    expect(ofType(events, "failure")).toHaveLength(4);
    bank.setDown("up");
    await dueAgain(given(), "down");
    expect(await reconcile(engine)).toMatchObject({ settled: 1 });
  });

  test("is not stopped by a provider that never answers: the others are looked at, and it counts as out of reach", async () => {
    const bank = openBank();
    await doubtful(given(), bank, ["endless", "after it"], "pays silently");
    let first = true;
    const { engine } = worker(given(), bank, {
      settings: { requestTimeout: 3_000, lease: 4_500 },
      changed: {
        look: ({ attempt }) => {
          if (!first) return bank.look(attempt.downstreamKey);
          first = false;
          return new Promise(() => {});
        },
      },
    });
    expect(await reconcile(engine)).toMatchObject({ settled: 1, unreachable: 1 });
    expect(await given().rows("after it")).toMatchObject([{ state: "paid" }]);
  });

  test("is not stopped by a record that it cannot handle", async () => {
    const bank = openBank();
    await doubtful(given(), bank, ["bad reference", "good"], "loses requests");
    const { engine, events } = worker(given(), bank, {
      changed: {
        abandon: (_tx, { reference }) => {
          if (reference.key === "bad reference") throw new TypeError("a bug in abandon");
        },
      },
    });
    expect(await reconcile(engine)).toEqual({ ...NOTHING, failed: 1, released: 1 });
    expect(ofType(events, "failure")).toMatchObject([{ what: "abandoning pay" }]);
  });

  test("counts damaged records and passes them by", async () => {
    const bank = openBank();
    await doubtful(given(), bank, ["damaged"], "pays silently");
    await given().damage();
    await doubtful(given(), bank, ["whole"], "pays silently");
    expect(await reconcile(worker(given(), bank).engine)).toEqual({ ...NOTHING, settled: 1, damaged: 1 });
  });
}

function persons<Tx>(given: () => Sql<Tx>): void {
  test("leaves to a person what it has looked at often enough", async () => {
    const bank = openBank();
    await doubtful(given(), bank, ["undecided"], "pays silently");
    const { engine } = worker(given(), bank, {
      settings: { maxReconcileLooks: 3 },
      changed: { look: async () => ({ kind: "pending" }) },
    });
    const results = [];
    for (let look = 1; look <= 3; look += 1) {
      await dueAgain(given(), "undecided");
      results.push(await reconcile(engine));
    }
    expect(results.map((tick) => [tick.waiting, tick.reviewed])).toEqual([
      [1, 0],
      [1, 0],
      [0, 1],
    ]);
    expect(await unknown(given(), "undecided")).toMatchObject({ disposition: "review", nextLookAt: null });
    expect(await reconcile(engine)).toEqual(NOTHING);
  });

  test("is not stopped by records of operations that it does not know, however many", async () => {
    const bank = openBank();
    const { pay } = paying(sqlEngineOn(given().store).engine, given(), bank, { name: "strange" });
    bank.setMood("pays silently");
    for (let n = 0; n < 7; n += 1) await pay(order(`strange ${n}`, { operation: "strange" }));
    const before = await unknown(given(), "strange 0");
    await doubtful(given(), bank, ["known"], "pays silently");
    const { engine } = worker(given(), bank);
    const tick = () => reconcile(engine, { limit: 2 });
    let settled = 0;
    for (let ticks = 0; ticks < 3; ticks += 1) settled += (await tick()).settled;
    expect(settled).toBe(1);
    expect(await unknown(given(), "strange 0")).toEqual(before);
  });

  test("that does not know an operation keeps no record from a worker that does", async () => {
    const bank = openBank();
    await doubtful(given(), bank, ["shared"], "pays silently");
    const ignorant = sqlEngineOn(given().store, { reconcileInterval: 40 }).engine;
    const { engine } = worker(given(), bank);
    let settled = 0;
    for (let tick = 0; tick < 4 && settled === 0; tick += 1) {
      await dueAgain(given(), "shared");
      await reconcile(ignorant);
      settled += (await reconcile(engine)).settled;
    }
    expect(settled).toBe(1);
  });
}
