import type { PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nodeRuntime } from "../../src/engine/runtime.ts";
import type { Worked } from "../../src/engine/transaction.ts";
import { postgresIsHere } from "../support/databases.ts";
import { until } from "../support/processes.ts";
import { answerOf, ofType, proceeded, sqlEngineOn } from "./engines.ts";
import {
  called,
  failing,
  gate,
  identityOf,
  local,
  outcomesOf,
  paying,
  recordOf,
  working,
} from "./one-commit-calls.ts";
import { onEverySqlStore, openPostgres, type Sql } from "./stores.ts";

describe("many claims in their effect's own commit", () => {
  onEverySqlStore((given) => {
    test("of one key at once have one effect; the others hear its value, or that it is in progress", async () => {
      const { store, other, rows } = given();
      const told = [sqlEngineOn(store), sqlEngineOn(other)];
      const { work } = working(given(), "at once");
      const calls = Array.from({ length: 64 }, async (_, n) =>
        told[n % 2]?.engine.runInTransaction(
          called("at once"),
          work(() => n),
        ),
      );
      const ends = await Promise.allSettled(calls);
      const values = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
      expect(new Set(values).size).toBe(1);
      for (const end of ends) {
        if (end.status === "rejected") expect(end.reason).toMatchObject({ code: "in_progress" });
      }
      expect(await rows("at once")).toHaveLength(1);
      const outcomes = told.flatMap(({ events }) => outcomesOf(events));
      expect([outcomes.length, outcomes.filter((each) => each === "claimed")]).toEqual([64, ["claimed"]]);
    });
  });
});

describe("an attempt whose claim is in its effect's own commit", () => {
  onEverySqlStore((given) => {
    timesOut(given);
    drains(given);
  });
});

function timesOut<Tx>(given: () => Sql<Tx>): void {
  test("that has not begun its transaction when its time is up has no effect, and nothing stands", async () => {
    const { store, rows } = given();
    const { engine, events } = sqlEngineOn(store, { requestTimeout: 25, lease: 5_000 });
    const attempt = proceeded(await engine.begin(local("slow")));
    await until(() => attempt.signal.aborted);
    const { pay, runs } = paying(given(), "slow");
    await expect(attempt.transaction(pay)).rejects.toMatchObject({ code: "outcome_unknown" });
    expect(await attempt.release()).toMatchObject({ kind: "kept", record: { state: "released" } });
    expect([runs(), await rows("slow"), outcomesOf(events)]).toEqual([0, [], ["claimed"]]);
    expect(await recordOf(store, local("slow").identity)).toBeNull();
    expect(engine.context.running.size).toBe(0);
  });

  test("commits late in work that may run longer than a lease", async () => {
    const { store, rows } = given();
    let laterMs = 0;
    const runtime = { ...nodeRuntime(), monotonicMs: () => performance.now() + laterMs };
    const { engine } = sqlEngineOn(store, { runtime });
    const attempt = proceeded(await engine.begin(local("long", { maxRunMs: 600_000 })));
    laterMs = 500_000;
    expect(await attempt.transaction(paying(given(), "long").pay)).toMatchObject({ kind: "committed" });
    expect(await rows("long")).toHaveLength(1);
  });
}

function drains<Tx>(given: () => Sql<Tx>): void {
  test("is not begun by an engine that closes, which answers still what needs no claim", async () => {
    const { store } = given();
    const { engine } = sqlEngineOn(store);
    const { work, runs } = working(given(), "draining");
    const one = work(() => 1);
    await engine.runInTransaction(called("draining"), one);
    await engine.close();
    expect(await engine.runInTransaction(called("draining"), one)).toBe(1);
    const fresh = engine.runInTransaction(called("draining, fresh"), one);
    await expect(fresh).rejects.toMatchObject({ code: "draining" });
    expect(runs()).toBe(1);
  });

  test("is waited for by an engine that closes, and commits", async () => {
    const { store, rows } = given();
    const { engine } = sqlEngineOn(store);
    const attempt = proceeded(await engine.begin(local("waited")));
    let closed = false;
    const closing = engine.close({ drain: "20s" }).then(() => {
      closed = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(closed).toBe(false);
    expect(await attempt.transaction(paying(given(), "waited").pay)).toMatchObject({ kind: "committed" });
    await closing;
    expect([(await rows("waited")).length, attempt.signal.aborted]).toEqual([1, false]);
  });

  test("that a closing engine gives up has no effect, and can still say how it ended", async () => {
    const { store, rows } = given();
    const { engine, events } = sqlEngineOn(store);
    const attempt = proceeded(await engine.begin(local("given up")));
    await engine.close({ drain: 10 });
    expect([attempt.signal.aborted, engine.context.running.size]).toEqual([true, 0]);
    const { pay } = paying(given(), "given up");
    await expect(attempt.transaction(pay)).rejects.toMatchObject({ code: "outcome_unknown" });
    expect(await attempt.release()).toMatchObject({ kind: "kept", record: { state: "released" } });
    expect([await rows("given up"), outcomesOf(events)]).toEqual([[], ["claimed"]]);
    expect(ofType(events, "failure")).toEqual([]);
  });

  test("that a closing engine gives up keeps the answer that it brings after all", async () => {
    const { store } = given();
    const { engine } = sqlEngineOn(store);
    const request = local("late");
    const attempt = proceeded(await engine.begin(request));
    await engine.close({ drain: 10 });
    const kept = await attempt.complete(answerOf("late"));
    expect(kept).toMatchObject({ kind: "kept", record: { state: "completed" } });
    expect(await recordOf(store, request.identity)).toMatchObject({ answer: answerOf("late") });
  });
}

describe.skipIf(!postgresIsHere())(
  "a claim in its effect's own commit, on PostgreSQL, while it runs,",
  () => {
    let sql: Sql<PoolClient>;
    beforeAll(async () => {
      sql = await openPostgres();
    });
    afterAll(() => sql.close());
    isHeardOf(() => sql);
    runsLate(() => sql);
  },
);

function isHeardOf(given: () => Sql<PoolClient>): void {
  test("makes nobody wait: sixty-three copies are told so at once, and then get its value", async () => {
    const { store, other, rows } = given();
    const [winner, rival] = [sqlEngineOn(store), sqlEngineOn(other)];
    const { opened, open } = gate();
    const { work, runs } = working(given(), "held");
    const slow = work(() => opened.then(() => "made"));
    const first = winner.engine.runInTransaction(called("held"), slow);
    await until(() => runs() === 1);
    const again = work(() => "again");
    const copies = Array.from({ length: 63 }, () => rival.engine.runInTransaction(called("held"), again));
    for (const end of await Promise.allSettled(copies))
      expect(end).toMatchObject({ reason: { code: "in_progress", retryAfterMs: 1_000 } });
    open();
    expect([await first, await rival.engine.runInTransaction(called("held"), again)]).toEqual([
      "made",
      "made",
    ]);
    expect([runs(), (await rows("held")).length]).toEqual([1, 1]);
    const expected = [...Array.from({ length: 63 }, () => "in_progress_conflict"), "replayed"];
    expect([outcomesOf(winner.events), outcomesOf(rival.events)]).toEqual([["claimed"], expected]);
  });

  test("is in progress to a call with another input, and to a copy that ends without its transaction", async () => {
    const { store, other } = given();
    const { opened, open } = gate();
    const { work, runs } = working(given(), "hidden");
    const running = sqlEngineOn(store).engine;
    const held = work(() => opened.then((): Worked<null> => ({ kind: "undo", value: null })));
    const first = proceeded(await running.begin(local("hidden"))).transaction(async (tx) => await held(tx));
    await until(() => runs() === 1);
    const { engine } = sqlEngineOn(other);
    const busy = { kind: "answered", answered: { kind: "in_progress", record: null } };
    const { pay } = paying(given(), "hidden");
    const another = proceeded(await engine.begin(local("hidden", { body: "another" })));
    expect(await another.transaction(pay)).toMatchObject(busy);
    expect(await proceeded(await engine.begin(local("hidden"))).release()).toMatchObject(busy);
    open();
    await first;
  });

  test("is waited for where what is in the way may be its own first try, whose reply was lost", async () => {
    const { store, other, rows } = given();
    const { faulty, engine } = failing(store, ["not_applied"]);
    const [{ opened, open }, holds] = [gate(), gate()];
    const rival = other.transaction(async (tx) => {
      expect(await other.within(tx).tryClaim(identityOf("own"))).toBe(true);
      holds.open();
      await opened;
      return { kind: "rollback", value: null };
    });
    await holds.opened;
    const { work } = working(given(), "own");
    const ran = engine.runInTransaction(
      called("own"),
      work(() => "made"),
    );
    const ended = ran.finally(open);
    await until(() => faulty.calls("transaction") > 2, { withinMs: 5_000 });
    open();
    expect(await ended).toBe("made");
    await rival;
    expect(await rows("own")).toHaveLength(1);
  });
}

function runsLate(given: () => Sql<PoolClient>): void {
  test("commits although its time is up: the caller gets the value, and not that nothing was done", async () => {
    const { store, rows } = given();
    const { engine, events } = sqlEngineOn(store, { requestTimeout: 50, lease: 20_000, storeTimeout: 40 });
    const { opened, open } = gate();
    const { work, runs } = working(given(), "late");
    let aborted = false;
    const ran = engine.runInTransaction(called("late"), (tx, { signal }) => {
      signal.addEventListener("abort", () => {
        aborted = true;
      });
      return work(() => opened.then(() => "made"))(tx);
    });
    await until(() => aborted);
    open();
    expect(await ran).toBe("made");
    expect([runs(), (await rows("late")).length, outcomesOf(events)]).toEqual([1, 1, ["claimed"]]);
    expect(engine.context.running.size).toBe(0);
  });

  test("and rolls back after its time is up, leaves nothing, and that is what the caller hears", async () => {
    const { store, rows } = given();
    const { engine } = sqlEngineOn(store, { requestTimeout: 50, lease: 20_000, storeTimeout: 40 });
    const { opened, open } = gate();
    const request = local("late, then undone");
    const attempt = proceeded(await engine.begin(request));
    const { work } = working(given(), "late, then undone");
    const undo = work(() => opened.then((): Worked<null> => ({ kind: "undo", value: null })));
    const transacting = attempt.transaction(async (tx) => await undo(tx));
    await until(() => attempt.signal.aborted);
    const releasing = attempt.release();
    open();
    expect([await transacting, await releasing]).toMatchObject([{ kind: "undone" }, { kind: "kept" }]);
    expect([await rows("late, then undone"), await recordOf(store, request.identity)]).toEqual([[], null]);
  });

  test("is not waited for beyond the completion timeout, and is not said to have done nothing", async () => {
    const { store } = given();
    const settings = { requestTimeout: 50, lease: 20_000, storeTimeout: 40, completionTimeout: 50 };
    const { engine } = sqlEngineOn(store, settings);
    const { opened, open } = gate();
    const { work } = working(given(), "hangs");
    const ran = engine.runInTransaction(
      called("hangs"),
      work(() => opened.then(() => "made")),
    );
    await expect(ran).rejects.toMatchObject({ code: "outcome_unknown" });
    open();
    const again = work(() => "again");
    const { commits: _inOne, ...plain } = called("hangs");
    await until(async () => (await engine.attemptRun(plain, () => "again")).kind === "replayed");
    expect(await engine.runInTransaction(called("hangs"), again)).toBe("made");
  });

  test("and never returns, gives its key back at the time limit and a lease's margin", async () => {
    const { store, other, rows } = given();
    const settings = { requestTimeout: 50, lease: 300, storeTimeout: 40, completionTimeout: 50 };
    const hanging = sqlEngineOn(store, settings).engine;
    const { work } = working(given(), "never");
    const never = work(() => new Promise<string>(() => {}));
    await expect(hanging.runInTransaction(called("never"), never)).rejects.toMatchObject({
      code: "outcome_unknown",
    });
    const { engine } = sqlEngineOn(other);
    const again = work(() => "again");
    const tried = () =>
      engine.runInTransaction(called("never"), again).catch((error: unknown) => String(error));
    await until(async () => (await tried()) === "again");
    expect(await rows("never")).toHaveLength(1);
  });

  test("and is given up by a closing engine, commits: the caller gets the value", async () => {
    const { store, rows } = given();
    const { engine, events } = sqlEngineOn(store);
    const { opened, open } = gate();
    const { work, runs } = working(given(), "closing");
    const ran = engine.runInTransaction(
      called("closing"),
      work(() => opened.then(() => "made")),
    );
    await until(() => runs() === 1);
    const closing = engine.close({ drain: 10 });
    await until(() => [...engine.context.running].every(({ signal }) => signal.aborted));
    open();
    expect(await ran).toBe("made");
    await closing;
    expect([(await rows("closing")).length, outcomesOf(events)]).toEqual([1, ["claimed"]]);
  });
}
