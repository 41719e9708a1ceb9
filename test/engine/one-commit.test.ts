import { Client } from "pg";
import { describe, expect, test } from "vitest";
import { following } from "../../src/engine/command.ts";
import type { Worked } from "../../src/engine/transaction.ts";
import { NotPerformed, PermanentFailure } from "../../src/errors.ts";
import type { Awaitable } from "../../src/stores/store.ts";
import { sqliteDriver } from "../support/databases.ts";
import { faultySqlStore } from "../support/faulty-store.ts";
import { answerOf, ofType, proceeded, sqlEngineOn } from "./engines.ts";
import { called, identityOf, local, outcomesOf, paying, recordOf, working } from "./one-commit-calls.ts";
import { onEverySqlStore, rowOf, type Sql } from "./stores.ts";

describe("a claim in its effect's own commit", () => {
  onEverySqlStore((given) => {
    commits(given);
    replays(given);
    leavesNothing(given);
    refusesForGood(given);
    attempts(given);
    withoutTransaction(given);
  });
});

function commits<Tx>(given: () => Sql<Tx>): void {
  test("commits effect, record and value together, in one trip to the store, under the number that the work was told", async () => {
    const { store, rows } = given();
    const faulty = faultySqlStore(store);
    const { engine, events } = sqlEngineOn(faulty.store);
    const { put } = given();
    const told: number[] = [];
    const value = await engine.runInTransaction(called("together"), (tx, { number }) => {
      told.push(number);
      return following(put(tx, rowOf("together")), () => "made");
    });
    expect(value).toBe("made");
    const record = await recordOf(store, identityOf("together"));
    expect(record).toMatchObject({ state: "completed", revision: 1, effects: "transaction" });
    expect(told).toEqual([record?.attempt]);
    expect(await rows("together")).toHaveLength(1);
    expect(["insert", "replace", "transaction"].map((verb) => [verb, callsOf(faulty, verb)])).toEqual([
      ["insert", 0],
      ["replace", 0],
      ["transaction", 1],
    ]);
    expect(outcomesOf(events)).toEqual(["claimed"]);
    expect(engine.context.running.size).toBe(0);
  });

  test("shows nothing of itself while it runs: no record and no effect", async () => {
    const { store, put, url } = given();
    const { engine } = sqlEngineOn(store);
    const seen = engine.runInTransaction(called("hidden"), (tx) =>
      following(put(tx, rowOf("hidden")), () => visibleIn(url)),
    );
    expect(await seen).toBe(0);
    expect(await visibleIn(url)).toBe(2);
  });
}

function callsOf({ calls }: ReturnType<typeof faultySqlStore>, verb: string): number {
  if (verb === "insert" || verb === "replace" || verb === "transaction") return calls(verb);
  throw new Error(`Nobody counts ${verb}.`);
}

const COUNT = "SELECT (SELECT count(*) FROM oncekey_records) + (SELECT count(*) FROM effects) AS visible";

/** How many records and effects anybody else sees just now; on SQLite at once, since its transactions do not wait. */
function visibleIn(url: string): Awaitable<number> {
  if (!url.startsWith("sqlite:")) return visibleInPostgres(url);
  const connection = new (sqliteDriver())(url.slice("sqlite:".length));
  try {
    return Number(connection.prepare(COUNT).all()[0]?.["visible"]);
  } finally {
    connection.close();
  }
}

async function visibleInPostgres(url: string): Promise<number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return Number((await client.query(COUNT)).rows[0]?.visible);
  } finally {
    await client.end();
  }
}

function replays<Tx>(given: () => Sql<Tx>): void {
  test("hands back an equal value of every kind at every replay, with one effect", async () => {
    const { store, other, rows } = given();
    const [first, second] = [sqlEngineOn(store), sqlEngineOn(other)];
    const values = [undefined, null, -0, { at: new Date(1) }, new Map([[1, 2n]])];
    for (const [index, value] of values.entries()) {
      const key = `value ${index}`;
      const { work, runs } = working(given(), key);
      const run = work(() => value);
      expect(await first.engine.runInTransaction(called(key), run)).toEqual(value);
      expect(await second.engine.runInTransaction(called(key), run)).toEqual(value);
      // The two forms share their records.
      const twice = called(key, { commits: "two" });
      expect(await second.engine.runInTransaction(twice, run)).toEqual(value);
      expect([runs(), (await rows(key)).length]).toEqual([1, 1]);
    }
    expect(new Set(outcomesOf(first.events))).toEqual(new Set(["claimed"]));
    expect(new Set(outcomesOf(second.events))).toEqual(new Set(["replayed"]));
  });

  test("hands back a value that the default form committed, and runs nothing", async () => {
    const { store } = given();
    const { engine } = sqlEngineOn(store);
    const { work, runs } = working(given(), "default");
    const first = await engine.runInTransaction(
      called("default", { commits: "two" }),
      work(() => "first"),
    );
    expect(
      await engine.runInTransaction(
        called("default"),
        work(() => "second"),
      ),
    ).toBe(first);
    expect(runs()).toBe(1);
  });

  test("refuses another input under the same key afterwards, and runs nothing", async () => {
    const { store } = given();
    const { engine, events } = sqlEngineOn(store);
    const { work, runs } = working(given(), "other");
    await engine.runInTransaction(
      called("other", { input: 1 }),
      work(() => 1),
    );
    const other = engine.runInTransaction(
      called("other", { input: 2 }),
      work(() => 2),
    );
    await expect(other).rejects.toMatchObject({ code: "key_reused" });
    expect(runs()).toBe(1);
    expect(outcomesOf(events)).toEqual(["claimed", "fingerprint_mismatch"]);
  });
}

function leavesNothing<Tx>(given: () => Sql<Tx>): void {
  test.each([
    ["says that nothing was done", new NotPerformed("no stock")],
    ["throws what says nothing", new RangeError("a bug")],
  ])("whose work %s leaves no effect and no record, and the same key runs again", async (what, error) => {
    const { store, rows } = given();
    const { engine, events } = sqlEngineOn(store);
    const { work } = working(given(), what);
    const failing = work((): never => {
      throw error;
    });
    await expect(engine.runInTransaction(called(what), failing)).rejects.toBe(error);
    expect([await rows(what), await recordOf(store, identityOf(what))]).toEqual([[], null]);
    expect(engine.context.running.size).toBe(0);
    const second = work(() => "second");
    expect(await engine.runInTransaction(called(what), second)).toBe("second");
    expect(await rows(what)).toHaveLength(1);
    expect(outcomesOf(events)).toEqual(["claimed", "claimed"]);
  });

  test("whose value cannot be kept leaves no effect and no record", async () => {
    const { store, rows } = given();
    const { engine } = sqlEngineOn(store);
    const { work } = working(given(), "odd");
    const odd = engine.runInTransaction(
      called("odd"),
      work(() => Symbol("odd")),
    );
    await expect(odd).rejects.toMatchObject({ code: "value_unsupported" });
    expect([await rows("odd"), await recordOf(store, identityOf("odd"))]).toEqual([[], null]);
  });
}

function refusesForGood<Tx>(given: () => Sql<Tx>): void {
  test("that is refused for good keeps the refusal and no effect, and is refused alike for ever", async () => {
    const { store, rows } = given();
    const { engine, events } = sqlEngineOn(store);
    const { work, runs } = working(given(), "refused");
    const refuse = work((): never => {
      throw new PermanentFailure({ reason: "insufficient funds" });
    });
    for (const again of [1, 2]) {
      const run = engine.runInTransaction(called("refused"), refuse);
      const refusal = { code: "permanent_failure", answer: { reason: "insufficient funds" } };
      await expect(run).rejects.toMatchObject(refusal);
      expect([again, runs(), await rows("refused")]).toEqual([again, 1, []]);
    }
    expect(await recordOf(store, identityOf("refused"))).toMatchObject({ state: "failed_permanent" });
    expect(outcomesOf(events)).toEqual(["claimed", "replayed"]);
    expect(engine.context.running.size).toBe(0);
  });
}

function attempts<Tx>(given: () => Sql<Tx>): void {
  test("is made once in an attempt: a second transaction is refused, the first having failed or not", async () => {
    const { store, rows } = given();
    const { engine } = sqlEngineOn(store);
    for (const first of ["commits", "fails"]) {
      const attempt = proceeded(await engine.begin(local(first)));
      const { pay, runs } = paying(given(), first);
      if (first === "commits") await attempt.transaction(pay);
      else await expect(attempt.transaction(failing)).rejects.toThrow(RangeError);
      await expect(attempt.transaction(pay)).rejects.toMatchObject({ code: "transaction_repeated" });
      const once = first === "commits" ? 1 : 0;
      expect([first, runs(), (await rows(first)).length]).toEqual([first, once, once]);
    }
  });

  test("is not made once the attempt has ended", async () => {
    const { store, rows } = given();
    const attempt = proceeded(await sqlEngineOn(store).engine.begin(local("ended")));
    await attempt.release();
    const { pay, runs } = paying(given(), "ended");
    await expect(attempt.transaction(pay)).rejects.toMatchObject({ code: "attempt_ended" });
    await expect(attempt.complete(answerOf("late"))).rejects.toMatchObject({ code: "attempt_ended" });
    expect([runs(), await rows("ended")]).toEqual([0, []]);
  });

  test("that its work undoes leaves nothing, hands back its value, and may still be refused for good", async () => {
    const { store, rows, put } = given();
    const { engine, events } = sqlEngineOn(store);
    const request = local("undone");
    const attempt = proceeded(await engine.begin(request));
    const undo = (tx: Tx) =>
      following(put(tx, rowOf("undone")), (): Worked<number> => ({ kind: "undo", value: 7 }));
    expect(await attempt.transaction(undo)).toEqual({ kind: "undone", value: 7 });
    expect([await rows("undone"), await recordOf(store, request.identity)]).toEqual([[], null]);
    expect(engine.context.running.size).toBe(1);
    const ended = await attempt.fail(answerOf("no", 422));
    const record = await recordOf(store, request.identity);
    expect(ended).toEqual({ kind: "kept", record });
    expect(record).toMatchObject({ state: "failed_permanent", answer: answerOf("no", 422) });
    expect([outcomesOf(events), engine.context.running.size]).toEqual([["claimed"], 0]);
  });
}

const failing = (): never => {
  throw new RangeError("a bug");
};

function withoutTransaction<Tx>(given: () => Sql<Tx>): void {
  test("is made for work that has no transaction when that ends; a copy gets its answer and not its own", async () => {
    const { store, other } = given();
    const request = local("unused");
    const [first, copy] = [sqlEngineOn(store), sqlEngineOn(other)];
    const [attempt, copied] = [
      proceeded(await first.engine.begin(request)),
      proceeded(await copy.engine.begin(request)),
    ];
    expect(attempt.number).toBe(0);
    const kept = await attempt.complete(answerOf("first"));
    const record = await recordOf(store, request.identity);
    expect(kept).toEqual({ kind: "kept", record });
    expect(record).toMatchObject({ state: "completed", answer: answerOf("first"), attempt: attempt.number });
    const answered = { kind: "answered", answered: { kind: "replay", answer: answerOf("first") } };
    expect(await copied.complete(answerOf("second"))).toMatchObject(answered);
    expect([outcomesOf(first.events), outcomesOf(copy.events)]).toEqual([["claimed"], ["replayed"]]);
    expect([first, copy].map(({ engine }) => engine.context.running.size)).toEqual([0, 0]);
  });

  test("that ends without an effect tells a copy what stands, and never that nothing was done", async () => {
    const { store } = given();
    const { engine, events } = sqlEngineOn(store);
    const request = local("copy fails");
    const copied = proceeded(await engine.begin(request));
    await proceeded(await engine.begin(request)).transaction(paying(given(), "copy fails").pay);
    const answered = { kind: "answered", answered: { kind: "replay", answer: answerOf("kept") } };
    expect(await copied.release()).toMatchObject(answered);
    expect(outcomesOf(events)).toEqual(["claimed", "replayed"]);
    expect(ofType(events, "failure")).toEqual([]);
  });
}
