import { describe, expect, onTestFinished, test } from "vitest";
import type { EngineEvent } from "../../src/engine/events.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { createEngine } from "../../src/worker/engine.ts";
import { workersHealth } from "../../src/worker/health.ts";
import { died, ofType, requestFor, standing } from "../engine/engines.ts";
import { onEveryStore } from "../engine/stores.ts";
import { faultyStore } from "../support/faulty-store.ts";
import { until } from "../support/processes.ts";

const QUICK = { sweepInterval: 30, reconcileInterval: 30, sweepGrace: 1 };
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
    expect((await beats([60_000, 100_000])).sweeper).toBe("ok");
    expect((await beats([100_000, 61_000])).sweeper).toBe("stale");
    expect((await beats([100_000, 1_000])).sweeper).toBe("ok");
  });
});

function onMemory() {
  const faulty = faultyStore(memoryStore());
  const events: EngineEvent[] = [];
  const engine = createEngine({
    ...{ store: faulty.store, ...QUICK, listeners: [(event: EngineEvent) => void events.push(event)] },
  });
  onTestFinished(() => engine.close());
  return { faulty, engine, events };
}
