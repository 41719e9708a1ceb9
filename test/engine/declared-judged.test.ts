import { describe, expect, test } from "vitest";
import type { DeclaredAttempt } from "../../src/engine/run-declared.ts";
import { reconcile, sweep } from "../../src/worker/tick.ts";
import { faultyStore } from "../support/faulty-store.ts";
import { until } from "../support/processes.ts";
import { BLIND, becomes, checkedOut, checkout, ran, stepOf } from "./declared-calls.ts";
import { engineOn, ofType, SHORT, stoppedRuntime } from "./engines.ts";
import { onEveryStore } from "./stores.ts";

describe("a declared effect of an attempt that is given up", () => {
  onEveryStore((given) => {
    test("while its mark is being written is not called, and the mark is taken back", async () => {
      const { store } = given();
      const faulty = faultyStore(store);
      const { engine } = engineOn(faulty.store, { requestTimeout: 100, lease: "30s", storeTimeout: "5s" });
      const request = checkout("slow mark");
      let calls = 0;
      faulty.plan("replace", 1, { kind: "slow", ms: 400 });
      const left = await ran(engine, request, ({ effect }) => effect("charge", BLIND, async () => ++calls));
      expect(left).toMatchObject({ kind: "threw" });
      await becomes(store, request, "released");
      expect(await stepOf(store, request)).toEqual({ state: "clear", generation: 0 });
      expect(calls).toBe(0);
    });

    test("by the sweeper, and by nobody taken over, is not called; what was called before still counts", async () => {
      const { store, other } = given();
      const paused = engineOn(store, { ...SHORT, runtime: stoppedRuntime() });
      const request = checkout("judged");
      let goOn = () => {};
      const gate = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      let called = 0;
      let mailed = 0;
      const first = ran(paused.engine, request, async ({ effect }) => {
        await effect("charge", BLIND, async () => {
          called += 1;
          await gate;
          return "paid";
        });
        return await effect("mail", BLIND, async () => ++mailed);
      });
      await until(() => called === 1);
      const { engine } = engineOn(other, { ...SHORT, sweepGrace: 1 });
      await until(async () => (await sweep(engine)).doubted === 1);
      const { attempt } = await checkedOut(store, request);
      goOn();
      await first;
      expect([called, mailed]).toEqual([1, 0]);
      expect(ofType(paused.events, "lease_lost")).toHaveLength(1);
      expect(await stepOf(store, request)).toMatchObject({ state: "finished" });
      const again = await ran(engine, request, async ({ effect }) => [
        await effect("charge", BLIND, async () => "paid twice"),
        await effect("mail", BLIND, async () => "mailed"),
      ]);
      expect(again).toEqual({ kind: "first", value: ["paid", "mailed"] });
      expect((await checkedOut(store, request)).attempt).toBeGreaterThan(attempt);
    });

    test("by the sweeper, and that dies once its call was heard of, waits for nobody", async () => {
      const { store, other } = given();
      const paused = engineOn(store, { ...SHORT, runtime: stoppedRuntime() });
      const request = checkout("judged, died");
      let goOn = () => {};
      const gate = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      let called = 0;
      let heard = false;
      void ran(paused.engine, request, async ({ effect }) => {
        await effect("charge", BLIND, async () => {
          called += 1;
          await gate;
          return "paid";
        });
        heard = true;
        return await new Promise<never>(() => {}); // the process is gone
      });
      await until(() => called === 1);
      const { engine } = engineOn(other, { ...SHORT, sweepGrace: 1 });
      await until(async () => (await sweep(engine)).doubted === 1);
      expect(await checkedOut(store, request)).toMatchObject({ disposition: "review", nextLookAt: null });
      goOn();
      await until(() => heard);
      await until(async () => (await reconcile(engine)).released === 1);
      const work = ({ effect }: DeclaredAttempt) => effect("charge", BLIND, async () => "paid twice");
      expect(await ran(engine, request, work)).toEqual({ kind: "first", value: "paid" });
    });
  });
});
