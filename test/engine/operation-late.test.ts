import { describe, expect, test } from "vitest";
import { LeaseLost, NotPerformed } from "../../src/errors.ts";
import { reconcile, sweep } from "../../src/worker/tick.ts";
import { until } from "../support/processes.ts";
import { type Bank, openBank, order, paying } from "./bank.ts";
import { lapsed, ofType, SHORT, sqlEngineOn, standing, stoppedRuntime } from "./engines.ts";
import { onEverySqlStore, type Sql } from "./stores.ts";

describe("an operation that takes too long", () => {
  onEverySqlStore((given) => {
    late(given);
    judged(given);
    drained(given);
  });
});

/** An operation that was given up while the provider stalls; `goOn` brings the provider's answer. */
async function givenUp<Tx>({ store, ...sql }: Sql<Tx>, key: string, bank: Bank = openBank()) {
  const told = sqlEngineOn(store);
  const { pay } = paying(told.engine, sql, bank);
  bank.setMood("stalls");
  const executed = await pay({ ...order(key), maxRunMs: 60 });
  return { ...told, bank, pay, executed };
}

function late<Tx>(given: () => Sql<Tx>): void {
  test("is in doubt at its time limit, and ends by the provider's late answer", async () => {
    const { store, rows } = given();
    const { bank, pay, executed, events } = await givenUp(given(), "late");
    expect(executed).toMatchObject({ kind: "in_doubt" });
    const record = await standing(store, order("late"));
    expect(record.state).toBe("unknown");
    bank.goOn();
    await until(async () => (await standing(store, order("late"))).state === "completed");
    expect(await rows("late")).toMatchObject([{ state: "paid" }]);
    expect(await pay(order("late"))).toMatchObject({ kind: "replay", answer: { status: 201 } });
    await until(() => ofType(events, "transition").length > 0);
    expect(ofType(events, "transition")).toMatchObject([
      { by: "attempt", from: "unknown", to: "completed", attempt: record.attempt },
    ]);
  });

  test("changes nothing by its late answer once a worker has taken it over", async () => {
    const { store, rows } = given();
    const { engine, bank, executed } = await givenUp(given(), "late and taken over");
    expect(executed.kind).toBe("in_doubt");
    expect(await reconcile(engine)).toMatchObject({ released: 1 });
    const before = await standing(store, order("late and taken over"));
    expect(before.steps.get("perform")).toEqual({ state: "clear", generation: 1 });
    bank.goOn();
    await until(() => bank.asked.length === 1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await standing(store, order("late and taken over"))).toEqual(before);
    expect(await rows("late and taken over")).toMatchObject([{ state: "abandoned" }]);
    expect(bank.paid.size).toBe(0);
  });

  test("and whose work never returns leaves no attempt running", async () => {
    const { engine } = await givenUp(given(), "never");
    expect(engine.context.running.size).toBe(0);
  });
}

function judged<Tx>(given: () => Sql<Tx>): void {
  /** An operation of a process that stood still while it performed; its lease has lapsed. */
  async function stoodStill(key: string) {
    const { store, rows, other } = given();
    const bank = openBank();
    const told = sqlEngineOn(store, { ...SHORT, runtime: stoppedRuntime() });
    const { pay } = paying(told.engine, given(), bank);
    bank.setMood("stalls");
    const executing = pay(order(key));
    await until(() => bank.asked.length === 1);
    await lapsed(store, order(key));
    const worker = sqlEngineOn(other, { sweepGrace: 1 });
    paying(worker.engine, given(), bank);
    await until(async () => (await sweep(worker.engine)).doubted === 1);
    return { ...told, executing, bank, worker, rows };
  }

  test("and was judged dead meanwhile ends by its own answer when nobody took it over", async () => {
    const { executing, bank, rows, events } = await stoodStill("judged");
    bank.goOn();
    expect(await executing).toMatchObject({ kind: "settled", answer: { status: 201 } });
    expect(await rows("judged")).toMatchObject([{ state: "paid" }]);
    expect(ofType(events, "lease_lost")).toEqual([]);
  });

  test("and was judged dead meanwhile is released when the provider says that it did nothing", async () => {
    const { store } = given();
    const bank = openBank();
    let refuse = () => {};
    const told = sqlEngineOn(store, { ...SHORT, runtime: stoppedRuntime() });
    const { pay } = paying(told.engine, given(), bank, {
      perform: () =>
        new Promise((_, reject) => {
          refuse = () => reject(new NotPerformed("The bank did nothing."));
        }),
    });
    const executing = pay(order("judged, nothing done"));
    await until(async () => (await store.read(order("judged, nothing done").identity)).record !== null);
    await lapsed(store, order("judged, nothing done"));
    const { engine } = sqlEngineOn(store, { sweepGrace: 1 });
    await until(async () => (await sweep(engine)).doubted === 1);
    refuse();
    expect(await executing).toMatchObject({ kind: "not_performed" });
    expect(await standing(store, order("judged, nothing done"))).toMatchObject({ state: "released" });
  });

  test("and whose key a worker took over is told so, and touches neither record nor row", async () => {
    const { executing, bank, worker, rows, events } = await stoodStill("taken over");
    expect(await reconcile(worker.engine)).toMatchObject({ released: 1 });
    const before = await standing(given().store, order("taken over"));
    bank.goOn();
    expect(await executing).toMatchObject({ kind: "lost", record: { state: "released" } });
    expect(await standing(given().store, order("taken over"))).toEqual(before);
    expect(await rows("taken over")).toMatchObject([{ state: "abandoned" }]);
    expect(ofType(events, "lease_lost")).toHaveLength(1);
    expect(bank.paid.size).toBe(0);
  });

  test("and whose answer comes after a worker found its payment is told so; there is one payment and one row", async () => {
    const { store, other, rows } = given();
    const bank = openBank();
    let answer = () => {};
    const gate = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const { engine, events } = sqlEngineOn(store, { ...SHORT, runtime: stoppedRuntime() });
    const { pay } = paying(engine, given(), bank, {
      perform: async ({ attempt }) => {
        const paid = await bank.pay(attempt.downstreamKey);
        await gate;
        return paid;
      },
    });
    const executing = pay(order("found"));
    await until(() => bank.paid.size === 1);
    await lapsed(store, order("found"));
    const worker = sqlEngineOn(other, { sweepGrace: 1 }).engine;
    paying(worker, given(), bank);
    await until(async () => (await sweep(worker)).doubted === 1);
    expect(await reconcile(worker)).toMatchObject({ settled: 1 });
    answer();
    expect(await executing).toMatchObject({
      kind: "lost",
      record: { state: "completed", answer: { status: 201 } },
    });
    expect(ofType(events, "lease_lost")).toHaveLength(1);
    expect(await rows("found")).toMatchObject([{ state: "paid" }]);
    expect(bank.paid.size).toBe(1);
  });
}

function drained<Tx>(given: () => Sql<Tx>): void {
  test("at the end of a drain is in doubt for its caller, whose late answer still counts", async () => {
    const { store, rows } = given();
    const { engine } = sqlEngineOn(store);
    const bank = openBank();
    const { pay } = paying(engine, given(), bank);
    bank.setMood("stalls");
    const executing = pay(order("drained"));
    await until(() => bank.asked.length === 1);
    await engine.close({ drain: 30 });
    expect(await standing(store, order("drained"))).toMatchObject({
      state: "unknown",
      disposition: "reconcile",
    });
    expect(await executing).toMatchObject({ kind: "in_doubt" });
    bank.goOn();
    await until(async () => (await standing(store, order("drained"))).state === "completed");
    expect(await rows("drained")).toMatchObject([{ state: "paid" }]);
  });

  test("at the end of a drain learns of it by its signal", async () => {
    const { store } = given();
    const { engine } = sqlEngineOn(store);
    let signal: AbortSignal | undefined;
    const { pay } = paying(engine, given(), openBank(), {
      perform: ({ attempt }) => {
        ({ signal } = attempt);
        return new Promise(() => {});
      },
    });
    const executing = pay(order("drained, endless"));
    await until(() => signal !== undefined);
    await engine.close({ drain: 30 });
    expect(signal?.aborted).toBe(true);
    expect(signal?.reason).not.toBeInstanceOf(LeaseLost);
    expect(await executing).toMatchObject({ kind: "in_doubt" });
  });
}
