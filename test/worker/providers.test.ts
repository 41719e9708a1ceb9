import { describe, expect, test } from "vitest";
import type { Unknown } from "../../src/core/record.ts";
import { look, seen } from "../../src/core/transition.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { AttemptView } from "../../src/engine/operation.ts";
import { nodeRuntime } from "../../src/engine/runtime.ts";
import type { Settling } from "../../src/stores/store.ts";
import { reconcile } from "../../src/worker/tick.ts";
import { type Bank, openBank, order, paying } from "../engine/bank.ts";
import { ofType, sqlEngineOn, standing } from "../engine/engines.ts";
import { onEverySqlStore, type Sql } from "../engine/stores.ts";
import { until } from "../support/processes.ts";

describe("the reconciler, by what a provider offers", () => {
  onEverySqlStore((given) => {
    query(given);
    graceful(given);
    outOfReach(given);
    contradicted(given);
  });
});

type Changed<Tx> = Parameters<typeof paying<Tx>>[3];

/** A payment at a provider of this kind, whose looks follow one another closely. */
function at<Tx>(sql: Sql<Tx>, bank: Bank, changed: Changed<Tx>, settings: object = {}) {
  const runtime = { ...nodeRuntime(), random: () => 0.5 };
  const told = sqlEngineOn(sql.store, { reconcileInterval: 5, runtime, ...settings });
  return { ...told, ...paying(told.engine, sql, bank, changed) };
}

async function unknown<Tx>({ store }: Sql<Tx>, key: string): Promise<Unknown> {
  const record = await standing(store, order(key));
  if (record.state !== "unknown") throw new Error(`It is ${record.state}.`);
  return record;
}

/** Ticks until the record is looked at no more; how many looks were answered and what became of it. */
async function looked<Tx>(sql: Sql<Tx>, engine: Engine<Tx, Settling>, key: string) {
  let answered = 0;
  await until(
    async () => {
      const { waiting, released, settled, reviewed } = await reconcile(engine);
      answered += waiting + released + settled + reviewed;
      const record = await standing(sql.store, order(key));
      return record.state !== "unknown" || record.disposition !== "reconcile";
    },
    { everyMs: 5 },
  );
  return { answered, record: await standing(sql.store, order(key)) };
}

function query<Tx>(given: () => Sql<Tx>): void {
  test('query: believes "not found" only after the horizon that was sent, and then lets the same key run again', async () => {
    const { store, rows } = given();
    const bank = openBank();
    const views: AttemptView[] = [];
    const { engine, pay, definition } = at(given(), bank, {
      provider: "query",
      validFor: 700,
      perform: async ({ attempt }) => {
        views.push(attempt);
        throw new Error("The line went dead.");
      },
      look: async ({ attempt }) => {
        views.push(attempt);
        return await bank.look(attempt.downstreamKey);
      },
    });
    expect(await pay(order("query"))).toMatchObject({ kind: "in_doubt" });
    const { claimedAt } = await unknown(given(), "query");
    const { answered, record } = await looked(given(), engine, "query");
    expect(answered).toBeGreaterThanOrEqual(2);
    expect(record).toMatchObject({ state: "released" });
    expect(record.updatedAt).toBeGreaterThan(claimedAt + 700);
    expect(new Set(views.map(({ validUntil }) => validUntil?.getTime()))).toEqual(new Set([claimedAt + 700]));
    expect(new Set(views.map(({ downstreamKey }) => downstreamKey)).size).toBe(1);
    expect(record.steps.get("perform")).toEqual({ state: "clear", generation: 0 });
    expect(await rows("query")).toMatchObject([{ state: "abandoned" }]);

    const again = at(given(), bank, {
      ...definition,
      perform: async ({ attempt }) => bank.pay(attempt.downstreamKey),
    });
    expect(await again.pay(order("query"))).toMatchObject({ kind: "settled" });
    expect((await standing(store, order("query"))).claimedAt).toBeGreaterThan(claimedAt);
    expect(bank.paid.size).toBe(1);
  });

  test("query: ends what happened with the truth, before the horizon and without waiting for it", async () => {
    const bank = openBank();
    const { engine, pay } = at(given(), bank, { provider: "query", validFor: "1h" });
    bank.setMood("pays silently");
    await pay(order("found"));
    expect(await reconcile(engine)).toMatchObject({ settled: 1 });
    expect(await given().rows("found")).toMatchObject([{ state: "paid" }]);
  });

  test("query: a first look that comes after the horizon is looked at twice", async () => {
    const { store } = given();
    const bank = openBank();
    const { engine, pay } = at(given(), bank, { provider: "query", validFor: 1 });
    bank.setMood("loses requests");
    await pay(order("late look"));
    await until(
      async () =>
        (await store.read(order("late look").identity)).now >
        (await unknown(given(), "late look")).claimedAt + 1,
    );
    expect(await reconcile(engine)).toMatchObject({ waiting: 1, released: 0 });
    expect(await looked(given(), engine, "late look")).toMatchObject({
      answered: 1,
      record: { state: "released" },
    });
    expect(bank.looks()).toBe(2);
  });

  test.each([
    ["validFor", "1h", "keyed", /is for a provider of kind "query"/],
    ["validFor", "13h", "query", /half the retention/],
    ["validFor", "soon", "query", /positive number/],
    ["keyTtl", "60s", "repeatable", /longer than requestTimeout/],
  ] as const)("refuses %s %s of a %s provider, by the field's name", (field, value, provider, said) => {
    const { engine } = sqlEngineOn(given().store);
    const define = () => paying(engine, given(), openBank(), { provider, [field]: value });
    expect(define).toThrow(said);
    expect(define).toThrow(`operation pay: ${field}`);
  });
}

function graceful<Tx>(given: () => Sql<Tx>): void {
  test("a provider that can be asked, and neither cancels nor refuses, is believed after the grace and three looks", async () => {
    const bank = openBank();
    const { engine, pay } = at(given(), bank, { provider: "query" }, { notFoundGrace: 600 });
    bank.setMood("loses requests");
    await pay(order("grace"));
    const { updatedAt } = await unknown(given(), "grace");
    const { answered, record } = await looked(given(), engine, "grace");
    expect([answered, bank.looks()]).toEqual([3, 3]);
    expect(record).toMatchObject({ state: "released" });
    expect(record.updatedAt).toBeGreaterThanOrEqual(updatedAt + 600);
  });

  test("and what it has not decided yet waits as long between two looks", async () => {
    const bank = openBank();
    const changed: Changed<Tx> = { provider: "query", look: async () => ({ kind: "pending" }) };
    const { engine, pay } = at(given(), bank, changed, { notFoundGrace: 600 });
    bank.setMood("loses requests");
    await pay(order("pending grace"));
    expect(await reconcile(engine)).toMatchObject({ waiting: 1 });
    const { nextLookAt, updatedAt } = await unknown(given(), "pending grace");
    expect((nextLookAt ?? 0) - updatedAt).toBe(300);
  });
}

function outOfReach<Tx>(given: () => Sql<Tx>): void {
  test("out of reach: waits twice as long each time, up to an hour, and changes nothing else", async () => {
    const bank = openBank();
    const { engine, pay } = at(given(), bank, {});
    bank.setMood("pays silently");
    await pay(order("away"));
    bank.setDown("down");
    const before = await unknown(given(), "away");
    const waits: number[] = [];
    for (let look = 0; look < 5; look += 1) {
      await until(async () => (await reconcile(engine)).unreachable === 1, { everyMs: 5 });
      const { nextLookAt, updatedAt, looks, evidence, disposition } = await unknown(given(), "away");
      waits.push((nextLookAt ?? 0) - updatedAt);
      expect({ looks, evidence, disposition }).toEqual({
        looks: 0,
        evidence: before.evidence,
        disposition: before.disposition,
      });
    }
    expect(waits).toEqual([5, 10, 20, 40, 80]);
    const patient = at(given(), bank, {}, { reconcileInterval: "3h" });
    await until(async () => (await reconcile(patient.engine)).unreachable === 1, { everyMs: 5 });
    const { nextLookAt, updatedAt } = await unknown(given(), "away");
    expect((nextLookAt ?? 0) - updatedAt).toBe(3_600_000);
  });

  test("out of reach: after a few of its records the others are left, untouched, to the next tick", async () => {
    const bank = openBank();
    const { engine, pay } = at(given(), bank, {});
    bank.setMood("pays silently");
    const keys = Array.from({ length: 12 }, (_, n) => `many ${n}`);
    for (const key of keys) await pay(order(key));
    bank.setDown("down");
    const before = await Promise.all(keys.map((key) => unknown(given(), key)));
    const { unreachable } = await reconcile(engine);
    expect(unreachable).toBeGreaterThanOrEqual(3);
    expect(unreachable).toBeLessThanOrEqual(4);
    const after = await Promise.all(keys.map((key) => unknown(given(), key)));
    expect(after.filter(({ revision }, n) => revision === before[n]?.revision)).toHaveLength(
      12 - unreachable,
    );
    bank.setDown("up");
    let settled = 0;
    await until(async () => {
      settled += (await reconcile(engine)).settled;
      return settled === 12;
    });
    expect(bank.paid.size).toBe(12);
  });

  test("a provider that hangs does not keep another's records waiting", async () => {
    const bank = openBank();
    bank.setMood("pays silently");
    const { engine, pay } = at(given(), bank, {}, { requestTimeout: 3_000, lease: 4_500 });
    const hanging = paying(engine, given(), bank, { name: "hangs", look: () => new Promise(() => {}) });
    for (let n = 0; n < 3; n += 1) await hanging.pay(order(`hangs ${n}`, { operation: "hangs" }));
    await pay(order("another's"));
    const ticking = reconcile(engine);
    await until(async () => (await standing(given().store, order("another's"))).state === "completed", {
      withinMs: 2_500,
    });
    expect(await ticking).toMatchObject({ settled: 1, unreachable: 3 });
  });

  test("what a stopping worker still asks for is given up, and is due again at once", async () => {
    const bank = openBank();
    bank.setMood("pays silently");
    const signals: AbortSignal[] = [];
    const { engine, pay } = at(given(), bank, {
      look: ({ attempt }) => {
        signals.push(attempt.signal);
        return new Promise(() => {});
      },
    });
    await pay(order("stopping"));
    const stop = new AbortController();
    const ticking = reconcile(engine, { signal: stop.signal, ending: () => stop.signal.aborted });
    await until(() => signals.length === 1);
    stop.abort(new Error("The worker had to stop."));
    expect(await ticking).toMatchObject({ waiting: 1, unreachable: 0 });
    expect(signals[0]?.aborted).toBe(true);
    expect(await unknown(given(), "stopping")).toMatchObject({ looks: 0 });
    const { engine: next } = at(given(), bank, {});
    expect(await reconcile(next)).toMatchObject({ settled: 1 });
  });
}

function contradicted<Tx>(given: () => Sql<Tx>): void {
  test("found after it had cancelled: is completed, and told as a contradiction", async () => {
    const bank = openBank();
    bank.setMood("loses requests");
    let abandons = 0;
    const { engine, events, pay } = at(given(), bank, {
      cancel: async () => ({ kind: "cancelled" }),
      abandon: () => {
        abandons += 1;
        throw new TypeError("a bug in abandon");
      },
    });
    await pay(order("contradiction"));
    expect(await reconcile(engine)).toMatchObject({ failed: 1 });
    expect(abandons).toBeGreaterThan(0);
    bank.setMood("well");
    await bank.pay(bank.asked[0] ?? "");
    expect(await looked(given(), engine, "contradiction")).toMatchObject({ record: { state: "completed" } });
    expect(ofType(events, "contradiction")).toMatchObject([{ operation: "pay" }]);
    expect(await given().rows("contradiction")).toMatchObject([{ state: "paid" }]);
  });

  test("an answer that comes after the record was cancelled and released changes nothing, and is told as a contradiction", async () => {
    const bank = openBank();
    bank.setMood("stalls");
    const { engine, events, pay } = at(given(), bank, {
      look: async () => ({ kind: "not_found" }),
      cancel: async () => ({ kind: "cancelled" }),
    });
    await pay({ ...order("came after"), maxRunMs: 60 });
    expect(await reconcile(engine)).toMatchObject({ released: 1 });
    const before = await standing(given().store, order("came after"));
    bank.goOn();
    await until(() => ofType(events, "contradiction").length === 1);
    expect(await standing(given().store, order("came after"))).toEqual(before);
  });

  test("one that lost the record between its look and its cancel sends no cancel", async () => {
    const bank = openBank();
    bank.setMood("loses requests");
    let cancels = 0;
    const other = at(given(), bank, { cancel: async () => ({ kind: "cancelled" }) });
    const { engine, pay } = at(given(), bank, {
      look: async () => {
        const record = await unknown(given(), "lost in between");
        // As if its lease had lapsed: another worker takes it over and ends it.
        await given().other.replace(
          seen(record),
          look(record, { writeId: "other", owner: "other", leaseMs: 1 }),
          "wait",
        );
        return { kind: "not_found" };
      },
      cancel: async () => {
        cancels += 1;
        return { kind: "cancelled" };
      },
    });
    await pay(order("lost in between"));
    expect(await reconcile(engine)).toMatchObject({ passed: 1 });
    expect(cancels).toBe(0);
    expect(await looked(given(), other.engine, "lost in between")).toMatchObject({
      record: { state: "released" },
    });
  });
}
