import { describe, expect, test } from "vitest";
import type { EngineSettings } from "../../src/engine/engine.ts";
import { reconcile } from "../../src/worker/tick.ts";
import { faultySqlStore } from "../support/faulty-store.ts";
import { until } from "../support/processes.ts";
import { type Bank, openBank, order, paying } from "./bank.ts";
import { sqlEngineOn, standing } from "./engines.ts";
import { onEverySqlStore, type Sql } from "./stores.ts";

describe("an effect in doubt", () => {
  onEverySqlStore((given) => {
    blind(given);
    repeatable(given);
    rerun(given);
  });
});

function blind<Tx>(given: () => Sql<Tx>): void {
  test("at a provider that cannot be asked is left to a person at once", async () => {
    const { store } = given();
    const { engine } = sqlEngineOn(store);
    const bank = openBank();
    const { pay } = paying(engine, given(), bank, { provider: "blind" });
    bank.setMood("pays silently");
    expect(await pay(order("blind"))).toMatchObject({ kind: "in_doubt", retryAfterMs: null });
    expect(await standing(store, order("blind"))).toMatchObject({ disposition: "review", nextLookAt: null });
    expect(await reconcile(engine)).toMatchObject({ settled: 0, reviewed: 0 });
    expect(await pay(order("blind"))).toMatchObject({ kind: "outcome_unknown", retryAfterMs: null });
    expect(bank.asked).toHaveLength(1);
  });
}

/** An engine with an operation at a provider that only knows our keys; a call is repeated for so long. */
function knowingKeys<Tx>({ store, put }: Sql<Tx>, keyTtl: number, bank: Bank, rest: EngineSettings = {}) {
  const { engine } = sqlEngineOn(store, { maxReconcileLooks: 2, ...rest });
  // A call may go out as late as the attempt may run: that much before its end the provider's memory counts as over.
  const settings = { provider: "repeatable", keyTtl: keyTtl + engine.policy.requestTimeoutMs } as const;
  return { engine, ...paying(engine, { put }, bank, settings) };
}

function repeatable<Tx>(given: () => Sql<Tx>): void {
  test("at a provider that knows our key is called again by the next request, with the same key and row", async () => {
    const { rows } = given();
    const bank = openBank();
    const { pay } = knowingKeys(given(), 60_000, bank);
    bank.setMood("pays silently");
    expect(await pay(order("again"))).toMatchObject({ kind: "in_doubt" });
    expect(await pay(order("again", { body: "another" }))).toMatchObject({ kind: "mismatch" });
    bank.setMood("well");
    expect(await pay(order("again"))).toMatchObject({ kind: "settled", answer: { status: 201 } });
    expect([bank.asked.length, new Set(bank.asked).size, bank.paid.size]).toEqual([2, 1, 1]);
    expect(await rows("again")).toMatchObject([{ state: "paid" }]);
  });

  test("tells its client to come again soon, because that is what helps", async () => {
    const bank = openBank();
    const { pay } = knowingKeys(given(), 86_400_000, bank);
    bank.setMood("pays silently");
    const executed = await pay(order("soon"));
    expect(executed.kind).toBe("in_doubt");
    if (executed.kind === "in_doubt") expect(executed.retryAfterMs).toBeLessThanOrEqual(60_000);
  });

  test("is not called again once its provider has forgotten the key, and is left to a person then", async () => {
    const { store } = given();
    const bank = openBank();
    const { engine, pay } = knowingKeys(given(), 150, bank);
    bank.setMood("pays silently");
    await pay(order("forgotten"));
    await until(async () => (await reconcile(engine)).reviewed === 1);
    expect(await standing(store, order("forgotten"))).toMatchObject({ disposition: "review" });
    expect(await pay(order("forgotten"))).toMatchObject({ kind: "outcome_unknown" });
    expect(bank.asked).toHaveLength(1);
  });

  test("counts the provider's memory from the first call: calling again does not make it longer", async () => {
    const { store } = given();
    const bank = openBank();
    const { pay } = knowingKeys(given(), 60_000, bank);
    bank.setMood("pays silently");
    await pay(order("first call"));
    const first = (await standing(store, order("first call"))).steps.get("perform");
    await pay(order("first call"));
    const second = (await standing(store, order("first call"))).steps.get("perform");
    expect(second).toEqual(first);
    expect(bank.asked).toHaveLength(2);
  });

  test("is still in doubt when a repeated call did nothing: that says nothing of the first one", async () => {
    const { store, rows } = given();
    const bank = openBank();
    const { pay } = knowingKeys(given(), 60_000, bank);
    bank.setMood("pays silently");
    await pay(order("second refused"));
    bank.setMood("refuses");
    expect(await pay(order("second refused"))).toMatchObject({ kind: "in_doubt" });
    expect(await standing(store, order("second refused"))).toMatchObject({ state: "unknown" });
    expect(await rows("second refused")).toMatchObject([{ state: "pending" }]);
    expect(await pay(order("second refused", { body: "another" }))).toMatchObject({ kind: "mismatch" });
    bank.setMood("well");
    expect(await pay(order("second refused"))).toMatchObject({ kind: "settled" });
    expect(bank.paid.size).toBe(1);
  });

  test.each(["given up", "drained"])(
    "is still in doubt when the take-over of its key was %s before it called anybody",
    async (how) => {
      const { store } = given();
      const key = `take-over ${how}`;
      const bank = openBank();
      bank.setMood("pays silently");
      await knowingKeys(given(), 60_000, bank).pay(order(key));
      const faulty = faultySqlStore(store);
      const storeTimeout = how === "drained" ? "10s" : 80;
      const { engine, pay } = knowingKeys({ ...given(), store: faulty.store }, 60_000, bank, {
        storeTimeout,
      });
      if (how === "given up") {
        faulty.plan("transaction", 1, "reply_lost");
        faulty.plan("transaction", "every", "not_applied");
        expect(await pay(order(key))).toMatchObject({ kind: "store_unavailable" });
      } else {
        faulty.plan("transaction", 1, { kind: "slow", ms: 60 });
        const paid = pay(order(key));
        await until(() => faulty.calls("transaction") === 1);
        await engine.close({ drain: 1 });
        expect(await paid).toMatchObject({ kind: "draining" });
      }
      faulty.heal();
      await until(async () => (await standing(store, order(key))).state !== "in_progress");
      const record = await standing(store, order(key));
      expect(record).toMatchObject({ state: "unknown" });
      expect(record.steps.get("perform")?.state).toBe("open");
      expect(bank.asked).toHaveLength(1);
    },
  );
}

function rerun<Tx>(given: () => Sql<Tx>): void {
  test("is performed again by the programmer's word, with the same key", async () => {
    const { store, rows } = given();
    const bank = openBank();
    const { pay } = paying(sqlEngineOn(store).engine, given(), bank, { provider: "blind" });
    bank.setMood("loses requests");
    await pay(order("rerun"));
    bank.setMood("well");
    expect(await pay(order("rerun", { onAmbiguous: "rerun" }))).toMatchObject({ kind: "settled" });
    expect([bank.asked.length, new Set(bank.asked).size]).toEqual([2, 1]);
    expect(await rows("rerun")).toMatchObject([{ state: "paid" }]);
  });
}
