import { describe, expect, test } from "vitest";
import { following } from "../../src/engine/command.ts";
import type { Worked } from "../../src/engine/transaction.ts";
import { LeaseLost } from "../../src/errors.ts";
import { faultySqlStore } from "../support/faulty-store.ts";
import {
  answerOf,
  lapsed,
  ofType,
  proceeded,
  requestFor,
  SHORT,
  sqlEngineOn,
  standing,
  stoppedRuntime,
} from "./engines.ts";
import { onEverySqlStore, openSqlite, rowOf, type Sql } from "./stores.ts";

const KEPT: Worked<string> = { kind: "keep", state: "completed", answer: answerOf("kept"), value: "mine" };

/** A request whose effects all go through the transaction. */
const local = (key: string) => requestFor(key, { effects: "transaction" });

describe("a transaction", () => {
  onEverySqlStore((given) => {
    oneCommit(given);
    fenced(given);
    repeated(given);
  });
});

/** Work that adds a row and counts its runs. */
function paying<Tx>({ put }: Sql<Tx>, key: string) {
  let runs = 0;
  const pay = (tx: Tx) => {
    runs += 1;
    return following(put(tx, rowOf(key)), () => KEPT);
  };
  return { pay, runs: () => runs };
}

function oneCommit<Tx>(given: () => Sql<Tx>): void {
  test("commits the effect, the record and its answer together", async () => {
    const { store, rows } = given();
    const { engine } = sqlEngineOn(store);
    const request = local("together");
    const attempt = proceeded(await engine.begin(request));
    const { pay } = paying(given(), "together");
    const transacted = await attempt.transaction(pay);
    const record = await standing(store, request);
    expect(transacted).toEqual({ kind: "committed", record, value: "mine" });
    expect(record).toMatchObject({ state: "completed", answer: answerOf("kept") });
    expect(await rows("together")).toHaveLength(1);
    expect(engine.context.running.size).toBe(0);
    expect(await engine.begin(request)).toMatchObject({ kind: "replay" });
  });

  test("leaves neither when the work throws, and the attempt can still be released", async () => {
    const { store, rows, put } = given();
    const { engine } = sqlEngineOn(store);
    const request = local("throws");
    const attempt = proceeded(await engine.begin(request));
    const before = await standing(store, request);
    const work = (tx: Tx) =>
      following(put(tx, rowOf("throws")), (): Worked<null> => {
        throw new RangeError("no funds");
      });
    await expect(attempt.transaction(work)).rejects.toThrow(RangeError);
    expect(await rows("throws")).toEqual([]);
    expect(await standing(store, request)).toEqual(before);
    expect(await attempt.release()).toMatchObject({ kind: "kept", record: { state: "released" } });
  });

  test("that is undone leaves neither, hands back its value, and the attempt can still be refused", async () => {
    const { store, rows, put } = given();
    const request = local("undone");
    const { engine } = sqlEngineOn(store);
    const attempt = proceeded(await engine.begin(request));
    const work = (tx: Tx) =>
      following(put(tx, rowOf("undone")), (): Worked<number> => ({ kind: "undo", value: 7 }));
    expect(await attempt.transaction(work)).toEqual({ kind: "undone", value: 7 });
    expect(await rows("undone")).toEqual([]);
    expect(engine.context.running.size).toBe(1);
    expect(await attempt.fail(answerOf("no", 422))).toMatchObject({ kind: "kept" });
  });

  test("is refused a second time in one attempt, the first having failed or not", async () => {
    const { store, rows } = given();
    const attempt = proceeded(await sqlEngineOn(store).engine.begin(local("twice")));
    const { pay, runs } = paying(given(), "twice");
    await attempt.transaction(pay);
    await expect(attempt.transaction(pay)).rejects.toMatchObject({ code: "transaction_repeated" });
    expect([runs(), (await rows("twice")).length]).toEqual([1, 1]);
  });

  test("is refused once the attempt has ended, and does not claim to have committed", async () => {
    const { store, rows } = given();
    const attempt = proceeded(await sqlEngineOn(store).engine.begin(local("ended")));
    await attempt.complete(answerOf("done"));
    const { pay, runs } = paying(given(), "ended");
    await expect(attempt.transaction(pay)).rejects.toMatchObject({ code: "attempt_ended" });
    expect([runs(), await rows("ended")]).toEqual([0, []]);
  });
}

function fenced<Tx>(given: () => Sql<Tx>): void {
  /** An attempt that stood still while another took its key over. */
  async function superseded(key: string) {
    const { store } = given();
    const request = local(key);
    const dead = sqlEngineOn(store, { ...SHORT, runtime: stoppedRuntime() });
    const attempt = proceeded(await dead.engine.begin(request));
    await lapsed(store, request);
    const heir = proceeded(await sqlEngineOn(store).engine.begin(request));
    return { ...dead, attempt, heir, request };
  }

  test.each(["runs", "has committed"])(
    "of a superseded attempt has no effect while the heir %s",
    async (heirs) => {
      const { store, rows } = given();
      const key = `superseded, heir ${heirs}`;
      const { attempt, heir, events, engine, request } = await superseded(key);
      if (heirs === "has committed") await heir.transaction(paying(given(), key).pay);
      const [before, effects] = [await standing(store, request), await rows(key)];
      const { pay, runs } = paying(given(), key);
      expect(await attempt.transaction(pay)).toEqual({ kind: "lost", record: before });
      expect(runs()).toBe(0);
      expect(await rows(key)).toEqual(effects);
      expect(await standing(store, request)).toEqual(before);
      expect(attempt.signal.reason).toBeInstanceOf(LeaseLost);
      expect(ofType(events, "lease_lost")).toHaveLength(1);
      expect(engine.context.running.size).toBe(0);
    },
  );

  test("of an attempt that knows of its loss is not even begun", async () => {
    const { rows } = given();
    const { attempt } = await superseded("knows");
    await attempt.release();
    expect(attempt.signal.reason).toBeInstanceOf(LeaseLost);
    const { pay, runs } = paying(given(), "knows");
    await expect(attempt.transaction(pay)).rejects.toBeInstanceOf(Error);
    expect(runs()).toBe(0);
    expect(await rows("knows")).toEqual([]);
  });
}

function repeated<Tx>(given: () => Sql<Tx>): void {
  const becomes = [
    ["reply_lost", 1, "had committed: the work does not run again"],
    ["not_applied", 2, "had not committed: the work runs again"],
    ["contention", 2, "gave way to another: the whole unit runs again"],
  ] as const;
  test.each(becomes)("whose commit is answered with %s (runs: %i) %s", async (fault, expected) => {
    const { store, rows } = given();
    const faulty = faultySqlStore(store);
    const { engine, events } = sqlEngineOn(faulty.store);
    const key = `commit ${fault}`;
    const attempt = proceeded(await engine.begin(local(key)));
    const { number } = attempt;
    const { pay, runs } = paying(given(), key);
    faulty.plan("transaction", 1, fault);
    const transacted = await attempt.transaction(pay);
    const record = await standing(store, local(key));
    expect(transacted).toMatchObject({ kind: "committed", record });
    expect(record).toMatchObject({ state: "completed", attempt: number, answer: answerOf("kept") });
    expect(runs()).toBe(expected);
    expect(await rows(key)).toHaveLength(1);
    expect(ofType(events, "lease_lost")).toEqual([]);
    expect(engine.context.running.size).toBe(0);
  });

  test("that is applied late, after its own repeat, has one effect", async () => {
    const { store, rows } = given();
    const faulty = faultySqlStore(store);
    const attempt = proceeded(await sqlEngineOn(faulty.store).engine.begin(local("late")));
    faulty.plan("transaction", 1, "applied_later");
    expect(await attempt.transaction(paying(given(), "late").pay)).toMatchObject({ kind: "committed" });
    await faulty.applyHeld();
    expect(await rows("late")).toHaveLength(1);
  });

  test("that gives way again and again is given up, with no effect and no claim to one", async () => {
    const { store, rows } = given();
    const faulty = faultySqlStore(store);
    const attempt = proceeded(await sqlEngineOn(faulty.store).engine.begin(local("gives up")));
    const { pay, runs } = paying(given(), "gives up");
    faulty.plan("transaction", "every", "contention");
    await expect(attempt.transaction(pay)).rejects.toMatchObject({ code: "store_contention" });
    expect(runs()).toBe(5);
    expect(await rows("gives up")).toEqual([]);
    expect(await attempt.release()).toMatchObject({ kind: "kept" });
  });

  test("is not disturbed by an ending that is asked for while it is open", async () => {
    const { store, rows } = given();
    const request = local("ending meanwhile");
    const attempt = proceeded(await sqlEngineOn(store).engine.begin(request));
    const [transacted, ended] = await Promise.all([
      attempt.transaction(paying(given(), "ending meanwhile").pay),
      attempt.release(),
    ]);
    expect(transacted.kind).toBe("committed");
    expect(ended).toMatchObject({ kind: "lost", record: { state: "completed" } });
    expect(await rows("ending meanwhile")).toHaveLength(1);
  });
}

describe("a transaction on SQLite", () => {
  test("refuses a promise, whose work is rolled back and whose key is free again", async () => {
    const sql = await openSqlite();
    try {
      const { engine } = sqlEngineOn(sql.store);
      const call = { operation: "o", principal: "p", key: "promise" };
      const work = engine.runInTransaction(call, async (tx) => {
        await sql.put(tx, rowOf("promise"));
        await new Promise((resolve) => setImmediate(resolve));
        await sql.put(tx, rowOf("promise"));
        return "never";
      });
      await expect(work).rejects.toMatchObject({ code: "configuration" });
      expect(await sql.rows("promise")).toEqual([]);
      const put = (tx: Parameters<typeof sql.put>[0]) =>
        following(sql.put(tx, rowOf("promise")), () => "done");
      expect(await engine.runInTransaction(call, put)).toBe("done");
      expect(await sql.rows("promise")).toHaveLength(1);
    } finally {
      await sql.close();
    }
  });
});
