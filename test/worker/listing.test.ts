import { describe, expect, test } from "vitest";
import type { InProgress, KeyRecord } from "../../src/core/record.ts";
import { renew, seen } from "../../src/core/transition.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import type { DueQuery, Store } from "../../src/stores/store.ts";
import { listUnmet, nobodyMet } from "../../src/worker/listing.ts";
import { engineOn } from "../engine/engines.ts";
import { claimOf, httpIdentity } from "../stores/sample.ts";
import { until } from "../support/processes.ts";

const STALE = { kind: "stale", graceMs: 0 } as const;

describe("what a tick lists", () => {
  test("hides nothing behind the records of others, however many stand in front, and asks for no page again", async () => {
    const { store, asked } = await crowded(10_050);
    const met = nobodyMet();
    const wanted = { query: STALE, mine, limit: 100, isOver: () => false };
    const { driver } = engineOn(store).engine.context;
    const { records } = await driver.drive(listUnmet(wanted, met));
    expect(records.map(({ identity }) => identity.key)).toEqual(["mine"]);
    expect(await driver.drive(listUnmet(wanted, met))).toEqual({ records: [], damaged: 0 });
    expect(met.atEnd).toBe(true);
    expect(asked.map(({ limit }) => limit)).toEqual([100, 200, 400, 800, ...Array(9).fill(1_000)]);
  });

  test("shows nobody twice, who is due again before the tick has ended", async () => {
    const { store } = await crowded(1);
    const met = nobodyMet();
    const wanted = { query: STALE, mine, limit: 2, isOver: () => false };
    const { driver } = engineOn(store).engine.context;
    const [record] = (await driver.drive(listUnmet(wanted, met))).records;
    if (record === undefined) throw new Error("One is due.");
    met.add(record);
    await store.replace(seen(record), renew(record, { writeId: "again", leaseMs: 1 }), "wait");
    await until(async () => (await store.due({ ...STALE, limit: 9 })).records.length === 2);
    expect(await driver.drive(listUnmet(wanted, met))).toEqual({ records: [], damaged: 0 });
  });

  test("ends when its time is up, though only the records of others were seen", async () => {
    const { store, asked } = await crowded(7);
    const met = nobodyMet();
    const wanted = { query: STALE, mine, limit: 2, isOver: () => asked.length === 2 };
    const { driver } = engineOn(store).engine.context;
    expect(await driver.drive(listUnmet(wanted, met))).toEqual({ records: [], damaged: 0 });
    expect([met.atEnd, asked.length]).toEqual([false, 2]);
  });
});

function mine(record: KeyRecord): record is InProgress {
  return record.state === "in_progress" && record.identity.key === "mine";
}

/** So many stale records of others, all of one instant, and one behind them; notes what is asked for. */
async function crowded(
  count: number,
): Promise<{ readonly store: Store; readonly asked: readonly DueQuery[] }> {
  const store = memoryStore();
  const asked: DueQuery[] = [];
  const put = async (key: string, at: number) => {
    const claim = claimOf(httpIdentity(key));
    if (claim.state === "in_progress") await store.insert({ ...claim, leaseUntil: { at } });
  };
  for (let n = 0; n < count; n += 1) await put(`other ${n}`, 1_000);
  await put("mine", 1_001);
  return {
    asked,
    store: {
      ...store,
      due: (query) => {
        asked.push(query);
        return store.due(query);
      },
    },
  };
}
