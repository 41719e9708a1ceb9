import { describe, expect, test } from "vitest";
import { following } from "../../src/engine/command.ts";
import type { RunRequest } from "../../src/engine/run.ts";
import { NotPerformed, PermanentFailure } from "../../src/errors.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { faultySqlStore } from "../support/faulty-store.ts";
import { engineOn, sqlEngineOn } from "./engines.ts";
import { onEverySqlStore, rowOf, type Sql } from "./stores.ts";

const called = (key: string, rest: Partial<RunRequest> = {}): RunRequest => ({
  operation: "transfer",
  principal: "alice",
  key,
  ...rest,
});

describe("a function that runs once, in a transaction", () => {
  onEverySqlStore((given) => {
    commits(given);
    rollsBack(given);
    faults(given);
  });

  test("is refused on a store without transactions, and nothing runs", async () => {
    const { engine } = engineOn(memoryStore());
    const run = engine.runInTransaction(called("memory"), () => 1);
    await expect(run).rejects.toMatchObject({ code: "configuration", field: "store" });
  });
});

/** Work that adds a row, counts its runs and returns what it is given. */
function working<Tx>({ put }: Sql<Tx>, key: string) {
  let runs = 0;
  const work =
    <T>(end: () => T) =>
    (tx: Tx) => {
      runs += 1;
      return following(put(tx, rowOf(key)), end);
    };
  return { work, runs: () => runs };
}

function commits<Tx>(given: () => Sql<Tx>): void {
  test("hands back an equal value of every kind at every replay, with one effect", async () => {
    const { store, other, rows } = given();
    const [engine, another] = [sqlEngineOn(store).engine, sqlEngineOn(other).engine];
    for (const [index, value] of [undefined, null, -0, { at: new Date(1) }, new Map([[1, 2n]])].entries()) {
      const key = `value ${index}`;
      const { work, runs } = working(given(), key);
      expect(
        await engine.runInTransaction(
          called(key),
          work(() => value),
        ),
      ).toEqual(value);
      expect(
        await another.runInTransaction(
          called(key),
          work(() => value),
        ),
      ).toEqual(value);
      expect([runs(), (await rows(key)).length]).toEqual([1, 1]);
    }
  });

  test("called many times at once has one effect, and nobody waits for another's", async () => {
    const { store, other, rows } = given();
    const engines = [sqlEngineOn(store).engine, sqlEngineOn(other).engine];
    const { work } = working(given(), "at once");
    const calls = Array.from({ length: 16 }, async (_, n) =>
      engines[n % 2]?.runInTransaction(
        called("at once"),
        work(() => n),
      ),
    );
    const ends = await Promise.allSettled(calls);
    const values = new Set(ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : [])));
    expect(values.size).toBe(1);
    for (const end of ends) {
      if (end.status === "rejected") expect(end.reason).toMatchObject({ code: "in_progress" });
    }
    expect(await rows("at once")).toHaveLength(1);
  });
}

function rollsBack<Tx>(given: () => Sql<Tx>): void {
  test.each([
    ["says that nothing was done", new NotPerformed("no stock")],
    ["throws what says nothing", new RangeError("a bug")],
  ])("that %s leaves no effect and a free key", async (what, error) => {
    const { store, rows } = given();
    const { engine } = sqlEngineOn(store);
    const { work } = working(given(), what);
    const failing = work((): never => {
      throw error;
    });
    await expect(engine.runInTransaction(called(what), failing)).rejects.toBe(error);
    expect(await rows(what)).toEqual([]);
    expect(
      await engine.runInTransaction(
        called(what),
        work(() => "second"),
      ),
    ).toBe("second");
    expect(await rows(what)).toHaveLength(1);
    expect(engine.context.running.size).toBe(0);
  });

  test("that is refused for good leaves no effect, and is refused alike for ever", async () => {
    const { store, rows } = given();
    const { engine } = sqlEngineOn(store);
    const { work, runs } = working(given(), "refused");
    const refuse = work((): never => {
      throw new PermanentFailure({ reason: "insufficient funds" });
    });
    for (const again of [1, 2]) {
      const run = engine.runInTransaction(called("refused"), refuse);
      await expect(run).rejects.toMatchObject({
        code: "permanent_failure",
        answer: { reason: "insufficient funds" },
      });
      expect([again, runs(), await rows("refused")]).toEqual([again, 1, []]);
    }
  });

  test("whose value cannot be kept leaves no effect and a free key", async () => {
    const { store, rows } = given();
    const { engine } = sqlEngineOn(store);
    const { work } = working(given(), "odd");
    const odd = engine.runInTransaction(
      called("odd"),
      work(() => Symbol("odd")),
    );
    await expect(odd).rejects.toMatchObject({ code: "value_unsupported" });
    expect(await rows("odd")).toEqual([]);
    expect(
      await engine.runInTransaction(
        called("odd"),
        work(() => 1),
      ),
    ).toBe(1);
  });
}

function faults<Tx>(given: () => Sql<Tx>): void {
  const becomes = [
    ["reply_lost", 1],
    ["not_applied", 2],
    ["contention", 2],
  ] as const;
  test.each(becomes)(
    "whose commit is answered with %s hands back its value, with one effect (runs: %i)",
    async (fault, expected) => {
      const { store, rows } = given();
      const faulty = faultySqlStore(store);
      const { engine } = sqlEngineOn(faulty.store);
      const { work, runs } = working(given(), fault);
      faulty.plan("transaction", 1, fault);
      expect(
        await engine.runInTransaction(
          called(fault),
          work(() => ({ of: fault })),
        ),
      ).toEqual({ of: fault });
      expect(runs()).toBe(expected);
      expect(await rows(fault)).toHaveLength(1);
      expect(
        await engine.runInTransaction(
          called(fault),
          work(() => "second"),
        ),
      ).toEqual({ of: fault });
    },
  );

  test("that always gives way is told as contention, and its key is free again", async () => {
    const { store, rows } = given();
    const faulty = faultySqlStore(store);
    const { engine } = sqlEngineOn(faulty.store);
    const { work } = working(given(), "gives way");
    faulty.plan("transaction", "every", "contention");
    const run = engine.runInTransaction(
      called("gives way"),
      work(() => 1),
    );
    await expect(run).rejects.toMatchObject({ code: "store_contention" });
    faulty.heal();
    expect(await rows("gives way")).toEqual([]);
    expect(
      await engine.runInTransaction(
        called("gives way"),
        work(() => 2),
      ),
    ).toBe(2);
  });
}
