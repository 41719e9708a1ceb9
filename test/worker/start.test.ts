import { describe, expect, onTestFinished, test } from "vitest";
import type { EngineEvent } from "../../src/engine/events.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import type { Store } from "../../src/stores/store.ts";
import { createEngine } from "../../src/worker/engine.ts";
import { workersHealth } from "../../src/worker/health.ts";
import { purge, sweep } from "../../src/worker/tick.ts";
import { died, ofType, requestFor, standing } from "../engine/engines.ts";
import { onEveryStore } from "../engine/stores.ts";
import { faultyStore } from "../support/faulty-store.ts";
import { until } from "../support/processes.ts";

const QUICK = { sweepInterval: 30, reconcileInterval: 30, sweepGrace: 1 };
const STORE_TIMEOUT_MS = 2_000;
const ABSENT = { sweeper: "absent", reconciler: "absent", purge: "absent" };
const OK = { sweeper: "ok", reconciler: "ok", purge: "ok" };

describe("engine.start()", () => {
  onEveryStore((given) => {
    test("runs sweeper, reconciler and purge, which are seen on the store, until it is stopped", async () => {
      const { store } = given();
      const request = requestFor("left behind", { effects: "transaction" });
      await died(store, request);
      const engine = createEngine({ store, ...QUICK });
      const workers = engine.start();
      await until(async () => (await store.beats()).length === 3);
      expect(await workersHealth(engine)).toEqual(OK);
      await until(async () => (await standing(store, request)).state === "released");
      await workers.stop();
      const beats = await store.beats();
      await new Promise((resolve) => setTimeout(resolve, 150));
      expect((await store.beats()).map(({ beatenAt }) => beatenAt)).toEqual(
        beats.map(({ beatenAt }) => beatenAt),
      );
      engine.start();
      await engine.close();
    });
  });

  test("is refused while they run, and once the engine is closed; closing stops them", async () => {
    const { faulty, engine } = onMemory();
    engine.start();
    expect(() => engine.start()).toThrow(/was called already/);
    await engine.close();
    const calls = faulty.calls("due");
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(faulty.calls("due")).toBe(calls);
    expect(() => engine.start()).toThrow(/closed/);
  });

  test("goes on when the store comes back, and tells the listeners while it is away", async () => {
    const { faulty, engine, events } = onMemory();
    faulty.plan("due", "every", "not_applied");
    engine.start();
    await until(() => ofType(events, "failure").length >= 2);
    expect(ofType(events, "failure").map(({ what }) => what)).toContain("a tick of the sweeper");
    faulty.heal();
    await until(async () => (await workersHealth(engine)).sweeper === "ok");
  });

  test("the health of workers: absent when never seen, ok when seen lately, stale when seen long ago", async () => {
    const { faulty, engine } = onMemory();
    expect(await workersHealth(engine)).toEqual(ABSENT);
    const beats = ([ageMs, other]: readonly [number, number]) =>
      workersHealth({
        ...engine,
        store: {
          ...faulty.store,
          beats: async () =>
            [ageMs, other].map((age) => ({ worker: "sweeper" as const, beatenAt: 0, ageMs: age })),
        },
      });
    const missedMs = 3 * 1.2 * QUICK.sweepInterval + STORE_TIMEOUT_MS; // three intervals, and the trips to the store
    expect((await beats([missedMs, 100_000])).sweeper).toBe("ok");
    expect((await beats([100_000, missedMs + 1])).sweeper).toBe("stale");
    expect((await beats([100_000, 20])).sweeper).toBe("ok");
  });
});

describe("an engine whose store nobody looks after", () => {
  onEveryStore((given) => {
    test("tells its listeners once, at its first claim, which workers are missing; never where they are at work", async () => {
      const { store, other } = given();
      const told = (on: Store) => {
        const events: EngineEvent[] = [];
        const engine = createEngine({ store: on, ...QUICK, listeners: [(event) => void events.push(event)] });
        onTestFinished(() => engine.close());
        const claim = (key: string) => engine.run({ operation: "o", principal: "p", key }, () => 1);
        return { engine, claim, missing: () => ofType(events, "no_upkeep").map(({ missing }) => missing) };
      };
      await other.beat("purge");
      const alone = told(store);
      expect(alone.missing()).toEqual([]);
      await alone.claim("first");
      await until(() => alone.missing().length > 0);
      await alone.claim("second");
      expect(alone.missing()).toEqual([["sweeper"]]);

      await other.beat("sweeper");
      const beside = told(store);
      await beside.claim("third");
      await store.count(); // comes after what it asked
      expect(beside.missing()).toEqual([]);
    });
  });

  test("says nothing where it has started workers itself, though none was seen yet", async () => {
    const { engine, events } = onMemory({ beats: async () => [] });
    engine.start();
    await engine.run({ operation: "o", principal: "p", key: "k" }, () => 7);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(ofType(events, "no_upkeep")).toEqual([]);
  });

  test("a look for workers that fails is told as a failure, and the claim is none the worse", async () => {
    const { faulty, engine, events } = onMemory({
      beats: async () => {
        throw new Error("no such table");
      },
    });
    expect(await engine.run({ operation: "o", principal: "p", key: "k" }, () => 7)).toBe(7);
    await until(() => ofType(events, "failure").length > 0);
    expect(ofType(events, "failure")).toMatchObject([{ what: "looking for workers on the store" }]);
    expect([faulty.calls("insert"), ofType(events, "no_upkeep")]).toEqual([1, []]);
  });
});

describe("a long tick", () => {
  test("is seen at each interval while it lasts, and once more at its end", async () => {
    let open = () => {};
    const gate = new Promise<number>((resolve) => {
      open = () => resolve(0);
    });
    const beats: string[] = [];
    const { engine } = onMemory({
      purge: () => gate,
      beat: async (worker) => void beats.push(worker),
    });
    const purging = purge(engine);
    await until(() => beats.length >= 3);
    const before = beats.length;
    open();
    await purging;
    expect([...new Set(beats)]).toEqual(["purge"]);
    expect(beats.length).toBeGreaterThan(before);
    const ended = beats.length;
    await new Promise((resolve) => setTimeout(resolve, 3 * QUICK.sweepInterval));
    expect(beats).toHaveLength(ended);
  });

  test("that fails is not seen at its end", async () => {
    const { faulty, engine } = onMemory();
    faulty.plan("due", "every", "not_applied");
    await expect(sweep(engine)).rejects.toMatchObject({ code: "store_unavailable" });
    expect(await faulty.store.beats()).toEqual([]);
  });
});

function onMemory(verbs: Partial<Store> = {}) {
  const faulty = faultyStore(memoryStore());
  const events: EngineEvent[] = [];
  const engine = createEngine({
    ...{
      store: { ...faulty.store, ...verbs },
      ...QUICK,
      listeners: [(event: EngineEvent) => void events.push(event)],
    },
  });
  onTestFinished(() => engine.close());
  return { faulty, engine, events };
}
