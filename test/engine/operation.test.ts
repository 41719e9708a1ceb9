import { describe, expect, test } from "vitest";
import { following } from "../../src/engine/command.ts";
import { operation } from "../../src/engine/operation.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { faultySqlStore } from "../support/faulty-store.ts";
import { until } from "../support/processes.ts";
import { openBank, order, paying, payment } from "./bank.ts";
import { engineOn, ofType, sqlEngineOn, standing, textOf } from "./engines.ts";
import { onEverySqlStore, openSqlite, type Sql } from "./stores.ts";

describe("an operation", () => {
  onEverySqlStore((given) => {
    ends(given);
    nothingDone(given);
    doubts(given);
    crowds(given);
  });
});

function ends<Tx>(given: () => Sql<Tx>): void {
  test("claims, opens, performs and finishes: one payment, one row, one kept answer", async () => {
    const { store, rows } = given();
    const { engine, events } = sqlEngineOn(store);
    const bank = openBank();
    const { pay } = paying(engine, given(), bank);
    const settled = await pay(order("happy"));
    const record = await standing(store, order("happy"));
    expect(settled).toMatchObject({ kind: "settled", record, answer: { status: 201 } });
    expect(record).toMatchObject({ state: "completed", effects: "declared" });
    expect(record.steps.get("perform")).toMatchObject({ state: "finished", generation: 0 });
    expect(await rows("happy")).toMatchObject([{ state: "paid" }]);
    const again = await pay(order("happy"));
    expect(again).toMatchObject({ kind: "replay", answer: { status: 201 } });
    if (settled.kind === "settled" && again.kind === "replay")
      expect(textOf(again.answer)).toBe(textOf(settled.answer));
    expect(bank.asked).toHaveLength(1);
    expect(ofType(events, "request").map(({ outcome }) => outcome)).toEqual(["claimed", "replayed"]);
    expect(engine.context.running.size).toBe(0);
  });

  test("that the provider declines is a kept refusal, and its step did nothing", async () => {
    const { store, rows } = given();
    const bank = openBank();
    const { pay } = paying(sqlEngineOn(store).engine, given(), bank);
    bank.setMood("declines");
    expect(await pay(order("declined"))).toMatchObject({ kind: "settled", answer: { status: 402 } });
    const record = await standing(store, order("declined"));
    expect(record.state).toBe("failed_permanent");
    expect(record.steps.get("perform")?.state).toBe("refused");
    bank.setMood("well");
    expect(await pay(order("declined"))).toMatchObject({ kind: "replay", answer: { status: 402 } });
    expect(await rows("declined")).toMatchObject([{ state: "declined" }]);
    expect(bank.asked).toHaveLength(1);
  });

  test("whose open throws has claimed nothing and called nobody", async () => {
    const { store, rows, put } = given();
    const { engine } = sqlEngineOn(store);
    const bank = openBank();
    let bad = true;
    const { definition, pay } = paying(engine, given(), bank, {
      open: (tx, opening) => {
        const opened = payment({ put }, bank).open(tx, opening);
        return following(opened, (reference) => {
          if (bad) throw new RangeError("no such account");
          return reference;
        });
      },
    });
    await expect(pay(order("open throws"))).rejects.toThrow(RangeError);
    expect(definition.name).toBe("pay");
    expect((await store.read(order("open throws").identity)).record).toBeNull();
    expect([await rows("open throws"), bank.asked]).toEqual([[], []]);
    bad = false;
    expect(await pay(order("open throws"))).toMatchObject({ kind: "settled" });
  });
}

function nothingDone<Tx>(given: () => Sql<Tx>): void {
  test("that did nothing is abandoned and released; the next attempt has the same row and the same downstream key", async () => {
    const { store, rows } = given();
    const bank = openBank();
    const { pay } = paying(sqlEngineOn(store).engine, given(), bank);
    bank.setMood("refuses");
    expect(await pay(order("refused"))).toMatchObject({
      kind: "not_performed",
      error: { code: "not_performed" },
    });
    const released = await standing(store, order("refused"));
    expect(released.state).toBe("released");
    const [row] = await rows("refused");
    expect(row?.state).toBe("abandoned");
    bank.setMood("well");
    expect(await pay(order("refused"))).toMatchObject({ kind: "settled" });
    expect(await rows("refused")).toEqual([{ ...row, state: "paid" }]);
    expect(new Set(bank.asked).size).toBe(1);
    expect((await standing(store, order("refused"))).attempt).toBeGreaterThan(released.attempt);
  });

  test("that did nothing may come again with another body", async () => {
    const { store, rows } = given();
    const bank = openBank();
    const { pay } = paying(sqlEngineOn(store).engine, given(), bank);
    bank.setMood("refuses");
    await pay(order("corrected"));
    bank.setMood("well");
    expect(await pay(order("corrected", { body: "another" }))).toMatchObject({ kind: "settled" });
    expect(await pay(order("corrected"))).toMatchObject({ kind: "mismatch" });
    expect(await rows("corrected")).toMatchObject([{ state: "paid" }]);
  });
}

function doubts<Tx>(given: () => Sql<Tx>): void {
  test("that throws leaves its outcome unknown, to be looked for at once, and is not performed again", async () => {
    const { store, rows } = given();
    const { engine } = sqlEngineOn(store);
    const bank = openBank();
    const { pay } = paying(engine, given(), bank);
    bank.setMood("pays silently");
    expect(await pay(order("silent"))).toMatchObject({ kind: "in_doubt", retryAfterMs: 0 });
    expect(await standing(store, order("silent"))).toMatchObject({
      state: "unknown",
      disposition: "reconcile",
    });
    expect(await store.due({ kind: "looks", limit: 5 })).toMatchObject({ records: [{ state: "unknown" }] });
    expect(await pay(order("silent"))).toMatchObject({ kind: "outcome_unknown" });
    expect(await pay(order("silent", { body: "another" }))).toMatchObject({ kind: "mismatch" });
    expect([bank.asked.length, (await rows("silent"))[0]?.state]).toEqual([1, "pending"]);
    expect(engine.context.running.size).toBe(0);
  });

  test("what a provider's error says stays off the record", async () => {
    const { store } = given();
    const bank = openBank();
    const { pay } = paying(sqlEngineOn(store).engine, given(), bank, {
      perform: () => Promise.reject(new Error("password=secret")),
    });
    await pay(order("secret"));
    expect(JSON.stringify(await standing(store, order("secret")))).not.toContain("secret=");
    expect(await standing(store, order("secret"))).not.toMatchObject({
      evidence: { reason: expect.stringContaining("password") },
    });
  });
}

function crowds<Tx>(given: () => Sql<Tx>): void {
  test("answers its duplicates by a look: they open no transaction and take no lock", async () => {
    const { store } = given();
    const faulty = faultySqlStore(store);
    const bank = openBank();
    const { pay } = paying(sqlEngineOn(faulty.store).engine, given(), bank);
    bank.setMood("stalls");
    const first = pay(order("looks"));
    await until(() => bank.asked.length === 1);
    expect(await pay(order("looks"))).toMatchObject({ kind: "in_progress" });
    expect(await pay(order("looks", { body: "another" }))).toMatchObject({ kind: "mismatch" });
    expect(faulty.calls("transaction")).toBe(1);
    bank.goOn();
    await first;
    expect(await pay(order("looks"))).toMatchObject({ kind: "replay" });
    expect([faulty.calls("transaction"), faulty.calls("insert"), faulty.calls("replace")]).toEqual([2, 0, 0]);
  });

  test("asked for 50 times at once through two engines performs once, and nobody waits for the provider", async () => {
    const { store, other, rows } = given();
    const bank = openBank();
    const pays = [store, other].map((each) => paying(sqlEngineOn(each).engine, given(), bank).pay);
    bank.setMood("stalls");
    const calls = Array.from({ length: 50 }, (_, n) => pays[n % 2]?.(order("crowd")));
    let answered = 0;
    for (const call of calls) void call?.then(() => answered++);
    await until(() => answered === 49);
    bank.goOn();
    const kinds = (await Promise.all(calls)).map((executed) => executed?.kind).sort();
    expect(kinds).toEqual([...Array(49).fill("in_progress"), "settled"]);
    expect([bank.asked.length, (await rows("crowd")).length]).toEqual([1, 1]);
  });
}

describe("an operation that cannot be used", () => {
  test("is refused when it is made, with the field that is wrong", async () => {
    const sql = await openSqlite();
    try {
      const bank = openBank();
      const good = payment(sql, bank);
      const make = (changed: object) => operation(sqlEngineOn(sql.store).engine, { ...good, ...changed });
      expect(() => make({ look: undefined })).toThrow(/provider "keyed"/);
      expect(() => make({ cancel: undefined })).toThrow(/provider "keyed"/);
      expect(() => make({ provider: "query", look: undefined })).toThrow(/provider "query"/);
      expect(() => make({ provider: "repeatable" })).toThrow(/keyTtl is required/);
      expect(() => make({ provider: "repeatable", keyTtl: "soon" })).toThrow(/keyTtl must be/);
      const { engine } = sqlEngineOn(sql.store);
      operation(engine, good);
      expect(() => operation(engine, good)).toThrow(/name is taken/);
      expect(() => operation(engineOn(memoryStore()).engine, payment({ put: () => {} }, bank))).toThrow(
        /no transactions/,
      );
    } finally {
      await sql.close();
    }
  });
});
