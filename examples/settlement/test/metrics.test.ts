import { createEngine } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { describe, expect, test } from "vitest";
import { createMetrics } from "../src/metrics.ts";

describe("what Prometheus sees of the store", () => {
  test("is its records by state, the age of what stands still, and whether workers are at work", async () => {
    const engine = createEngine({ store: memoryStore() });
    const metrics = createMetrics(engine, { tell: failed, everyMs: 0 });
    await engine.run(order("done"), async () => 1);
    await expect(
      engine.run(order("in doubt"), () => {
        throw new Error("Nobody knows.");
      }),
    ).rejects.toThrow();
    let end = () => {};
    const running = engine.run(order("runs"), () => new Promise<void>((resolve) => (end = resolve)));
    await new Promise((resolve) => setTimeout(resolve, 20));
    const seen = await seriesOf(metrics.metrics());
    expect(seen).toMatchObject({
      oncekey_store_up: 1,
      'oncekey_records{state="completed"}': 1,
      'oncekey_records{state="unknown"}': 1,
      'oncekey_records{state="in_progress"}': 1,
      'oncekey_unknown_records{disposition="hold"}': 1,
      'oncekey_worker_up{worker="sweeper"}': 0,
      oncekey_expired: 0,
    });
    expect(seen["oncekey_oldest_in_progress_seconds"]).toBeGreaterThan(0);
    expect(seen["oncekey_oldest_in_progress_seconds"]).toBeLessThan(5);
    expect(seen["oncekey_oldest_unknown_seconds"]).toBeGreaterThan(0);
    expect(seen["oncekey_oldest_expired_seconds"]).toBeUndefined();
    end();
    await running;
    engine.start();
    await expect
      .poll(async () => (await seriesOf(metrics.metrics()))['oncekey_worker_up{worker="purge"}'])
      .toBe(1);
    expect((await seriesOf(metrics.metrics()))["oncekey_oldest_in_progress_seconds"]).toBeUndefined();
    await engine.close();
  });

  test("says that the store could not be read, and goes on counting, while it is away", async () => {
    const store = memoryStore();
    const told: unknown[] = [];
    let away = false;
    const count = async () => {
      if (away) throw new Error("away");
      return await store.count();
    };
    const engine = createEngine({ store: { ...store, count } });
    const metrics = createMetrics(engine, { tell: (error) => told.push(error), everyMs: 0 });
    await engine.run(order("counted"), async () => 1);
    away = true;
    const seen = await seriesOf(metrics.metrics());
    expect(seen["oncekey_store_up"]).toBe(0);
    expect(seen['oncekey_records{state="completed"}']).toBeUndefined();
    expect(seen['oncekey_requests_total{operation="order",outcome="claimed"}']).toBe(1);
    expect(told).not.toEqual([]);
    away = false;
    expect((await seriesOf(metrics.metrics()))['oncekey_records{state="completed"}']).toBe(1);
  });

  test("is counted anew only after a while, whoever looks how often", async () => {
    const store = memoryStore();
    let counts = 0;
    const count = () => {
      counts += 1;
      return store.count();
    };
    const engine = createEngine({ store: { ...store, count } });
    const metrics = createMetrics(engine, { tell: failed, everyMs: 60_000 });
    for (let look = 0; look < 5; look += 1) await metrics.metrics();
    expect(counts).toBe(1);
  });
});

const order = (key: string) => ({ operation: "order", principal: "alice", key });

function failed(error: unknown): never {
  throw error;
}

async function seriesOf(text: Promise<string>): Promise<Readonly<Record<string, number>>> {
  const lines = (await text).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(
    lines.map((line) => {
      const end = line.lastIndexOf(" ");
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}
