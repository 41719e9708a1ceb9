import { describe, expect, test } from "vitest";
import type { TransactionRequest } from "../../src/engine/run.ts";
import type { Worked } from "../../src/engine/transaction.ts";
import {
  answerOf,
  lapsed,
  proceeded,
  requestFor,
  SHORT,
  sqlEngineOn,
  standing,
  stoppedRuntime,
} from "../engine/engines.ts";
import { type OpenedLayer, onEveryLayer } from "./bridges-layers.ts";

const KEPT: Worked<string> = { kind: "keep", state: "completed", answer: answerOf("kept"), value: "mine" };

const called = (key: string, rest: Partial<TransactionRequest> = {}): TransactionRequest => ({
  ...{ operation: "transfer", principal: "alice", key },
  ...rest,
});

const HOWS = [{ commits: "two" }, { commits: "one" }] as const;

describe("an engine whose transactions a layer of the user's opens", () => {
  onEveryLayer((given) => {
    test.each(HOWS)(
      "runs a function once, with one effect and one value, in commits: $commits",
      async (how) => {
        const { store, other, effects } = given();
        const key = `once ${how.commits}`;
        const runs = [0, 0];
        const work = (n: number) => async (tx: Parameters<ReturnType<typeof given>["statement"]>[0]) => {
          runs[n] = (runs[n] ?? 0) + 1;
          await addTo(given(), tx, key);
          return { n };
        };
        const [engine, another] = [sqlEngineOn(store).engine, sqlEngineOn(other).engine];
        expect(await engine.runInTransaction(called(key, how), work(0))).toEqual({ n: 0 });
        expect(await another.runInTransaction(called(key, how), work(1))).toEqual({ n: 0 });
        expect([runs, (await effects()).filter((id) => id === key)]).toEqual([[1, 0], [key]]);
      },
    );

    test.each(HOWS)(
      "keeps no effect of a function that throws, and frees its key, in commits: $commits",
      async (how) => {
        const { store, effects } = given();
        const key = `thrown ${how.commits}`;
        const { engine } = sqlEngineOn(store);
        const failing = engine.runInTransaction(called(key, how), async (tx) => {
          await addTo(given(), tx, key);
          throw new RangeError("a bug");
        });
        await expect(failing).rejects.toBeInstanceOf(RangeError);
        expect(await effects()).not.toContain(key);
        expect(
          await engine.runInTransaction(called(key, how), async (tx) => addTo(given(), tx, key)),
        ).toBeUndefined();
        expect(await effects()).toContain(key);
      },
    );

    test("runs a unit again that the database could not serialise, under the same claim", async () => {
      const { store, statement, effects } = given();
      let runs = 0;
      const value = await sqlEngineOn(store).engine.runInTransaction(called("again"), async (tx) => {
        runs += 1;
        await addTo(given(), tx, "again");
        if (runs < 3) await statement(tx, "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$");
        return runs;
      });
      expect([value, (await effects()).includes("again")]).toEqual([3, true]);
    });

    test("keeps out the effect of an attempt that was taken over", async () => {
      const { store, other, effects } = given();
      const request = requestFor("taken over", { effects: "transaction" });
      const slow = sqlEngineOn(store, { ...SHORT, runtime: stoppedRuntime() }).engine;
      const late = proceeded(await slow.begin(request));
      await lapsed(store, request);
      const next = proceeded(await sqlEngineOn(other).engine.begin(request));
      await next.transaction(async (tx) => {
        await addTo(given(), tx, "the next one's");
        return KEPT;
      });
      const lost = late.transaction(async (tx) => {
        await addTo(given(), tx, "the late one's");
        return KEPT;
      });
      expect(await lost).toMatchObject({ kind: "lost" });
      expect(await effects()).toContain("the next one's");
      expect(await effects()).not.toContain("the late one's");
      expect(await standing(store, request)).toMatchObject({ state: "completed", attempt: next.number });
    });
  });
});

async function addTo<Tx>({ statement }: OpenedLayer<Tx>, tx: Tx, id: string): Promise<void> {
  await statement(tx, `insert into effects values ('${id.replaceAll("'", "''")}')`);
}
