import { describe, expect, test } from "vitest";
import type { Effects } from "../../src/core/record.ts";
import { renew, seen } from "../../src/core/transition.ts";
import type { Store } from "../../src/stores/store.ts";
import { sweep } from "../../src/worker/tick.ts";
import { died, engineOn, ofType, proceeded, requestFor, standing } from "../engine/engines.ts";
import { type Opened, onEverySqlStore, onEveryStore } from "../engine/stores.ts";
import { faultyStore } from "../support/faulty-store.ts";
import { until } from "../support/processes.ts";

/** So many attempts that died, each under a key of its own. */
async function dead(store: Store, prefix: string, count: number, effects: Effects = "transaction") {
  const requests = Array.from({ length: count }, (_, n) => requestFor(`${prefix} ${n}`, { effects }));
  await Promise.all(requests.map((request) => died(store, request)));
  return requests;
}

const GRACE = { sweepGrace: 1 };

/** Resolves once so many records are due for the sweeper. */
async function due(store: Store, count: number): Promise<void> {
  await until(
    async () => (await store.due({ kind: "stale", graceMs: 1, limit: 500 })).records.length >= count,
  );
}

describe("the sweeper", () => {
  onEveryStore((given) => {
    judges(given);
    many(given);
    troubled(given);
  });

  onEverySqlStore((given) => {
    test("counts a damaged record once, however many pages it takes, and passes it by", async () => {
      const { store, damage } = given();
      await dead(store, "damaged", 2);
      await damage();
      await dead(store, "whole", 2);
      await until(async () => (await store.due({ kind: "stale", graceMs: 1, limit: 9 })).damaged === 2);
      await due(store, 2);
      expect(await sweep(engineOn(store, GRACE).engine, { limit: 1 })).toEqual({
        released: 2,
        doubted: 0,
        passed: 0,
        failed: 0,
        damaged: 2,
        more: false,
      });
    });
  });
});

function judges(given: () => Opened): void {
  test.each([
    ["transaction", "released", { released: 1, doubted: 0 }],
    ["declared", "released", { released: 1, doubted: 0 }],
    ["none", "unknown", { released: 0, doubted: 1 }],
  ] as const)(
    "judges an attempt with effects %s that was heard of no more: %s",
    async (effects, state, counts) => {
      const { store } = given();
      const [request] = await dead(store, `judged ${effects}`, 1, effects);
      if (request === undefined) throw new Error("One died.");
      const before = await standing(store, request);
      const { engine, events } = engineOn(store, GRACE);
      await due(store, 1);
      expect(await sweep(engine)).toMatchObject(counts);
      const after = await standing(store, request);
      expect(after).toMatchObject({ state, attempt: before.attempt, revision: before.revision + 1 });
      expect(ofType(events, "transition")).toMatchObject([
        {
          by: "sweeper",
          from: "in_progress",
          to: state,
          attempt: before.attempt,
          identity: request.identity,
        },
      ]);
      expect((await store.beats()).map(({ worker }) => worker)).toContain("sweeper");
    },
  );

  test("leaves an attempt alone until its lease and the grace are over", async () => {
    const { store } = given();
    const [request] = await dead(store, "grace", 1);
    if (request === undefined) throw new Error("One died.");
    const before = await standing(store, request);
    const { engine, events } = engineOn(store, { sweepGrace: "1h" });
    expect(await sweep(engine)).toEqual({
      ...{ released: 0, doubted: 0, passed: 0, failed: 0, damaged: 0, more: false },
    });
    proceeded(await engine.begin(requestFor("running")));
    expect(await sweep(engineOn(store, GRACE).engine)).toMatchObject({ passed: 0, doubted: 0 });
    expect(await standing(store, requestFor("running"))).toMatchObject({ state: "in_progress" });
    expect(before.state).toBe("in_progress");
    expect(ofType(events, "transition")).toEqual([]);
  });
}

function many(given: () => Opened): void {
  test("moves each record once, and fails at none, of ten sweepers at once", async () => {
    const { store, other } = given();
    const requests = await dead(store, "crowd", 12);
    const engines = Array.from({ length: 10 }, (_, n) => engineOn(n % 2 === 0 ? store : other, GRACE));
    await due(store, 12);
    const swept = await Promise.all(engines.map(({ engine }) => sweep(engine)));
    expect(swept.reduce((sum, { released }) => sum + released, 0)).toBe(12);
    expect(swept.reduce((sum, { failed }) => sum + failed, 0)).toBe(0);
    for (const request of requests)
      expect(await standing(store, request)).toMatchObject({ state: "released", revision: 2 });
    expect(engines.flatMap(({ events }) => ofType(events, "transition"))).toHaveLength(12);
  });

  test("goes on batch after batch until nothing is left, or its time is up or it is told to end", async () => {
    const { store } = given();
    await dead(store, "batch", 7);
    const { engine } = engineOn(store, GRACE);
    await due(store, 7);
    expect(await sweep(engine, { forMs: 0 })).toMatchObject({ released: 0, more: true });
    let begun = 0;
    const ending = () => ++begun > 2;
    expect(await sweep(engine, { limit: 2, ending })).toMatchObject({ released: 2, more: true });
    expect(await sweep(engine, { limit: 2 })).toMatchObject({ released: 5, more: false });
  });

  test("gets past records that it can never judge, however many stand in front", async () => {
    const { store } = given();
    const bad = await dead(store, "never", 7);
    await dead(store, "behind", 3);
    const owners = new Set(await Promise.all(bad.map(async (each) => (await standing(store, each)).owner)));
    const stubborn: Store = {
      ...store,
      replace: async (version, write, patience) => {
        if (owners.has(version.owner)) throw new TypeError("a record that nobody can write");
        return await store.replace(version, write, patience);
      },
    };
    const { engine, events } = engineOn(stubborn, GRACE);
    await due(store, 10);
    expect(await sweep(engine, { limit: 2 })).toMatchObject({ released: 3, failed: 7, more: false });
    expect(ofType(events, "failure")).toHaveLength(7);
  });

  test("writes a few at once, never more, and each once; told to end, it ends what is under way and begins nothing", async () => {
    const { store } = given();
    await dead(store, "lanes", 12);
    let [underWay, most, written, ending] = [0, 0, 0, false];
    const counted: Store = {
      ...store,
      replace: async (...asked) => {
        underWay += 1;
        most = Math.max(most, underWay);
        written += 1;
        if (written === 6) ending = true;
        const replaced = await store.replace(...asked);
        underWay -= 1;
        return replaced;
      },
    };
    const { engine } = engineOn(counted, GRACE);
    await due(store, 12);
    const swept = await sweep(engine, { limit: 5, ending: () => ending });
    expect({ ...swept, most, underWay }).toMatchObject({ released: 6, more: true, most: 2, underWay: 0 });
    expect(await sweep(engine)).toMatchObject({ released: 6, passed: 0, more: false });
    expect(written).toBe(12);
  });

  test("ends a tick, with an error, in which the store is out of reach", async () => {
    const { store } = given();
    await dead(store, "away", 9);
    const faulty = faultyStore(store);
    const { engine, events } = engineOn(faulty.store, GRACE);
    await due(store, 9);
    faulty.plan("replace", "every", "not_applied");
    await expect(sweep(engine)).rejects.toMatchObject({ code: "store_unavailable" });
    expect(ofType(events, "failure").length).toBeLessThanOrEqual(3 + 3); // the third of them, and what was under way beside it
    faulty.heal();
    expect(await sweep(engine)).toMatchObject({ released: 9 });
  });

  test("that is killed in the middle of a batch leaves the rest to the next one", async () => {
    const { store } = given();
    const requests = await dead(store, "killed", 4);
    const { engine } = engineOn(store, GRACE);
    await due(store, 4);
    let written = 0;
    const killed: Store = {
      ...store,
      replace: (...asked) => (++written <= 2 ? store.replace(...asked) : new Promise(() => {})),
    };
    void sweep(engineOn(killed, { ...GRACE, storeTimeout: "1h" }).engine);
    await until(() => written === 4);
    await until(async () => (await sweep(engine)).released === 0);
    for (const request of requests)
      expect(await standing(store, request)).toMatchObject({ state: "released" });
  });
}

function troubled(given: () => Opened): void {
  test("passes an attempt that renewed its lease just now", async () => {
    const { store } = given();
    const [request] = await dead(store, "renewed", 1);
    if (request === undefined) throw new Error("One died.");
    await due(store, 1);
    const racing: Store = {
      ...store,
      due: async (query) => {
        const listed = await store.due(query);
        for (const record of listed.records)
          if (record.state === "in_progress")
            await store.replace(seen(record), renew(record, { writeId: "beat", leaseMs: 60_000 }), "wait");
        return listed;
      },
    };
    expect(await sweep(engineOn(racing, GRACE).engine)).toMatchObject({ released: 0, passed: 1 });
    expect(await standing(store, request)).toMatchObject({ state: "in_progress", writeId: "beat" });
  });

  test.each(["contention", "not_applied", "reply_lost"] as const)(
    "does not stop at a record whose write fails (%s): the others are judged, and it is told",
    async (fault) => {
      const { store } = given();
      await dead(store, `trouble ${fault}`, 4);
      const faulty = faultyStore(store);
      const { engine, events } = engineOn(faulty.store, GRACE);
      await due(store, 4);
      faulty.plan("replace", 1, fault);
      expect(await sweep(engine)).toMatchObject({ released: 3, failed: 1 });
      expect(ofType(events, "failure")).toHaveLength(1);
      await sweep(engine);
      expect((await store.due({ kind: "stale", graceMs: 1, limit: 9 })).records).toEqual([]);
    },
  );
}
