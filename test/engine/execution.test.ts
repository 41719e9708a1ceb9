import { describe, expect, test } from "vitest";
import type { Store } from "../../src/stores/store.ts";
import { until } from "../support/processes.ts";
import { BLIND, checkout, openTill, REPEATABLE, ran } from "./declared-calls.ts";
import { engineOn, ofType } from "./engines.ts";
import { onEveryStore } from "./stores.ts";

/** What a workflow throws to be called again. */
class Suspended extends Error {}

const order = (key: string, execution?: string) => ({
  ...{ operation: "order", principal: "alice", key, input: 1 },
  ...(execution === undefined ? {} : { execution }),
});

const identityOf = (key: string) => ({ kind: "run", principal: "alice", operation: "order", key }) as const;

const standing = async (store: Store, key: string) => (await store.read(identityOf(key))).record;

describe("an execution with a name", () => {
  onEveryStore((given) => {
    test("CL-16: that was suspended goes on under its key, and another one does not", async () => {
      const { store, other } = given();
      const { engine } = engineOn(store);
      const elsewhere = engineOn(other);
      let runs = 0;
      const suspended = engine.run(order("suspended", "exec-1"), () => {
        runs += 1;
        throw new Suspended();
      });
      await expect(suspended).rejects.toThrow(Suspended);
      await expect(engine.run(order("suspended", "exec-2"), () => ++runs)).rejects.toMatchObject({
        code: "outcome_unknown",
      });
      let goOn = () => {};
      const gate = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      const resumed = elsewhere.engine.run(order("suspended", "exec-1"), async () => {
        runs += 1;
        await gate;
        return "done";
      });
      await until(() => runs === 2);
      for (const execution of ["exec-2", undefined])
        await expect(engine.run(order("suspended", execution), () => ++runs)).rejects.toMatchObject({
          code: "in_progress",
        });
      goOn();
      expect(await resumed).toBe("done");
      for (const execution of ["exec-1", "exec-2", undefined])
        expect(await engine.run(order("suspended", execution), () => ++runs)).toBe("done");
      expect(runs).toBe(2);
    });

    test("takes over from its own attempt that still runs, which then changes nothing", async () => {
      const { store } = given();
      const { engine, events } = engineOn(store);
      let goOn = () => {};
      const gate = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      let began = false;
      const first = engine.attemptRun(order("twice", "exec-1"), async () => {
        began = true;
        await gate;
        return "first";
      });
      await until(() => began);
      const before = await standing(store, "twice");
      expect(await engine.run(order("twice", "exec-1"), () => "second")).toBe("second");
      goOn();
      expect(await first).toEqual({ kind: "replayed", value: "second" });
      const after = await standing(store, "twice");
      expect(after?.attempt).toBeGreaterThan(before?.attempt ?? Number.POSITIVE_INFINITY);
      expect(ofType(events, "lease_lost")).toHaveLength(1);
    });

    test("is not taken for one whose name it was given under an earlier claim", async () => {
      const { store } = given();
      const { engine } = engineOn(store);
      const key = "passed on";
      const failing = () => {
        throw new Suspended();
      };
      await expect(engine.run(order(key, "exec-1"), failing)).rejects.toThrow(Suspended);
      const rerun = { ...order(key), onAmbiguous: "rerun" } as const;
      await expect(engine.run(rerun, failing)).rejects.toThrow(Suspended);
      await expect(engine.run(order(key, "exec-1"), () => "again")).rejects.toMatchObject({
        code: "outcome_unknown",
      });
    });

    test("with another input is refused as any other call is", async () => {
      const { engine } = engineOn(given().store);
      const key = "another input";
      const failing = () => {
        throw new Suspended();
      };
      await expect(engine.run(order(key, "exec-1"), failing)).rejects.toThrow(Suspended);
      const changed = { ...order(key, "exec-1"), input: 2 };
      await expect(engine.run(changed, () => "no")).rejects.toMatchObject({ code: "key_reused" });
    });

    test("skips its finished steps, calls an open one again only where its provider knows the key", async () => {
      const { store } = given();
      const { engine } = engineOn(store);
      const till = openTill();
      const named = checkout("steps", { execution: "exec-1" });
      let mails = 0;
      const work = (fails: boolean) =>
        ran(engine, named, async ({ effect }) => {
          await effect("charge", REPEATABLE, till.charge);
          if (fails) throw new Suspended();
          return await effect("mail", BLIND, async () => ++mails);
        });
      await work(true);
      expect(await work(false)).toMatchObject({ kind: "first", value: 1 });
      expect(till.asked).toHaveLength(1);
      const open = checkout("open step", { execution: "exec-1" });
      const dies = () =>
        ran(engine, open, ({ effect }) =>
          effect("mail", BLIND, () => {
            mails += 1;
            throw new Suspended();
          }),
        );
      await dies();
      expect(await dies()).toMatchObject({ kind: "outcome_unknown" });
      expect(mails).toBe(2);
    });
  });

  test.each([
    ["no text", 7],
    ["an empty text", ""],
    ["a blank", " "],
    ["a text with NUL", "a\0b"],
  ])("is refused for %s, and nothing runs", async (_what, execution) => {
    const { memoryStore } = await import("../../src/stores/memory.ts");
    const { engine } = engineOn(memoryStore());
    let runs = 0;
    const wrong = Object.assign(order("wrong"), { execution: JSON.parse(JSON.stringify(execution)) });
    await expect(engine.attemptRun(wrong, () => ++runs)).rejects.toMatchObject({ field: "execution" });
    expect(runs).toBe(0);
  });
});
