import { describe, expect, test } from "vitest";
import { createAborting } from "../../src/engine/aborting.ts";
import { settled } from "../../src/engine/settled.ts";
import { StoreUnavailable } from "../../src/errors.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import type { Replaced } from "../../src/stores/store.ts";
import { faultySqlStore, faultyStore } from "../support/faulty-store.ts";
import { until } from "../support/processes.ts";
import { openBank, order, paying } from "./bank.ts";
import { answerOf, engineOn, ofType, proceeded, requestFor, sqlEngineOn, standing } from "./engines.ts";
import { onEverySqlStore, type Sql } from "./stores.ts";

describe("an operation whose claim was given up before it called anybody", () => {
  onEverySqlStore(opened);
});

function opened<Tx>(given: () => Sql<Tx>): void {
  test("abandons its row together with its record once the store answers again", async () => {
    const { store, rows } = given();
    const faulty = faultySqlStore(store);
    const bank = openBank();
    const { engine } = sqlEngineOn(faulty.store, { storeTimeout: 1_000 });
    const { pay } = paying(engine, given(), bank);
    faulty.plan("transaction", 1, "reply_lost");
    faulty.plan("transaction", "every", "not_applied");
    expect(await pay(order("given up"))).toMatchObject({ kind: "store_unavailable" });
    faulty.heal();
    const { identity } = order("given up");
    await until(async () => (await store.read(identity)).record?.state === "released");
    expect(await rows("given up")).toMatchObject([{ state: "abandoned" }]);
    expect(bank.asked).toEqual([]);
    expect(await pay(order("given up"))).toMatchObject({ kind: "settled" });
    expect(await rows("given up")).toMatchObject([{ state: "paid" }]);
  });

  test("abandons its row when the engine closed in between", async () => {
    const { store, rows } = given();
    const faulty = faultySqlStore(store);
    const { engine } = sqlEngineOn(faulty.store);
    const { pay } = paying(engine, given(), openBank());
    faulty.plan("transaction", 1, { kind: "slow", ms: 60 });
    const paid = pay(order("closed"));
    await until(() => faulty.calls("transaction") === 1);
    await engine.close({ drain: 1 });
    expect(await paid).toMatchObject({ kind: "draining" });
    expect(await standing(store, order("closed"))).toMatchObject({ state: "released" });
    expect(await rows("closed")).toMatchObject([{ state: "abandoned" }]);
  });

  test("answers 503 and not that somebody runs, when what is in its way may be its own lost claim", async () => {
    const { store } = given();
    const faulty = faultySqlStore(store);
    const within: typeof store.within = (tx) => ({ ...store.within(tx), tryClaim: () => false });
    const blocked = { ...faulty.store, within };
    const { pay } = paying(sqlEngineOn(blocked).engine, given(), openBank());
    faulty.plan("transaction", 1, "not_applied");
    expect(await pay(order("own claim"))).toMatchObject({ kind: "store_unavailable" });
  });

  test("keeps no header that belongs to one exchange, nor one that speaks in our name", async () => {
    const { engine } = sqlEngineOn(given().store);
    const headers = { location: "/1", "set-cookie": "a=b", date: "then", "idempotent-replayed": "true" };
    const finish = () => ({ status: 201, headers, json: {} });
    const { pay } = paying(engine, given(), openBank(), { finish });
    const executed = await pay(order("headers"));
    if (executed.kind !== "settled") throw new Error(executed.kind);
    expect(executed.answer.headers.map(([name]) => name)).toEqual(["content-type", "location"]);
  });

  test("tells the listeners why a provider failed", async () => {
    const { engine, events } = sqlEngineOn(given().store);
    const failure = new Error("the bank said 500");
    const { pay } = paying(engine, given(), openBank(), { perform: () => Promise.reject(failure) });
    expect(await pay(order("failed"))).toMatchObject({ kind: "in_doubt" });
    expect(ofType(events, "failure")).toMatchObject([{ what: "performing pay", error: failure }]);
  });
}

test("a takeover whose reply was lost waits for its first copy instead of saying that somebody runs", async () => {
  const store = memoryStore();
  const request = requestFor("taken over");
  await proceeded(await engineOn(store).engine.begin(request)).release();
  const patiences: string[] = [];
  const replace: typeof store.replace = async (seen, write, patience): Promise<Replaced> => {
    patiences.push(patience);
    if (patiences.length === 1) throw new StoreUnavailable("The reply was lost.");
    return await store.replace(seen, write, patience);
  };
  const { engine } = engineOn({ ...store, replace });
  expect((await engine.begin(request)).kind).toBe("proceed");
  expect(patiences).toEqual(["never", "wait"]);
});

test("a claim that was given up is not taken back where its work runs all the same", async () => {
  const store = memoryStore();
  const faulty = faultyStore(store);
  const { engine } = engineOn(faulty.store, { storeTimeout: 50 });
  const request = requestFor("runs anyway", { runsAnyway: true });
  faulty.plan("insert", "every", "reply_lost");
  expect(await engine.begin(request)).toMatchObject({ kind: "store_unavailable" });
  faulty.heal();
  const calls = faulty.calls("insert");
  await engine.close({ drain: 20 });
  expect(faulty.calls("insert")).toBe(calls);
  expect(await standing(store, request)).toMatchObject({ state: "in_progress" });
});

test("work never begins under a signal that has aborted already", async () => {
  let began = false;
  const work = () => {
    began = true;
  };
  const aborting = createAborting();
  const reason = new Error("too late");
  aborting.abort(reason);
  expect(await settled(work, aborting)).toEqual({ kind: "aborted", reason, late: null });
  expect(began).toBe(false);
});

test("an engine that closes still answers keys whose answer is known", async () => {
  const { engine } = engineOn(memoryStore());
  const request = requestFor("known");
  await proceeded(await engine.begin(request)).complete(answerOf("done"));
  await engine.close({ drain: 1 });
  expect(await engine.begin(request)).toMatchObject({ kind: "replay", answer: answerOf("done") });
  expect(await engine.begin(requestFor("new"))).toEqual({ kind: "draining" });
});

test("a listener that throws stops neither the request nor the others, which are told", async () => {
  const failure = new Error("a metric that cannot be counted");
  const { engine, events } = engineOn(memoryStore(), {});
  engine.subscribe((event) => {
    if (event.type === "request") throw failure;
  });
  expect((await engine.begin(requestFor("listened to"))).kind).toBe("proceed");
  expect(ofType(events, "failure")).toMatchObject([{ what: "telling a listener", error: failure }]);
});
