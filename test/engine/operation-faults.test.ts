import { describe, expect, test } from "vitest";
import { following } from "../../src/engine/command.ts";
import { StoreContention } from "../../src/errors.ts";
import { reconcile, sweep } from "../../src/worker/tick.ts";
import { faultySqlStore } from "../support/faulty-store.ts";
import { until } from "../support/processes.ts";
import { openBank, order, paying, payment } from "./bank.ts";
import { ofType, sqlEngineOn, standing } from "./engines.ts";
import { onEverySqlStore, type Sql } from "./stores.ts";

describe("an operation whose store misbehaves", () => {
  onEverySqlStore((given) => {
    openings(given);
    finishes(given);
    spentFinishes(given);
    abandons(given);
  });
});

function openings<Tx>(given: () => Sql<Tx>): void {
  test.each([
    ["reply_lost", 1],
    ["not_applied", 2],
    ["contention", 2],
  ] as const)(
    "opens once for good when the opening's commit is answered with %s (runs of open: %i)",
    async (fault, expected) => {
      const { store, rows, put } = given();
      const faulty = faultySqlStore(store);
      const bank = openBank();
      let opens = 0;
      const { pay } = paying(sqlEngineOn(faulty.store).engine, given(), bank, {
        open: (tx, opening) => {
          opens += 1;
          return payment({ put }, bank).open(tx, opening);
        },
      });
      faulty.plan("transaction", 1, fault);
      expect(await pay(order(`open ${fault}`))).toMatchObject({ kind: "settled" });
      expect([opens, bank.asked.length]).toEqual([expected, 1]);
      expect(await rows(`open ${fault}`)).toMatchObject([{ state: "paid" }]);
    },
  );

  test("has one row and one payment when an opening is applied late, after its own repeat", async () => {
    const { store, rows } = given();
    const faulty = faultySqlStore(store);
    const bank = openBank();
    const { pay } = paying(sqlEngineOn(faulty.store).engine, given(), bank);
    faulty.plan("transaction", 1, "applied_later");
    expect(await pay(order("open late"))).toMatchObject({ kind: "settled" });
    await faulty.applyHeld();
    expect(await rows("open late")).toMatchObject([{ state: "paid" }]);
    expect(bank.asked).toHaveLength(1);
  });

  test("calls nobody and keeps no row when the store does not let it claim", async () => {
    const { store, rows } = given();
    const faulty = faultySqlStore(store);
    const bank = openBank();
    const { pay } = paying(sqlEngineOn(faulty.store, { storeTimeout: 100 }).engine, given(), bank);
    faulty.plan("transaction", "every", "not_applied");
    expect(await pay(order("no claim"))).toMatchObject({ kind: "store_unavailable" });
    expect([await rows("no claim"), bank.asked]).toEqual([[], []]);
    faulty.heal();
    await until(async () => (await store.read(order("no claim").identity)).record?.state === "released");
    expect(await pay(order("no claim"))).toMatchObject({ kind: "settled" });
  });

  test("leaves nothing behind that no worker can end when it gives a claim up and then dies", async () => {
    const { store } = given();
    const faulty = faultySqlStore(store);
    const bank = openBank();
    const settings = { storeTimeout: 60, requestTimeout: 80, lease: 100 };
    const { pay } = paying(sqlEngineOn(faulty.store, settings).engine, given(), bank);
    faulty.plan("transaction", "every", "not_applied");
    faulty.plan("replace", "every", "not_applied");
    expect(await pay(order("gives up and dies"))).toMatchObject({ kind: "store_unavailable" });
    faulty.plan("insert", "every", "not_applied");
    const { engine } = sqlEngineOn(store, { sweepGrace: 1 });
    const { pay: again } = paying(engine, given(), bank);
    await new Promise((resolve) => setTimeout(resolve, 150));
    await sweep(engine);
    await reconcile(engine);
    expect(await again(order("gives up and dies"))).toMatchObject({ kind: "settled" });
    expect(bank.paid.size).toBe(1);
  });
}

function finishes<Tx>(given: () => Sql<Tx>): void {
  test.each(["reply_lost", "not_applied", "contention"] as const)(
    "finishes once for good when the finishing commit is answered with %s, and asks the provider once",
    async (fault) => {
      const { store, rows } = given();
      const faulty = faultySqlStore(store);
      const bank = openBank();
      const { pay } = paying(sqlEngineOn(faulty.store).engine, given(), bank);
      faulty.plan("transaction", 2, fault);
      expect(await pay(order(`finish ${fault}`))).toMatchObject({ kind: "settled", answer: { status: 201 } });
      expect(await rows(`finish ${fault}`)).toMatchObject([{ state: "paid" }]);
      expect(bank.asked).toHaveLength(1);
    },
  );

  test("tries its finish again up to five times, and neither opens nor performs again for it", async () => {
    const { store, put, rows } = given();
    const bank = openBank();
    const good = payment({ put }, bank);
    const counts = { open: 0, finish: 0 };
    const { pay } = paying(sqlEngineOn(store).engine, given(), bank, {
      open: (tx, opening) => {
        counts.open += 1;
        return good.open(tx, opening);
      },
      finish: (tx, finishing) =>
        following(good.finish(tx, finishing), (answer) => {
          counts.finish += 1;
          if (counts.finish < 5) throw new StoreContention("Somebody holds the row.");
          return answer;
        }),
    });
    expect(await pay(order("five"))).toMatchObject({ kind: "settled" });
    expect([counts, bank.asked.length]).toEqual([{ open: 1, finish: 5 }, 1]);
    expect(await rows("five")).toMatchObject([{ state: "paid" }]);
  });
}

function spentFinishes<Tx>(given: () => Sql<Tx>): void {
  /** An operation whose finish fails until it is told to work, and how often it was tried. */
  function failing(bank = openBank()) {
    const { store, put } = given();
    const told = sqlEngineOn(store, { maxReconcileLooks: 3 });
    const good = payment({ put }, bank);
    let broken = true;
    let tries = 0;
    const { pay } = paying(told.engine, given(), bank, {
      finish: (tx, finishing) =>
        following(good.finish(tx, finishing), (answer) => {
          tries += 1;
          if (broken) throw new TypeError("a bug in finish");
          return answer;
        }),
    });
    const mend = () => {
      broken = false;
    };
    return { ...told, bank, pay, mend, tries: () => tries };
  }

  test("keeps what the provider said when five finishes failed, and finishes later without asking", async () => {
    const { store, rows } = given();
    const { engine, events, bank, pay, mend, tries } = failing();
    expect(await pay(order("spent"))).toMatchObject({ kind: "in_doubt" });
    expect(tries()).toBe(5);
    const kept = await standing(store, order("spent"));
    expect(kept).toMatchObject({ state: "unknown", disposition: "reconcile" });
    expect(kept.state === "unknown" && kept.evidence.result).toBeInstanceOf(Uint8Array);
    expect(ofType(events, "failure").length).toBeGreaterThan(0);
    expect(await rows("spent")).toMatchObject([{ state: "pending" }]);
    mend();
    await until(async () => (await reconcile(engine)).settled === 1);
    expect(await rows("spent")).toMatchObject([{ state: "paid" }]);
    expect([bank.asked.length, bank.looks()]).toEqual([1, 0]);
    expect(await pay(order("spent"))).toMatchObject({ kind: "replay", answer: { status: 201 } });
  });

  test("is left to a person when its finish fails for ever, and not tried again and again", async () => {
    const { store } = given();
    const { engine, pay } = failing();
    await pay(order("for ever"));
    for (let looks = 0; looks < 5; looks += 1) {
      const record = await standing(store, order("for ever"));
      if (record.state !== "unknown" || record.nextLookAt === null) break;
      const { nextLookAt } = record;
      await until(async () => (await store.read(order("for ever").identity)).now >= nextLookAt);
      await reconcile(engine);
    }
    expect(await standing(store, order("for ever"))).toMatchObject({
      state: "unknown",
      disposition: "review",
    });
  });

  test("is settled when the last of its five finishes was applied and only the reply was lost", async () => {
    const { store, rows } = given();
    const faulty = faultySqlStore(store);
    const bank = openBank();
    const { engine, events } = sqlEngineOn(faulty.store, { completionTimeout: "20s" });
    const { pay } = paying(engine, given(), bank);
    for (const call of [2, 3, 4, 5]) faulty.plan("transaction", call, "contention");
    faulty.plan("transaction", 6, "reply_lost");
    expect(await pay(order("last reply"))).toMatchObject({ kind: "settled", answer: { status: 201 } });
    expect(await standing(store, order("last reply"))).toMatchObject({ state: "completed" });
    expect(await rows("last reply")).toMatchObject([{ state: "paid" }]);
    expect(ofType(events, "lease_lost")).toEqual([]);
  });

  test("begins no further finish after its lease's end, and is settled by what stands then", async () => {
    const { store } = given();
    const faulty = faultySqlStore(store);
    const bank = openBank();
    const short = { requestTimeout: 700, lease: 900, storeTimeout: 60_000, completionTimeout: "20s" };
    const { engine } = sqlEngineOn(faulty.store, short);
    const { pay } = paying(engine, given(), bank, {
      perform: async ({ attempt }) => {
        faulty.plan("transaction", "every", { kind: "slow", ms: 600_000 });
        return await bank.pay(attempt.downstreamKey);
      },
    });
    expect(await pay(order("silent"))).toMatchObject({ kind: "settled", answer: { status: 201 } });
    expect(faulty.calls("transaction")).toBe(2);
  });

  test("leaves its record to the sweeper when nothing at all can be written", async () => {
    const { store } = given();
    const faulty = faultySqlStore(store);
    const bank = openBank();
    const { engine, events } = sqlEngineOn(faulty.store, { completionTimeout: "20s" });
    const { pay } = paying(engine, given(), bank);
    faulty.plan("replace", "every", "not_applied");
    for (const call of [2, 3, 4, 5, 6]) faulty.plan("transaction", call, "not_applied");
    expect(await pay(order("nothing"))).toEqual({ kind: "in_doubt", record: null, retryAfterMs: null });
    expect(await standing(store, order("nothing"))).toMatchObject({ state: "in_progress" });
    expect(ofType(events, "failure")).toHaveLength(2);
    expect(engine.context.running.size).toBe(0);
  });
}

function abandons<Tx>(given: () => Sql<Tx>): void {
  test.each(["reply_lost", "not_applied", "contention"] as const)(
    "is released once for good when the abandoning commit is answered with %s",
    async (fault) => {
      const { store, rows } = given();
      const faulty = faultySqlStore(store);
      const bank = openBank();
      const { pay } = paying(sqlEngineOn(faulty.store).engine, given(), bank);
      bank.setMood("refuses");
      faulty.plan("transaction", 2, fault);
      expect(await pay(order(`abandon ${fault}`))).toMatchObject({ kind: "not_performed" });
      expect(await standing(store, order(`abandon ${fault}`))).toMatchObject({ state: "released" });
      expect(await rows(`abandon ${fault}`)).toMatchObject([{ state: "abandoned" }]);
    },
  );
}
