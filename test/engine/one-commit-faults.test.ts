import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { following } from "../../src/engine/command.ts";
import type { Worked } from "../../src/engine/transaction.ts";
import { OncekeyError, PermanentFailure, StoreContention, StoreUnavailable } from "../../src/errors.ts";
import type { Settling, TransactionalStore } from "../../src/stores/store.ts";
import { until } from "../support/processes.ts";
import { answerOf, proceeded, sqlEngineOn } from "./engines.ts";
import { called, failing, identityOf, local, outcomesOf, recordOf, working } from "./one-commit-calls.ts";
import { onEverySqlStore, type Sql } from "./stores.ts";
import { virtualTime } from "./virtual-time.ts";

describe("a claim in its effect's own commit, whose reply is lost,", () => {
  onEverySqlStore((given) => {
    settled(given);
    spent(given);
    undone(given);
    endedOtherwise(given);
  });
});

describe("a claim in its effect's own commit, on a store out of reach,", () => {
  onEverySqlStore(unreachable);
});

function settled<Tx>(given: () => Sql<Tx>): void {
  const becomes = [
    ["reply_lost", 1],
    ["not_applied", 2],
    ["contention", 2],
    ["applied_later", 1],
  ] as const;
  test.each(becomes)("is found, or made again (%s, runs: %i), with one effect", async (fault, expected) => {
    const { store, rows } = given();
    const { faulty, engine, events } = failing(store, [fault]);
    const { work, runs } = working(given(), fault);
    const first = work(() => ({ of: fault }));
    expect(await engine.runInTransaction(called(fault), first)).toEqual({ of: fault });
    expect([runs(), (await rows(fault)).length]).toEqual([expected, 1]);
    const record = await recordOf(store, identityOf(fault));
    await faulty.applyHeld();
    expect([(await rows(fault)).length, await recordOf(store, identityOf(fault))]).toEqual([1, record]);
    const second = work(() => "second");
    expect(await engine.runInTransaction(called(fault), second)).toEqual({ of: fault });
    expect(outcomesOf(events)).toEqual(["claimed", "replayed"]);
  });

  test("of an answer without a transaction is found again, and is its request's own", async () => {
    const { store } = given();
    const request = local("answer");
    const { engine } = failing(store, ["reply_lost"]);
    const ended = await proceeded(await engine.begin(request)).complete(answerOf("done"));
    expect(ended).toEqual({ kind: "kept", record: await recordOf(store, request.identity) });
    expect(ended).toMatchObject({ record: { state: "completed", answer: answerOf("done") } });
  });
}

function spent<Tx>(given: () => Sql<Tx>): void {
  test("every time, is found in the end: the caller gets the value that was committed", async () => {
    const { store, rows } = given();
    const { faulty, engine, events } = failing(store, []);
    faulty.plan("transaction", "every", "reply_lost");
    const { work, runs } = working(given(), "every time");
    const ran = engine.runInTransaction(
      called("every time"),
      work(() => "made"),
    );
    expect(await ran).toBe("made");
    expect([runs(), (await rows("every time")).length, outcomesOf(events)]).toEqual([1, 1, ["claimed"]]);
  });

  test("or given way, again and again, is given up as contention, and nothing stands", async () => {
    const { store, rows } = given();
    const { faulty, engine, events } = failing(store, []);
    faulty.plan("transaction", "every", "contention");
    const { work, runs } = working(given(), "gives way");
    const ran = engine.runInTransaction(
      called("gives way"),
      work(() => 1),
    );
    await expect(ran).rejects.toMatchObject({ code: "store_contention" });
    expect([runs(), outcomesOf(events), engine.context.running.size]).toEqual([5, ["claimed"], 0]);
    faulty.heal();
    expect([await rows("gives way"), await recordOf(store, identityOf("gives way"))]).toEqual([[], null]);
    expect(
      await engine.runInTransaction(
        called("gives way"),
        work(() => 2),
      ),
    ).toBe(2);
  });
}

function undone<Tx>(given: () => Sql<Tx>): void {
  const doubts = [
    ["and never settled", ["applied_later", "not_applied", "not_applied", "not_applied", "not_applied"]],
    ["and then gives way", ["applied_later", "contention", "contention", "contention", "contention"]],
    ["and whose repeat throws", ["applied_later"]],
    ["and whose repeat is refused for good", ["applied_later"]],
  ] as const;
  test.each(doubts)("%s can never be applied once it is told as undone", async (what, faults) => {
    const { store, rows } = given();
    const { faulty, engine, events } = failing(store, faults);
    const { work } = working(given(), what);
    const errors = { throws: new RangeError("a bug"), refused: new PermanentFailure("no") };
    const ran = engine.runInTransaction(
      called(what),
      work((run) => {
        if (run === 1 && what.endsWith("throws")) throw errors.throws;
        if (run === 1 && what.endsWith("for good")) throw errors.refused;
        return "made";
      }),
    );
    await expect(ran).rejects.toBeInstanceOf(Error);
    const kept = await recordOf(store, identityOf(what));
    expect(kept?.state).toBe(what.endsWith("for good") ? "failed_permanent" : "released");
    expect(await faulty.applyHeld()).toMatchObject([{ value: { kind: "refused" } }]);
    expect([await rows(what), await recordOf(store, identityOf(what))]).toEqual([[], kept]);
    expect(outcomesOf(events)).toEqual(["claimed"]);
    if (kept?.state !== "released") return;
    const second = work(() => "second");
    expect(await engine.runInTransaction(called(what), second)).toBe("second");
    expect(await rows(what)).toHaveLength(1);
  });

  test("and that its work undoes when it is repeated, can never be applied once the attempt has ended", async () => {
    const { store, rows } = given();
    const { faulty, engine } = failing(store, ["applied_later"]);
    const attempt = proceeded(await engine.begin(local("undoes")));
    expect(await attempt.transaction(keepsSecond(given(), "undoes").undo)).toMatchObject({ kind: "undone" });
    expect(await attempt.release()).toMatchObject({ kind: "kept", record: { state: "released" } });
    expect(await faulty.applyHeld()).toMatchObject([{ value: { kind: "refused" } }]);
    expect(await rows("undoes")).toEqual([]);
  });

  test("is not told as undone while nobody knows, and is undone as soon as the store is back", async () => {
    const { store, rows } = given();
    const { faulty, engine } = failing(store, ["applied_later"], { completionTimeout: 20 });
    faulty.plan("insert", "every", "not_applied");
    const request = local("nobody knows");
    const attempt = proceeded(await engine.begin(request));
    await expect(attempt.transaction(keepsSecond(given(), "nobody knows").fail)).rejects.toThrow();
    expect(await attempt.release()).toEqual({ kind: "unkept" });
    faulty.heal();
    await until(async () => (await recordOf(store, request.identity))?.state === "released");
    await faulty.applyHeld();
    expect(await rows("nobody knows")).toEqual([]);
  });
}

/** Work that undoes or refuses its first run and keeps its second: what is held back may say another thing than what ran. */
function keepsSecond<Tx>(sql: Sql<Tx>, key: string) {
  const { work } = working(sql, key);
  const kept: Worked<string> = { kind: "keep", state: "completed", answer: answerOf("kept"), value: "mine" };
  return {
    undo: work((run): Worked<string> => (run === 1 ? { kind: "undo", value: "no" } : kept)),
    fail: work((run): Worked<string> => {
      if (run === 1) throw new PermanentFailure("no");
      return kept;
    }),
  };
}

function endedOtherwise<Tx>(given: () => Sql<Tx>): void {
  test.each(["fail", "complete"] as const)(
    "but applied before its attempt ends otherwise (%s), stands, and the other answer is not said to be kept",
    async (end) => {
      const { store, rows } = given();
      const { faulty, engine } = failing(store, ["applied_later"]);
      const request = local(`otherwise ${end}`);
      const attempt = proceeded(await engine.begin(request));
      await expect(attempt.transaction(keepsSecond(given(), end).fail)).rejects.toThrow();
      await faulty.applyHeld();
      const record = await recordOf(store, request.identity);
      expect(record).toMatchObject({ state: "completed", answer: answerOf("kept") });
      expect(await attempt[end](answerOf("no", 402))).toEqual({ kind: "lost", record });
      expect(await recordOf(store, request.identity)).toEqual(record);
      expect(await rows(end)).toHaveLength(1);
    },
  );

  test("whose answer is more than the store keeps is on record without its body, and the work is not repeated", async () => {
    const { store } = given();
    const fenced: typeof store.fenced = (ground, work, bounds) =>
      store.fenced(
        ground,
        (tx, number) =>
          following(work(tx, number), (end) => {
            if (end.kind === "commit" && "answer" in end.write && end.write.answer.body !== null)
              throw new OncekeyError("record_too_large", "The record is too large.");
            return end;
          }),
        bounds,
      );
    const { engine } = sqlEngineOn({ ...store, fenced });
    const request = local("too large");
    const attempt = proceeded(await engine.begin(request));
    expect(await attempt.complete(answerOf("long"))).toMatchObject({ kind: "kept" });
    expect(await recordOf(store, request.identity)).toMatchObject({
      state: "completed",
      answer: { body: null },
    });
  });

  test("but applied before its attempt is given up, stands, and is what the caller hears", async () => {
    const { store } = given();
    const { faulty, engine } = failing(store, ["applied_later"]);
    const attempt = proceeded(await engine.begin(local("given up")));
    await expect(attempt.transaction(keepsSecond(given(), "given up").fail)).rejects.toThrow();
    await faulty.applyHeld();
    const heard = { kind: "answered", answered: { kind: "replay", answer: answerOf("kept") } };
    expect(await attempt.release()).toMatchObject(heard);
  });
}

function unreachable<Tx>(given: () => Sql<Tx>): void {
  const silences = {
    refuses: () => Promise.reject(new StoreUnavailable("Nobody is at home.")),
    "says nothing": () => new Promise<never>(() => {}),
  };
  const inVirtualTime = (fenced: () => Promise<never>, settings = {}) => {
    const time = virtualTime();
    const store: TransactionalStore<Tx, Settling> = { ...given().store, fenced };
    return { time, ...sqlEngineOn(store, { runtime: time.runtime, ...settings }) };
  };

  test.each(["refuses", "says nothing"] as const)(
    "that %s, is told so within the store timeout, and nothing runs",
    async (how) => {
      const { time, engine, events } = inVirtualTime(silences[how]);
      const { work, runs } = working(given(), how);
      const one = work(() => 1);
      const refused = time.until(engine.runInTransaction(called(how), one).catch((error: unknown) => error));
      expect(await refused).toMatchObject({ code: "store_unavailable" });
      expect(time.elapsedMs()).toBeLessThanOrEqual(engine.policy.storeTimeoutMs);
      expect([runs(), outcomesOf(events)]).toEqual([0, ["store_unavailable"]]);
      expect([engine.context.running.size, await given().rows(how)]).toEqual([0, []]);
    },
  );

  test("that fails late each time, is told so within the store timeout, and nothing runs", async () => {
    const time = virtualTime();
    const fenced = async () => {
      await time.runtime.sleep(1_500);
      throw new StoreUnavailable("Nobody is at home any more.");
    };
    const { engine } = sqlEngineOn({ ...given().store, fenced }, { runtime: time.runtime });
    const { work, runs } = working(given(), "late");
    const call = engine.runInTransaction(
      called("late"),
      work(() => 1),
    );
    const refused = time.until(call.catch((error: unknown) => error));
    expect(await refused).toMatchObject({ code: "store_unavailable" });
    expect(time.elapsedMs()).toBeLessThanOrEqual(engine.policy.storeTimeoutMs);
    expect(runs()).toBe(0);
  });

  test.each(["one", "two"] as const)(
    "that gives way has less time at its second try, with commits: %s",
    async (commits) => {
      const { store } = given();
      const left: number[] = [];
      const fenced: typeof store.fenced = async (ground, work, bounds) => {
        left.push(bounds?.idleMs ?? Number.NaN);
        if (left.length > 1) return await store.fenced(ground, work, bounds);
        await store.fenced(
          ground,
          (tx, number) => following(work(tx, number), ({ value }) => ({ kind: "rollback", value })),
          bounds,
        );
        await sleep(200);
        throw new StoreContention("The database gave way.");
      };
      const { engine } = sqlEngineOn({ ...store, fenced });
      const { work, runs } = working(given(), `less ${commits}`);
      const call = engine.runInTransaction(
        called(`less ${commits}`, { commits }),
        work(() => "done"),
      );
      expect(await call).toBe("done");
      expect(runs()).toBe(2);
      const [first = 0, second = 0] = left;
      expect(second).toBeLessThanOrEqual(first - 200);
    },
  );

  test("counts once where its time is up before the store's", async () => {
    const settings = { requestTimeout: 500, lease: 5_000 };
    const { time, engine, events } = inVirtualTime(silences["says nothing"], settings);
    const { work } = working(given(), "both");
    const one = work(() => 1);
    const refused = time.until(engine.runInTransaction(called("both"), one).catch((error: unknown) => error));
    expect(await refused).toMatchObject({ code: "store_unavailable" });
    expect(outcomesOf(events)).toEqual(["store_unavailable"]);
  });

  test("has the store's whole time to begin, however long its work took before", async () => {
    const { time, engine } = inVirtualTime(silences.refuses);
    const attempt = proceeded(await engine.begin(local("prepared")));
    await time.pass(10_000);
    const kept = working(given(), "prepared").work((): Worked<null> => ({ kind: "undo", value: null }));
    await time.until(attempt.transaction(kept));
    expect(time.elapsedMs()).toBeGreaterThan(10_000 + engine.policy.storeTimeoutMs / 2);
  });

  test("keeps no answer of work that has no transaction, and says so", async () => {
    const { time, engine, events } = inVirtualTime(silences.refuses);
    const attempt = proceeded(await engine.begin(local("unused")));
    const ended = await time.until(attempt.complete(answerOf("done")));
    expect(ended).toMatchObject({ kind: "answered", answered: { kind: "store_unavailable" } });
    expect([outcomesOf(events), engine.context.running.size]).toEqual([["store_unavailable"], 0]);
  });
}
