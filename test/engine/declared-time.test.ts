import { describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { DeclaredAttempt, DeclaredRequest } from "../../src/engine/run-declared.ts";
import { OncekeyError } from "../../src/errors.ts";
import type { Store } from "../../src/stores/store.ts";
import { faultyStore } from "../support/faulty-store.ts";
import { until } from "../support/processes.ts";
import { BLIND, becomes, checkedOut, checkout, openTill, REPEATABLE, ran, stepOf } from "./declared-calls.ts";
import { engineOn, ofType, SHORT, stoppedRuntime } from "./engines.ts";
import { type Opened, onEveryStore } from "./stores.ts";

describe("a declared effect, in time and under faults", () => {
  onEveryStore((given) => {
    limits(given);
    losses(given);
    faults(given);
  });
});

/** A call that settles when it is told to. */
function held() {
  let goOn = () => {};
  const until = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  return { until, goOn: () => goOn() };
}

/** A charge that is still on its way when its attempt is over, and what its handler hears in the end. */
async function leftBehind(engine: Engine, request: DeclaredRequest) {
  const { until: gate, goOn } = held();
  let heard: Promise<unknown> = Promise.resolve();
  await ran(engine, request, async ({ effect }) => {
    const charged = effect("charge", REPEATABLE, async () => {
      await gate;
      return "late";
    });
    heard = charged.catch((error) => error);
    return await charged;
  });
  return { request, goOn, heard };
}

function limits(given: () => Opened): void {
  test("that never settles is in doubt at the time limit", async () => {
    const { store } = given();
    const { engine } = engineOn(store, { requestTimeout: 100, lease: "30s" });
    const request = checkout("never");
    const left = await ran(engine, request, ({ effect }) =>
      effect("charge", BLIND, () => new Promise(() => {})),
    );
    expect(left).toMatchObject({ kind: "threw", error: { code: "outcome_unknown" } });
    expect(await checkedOut(store, request)).toMatchObject({ state: "unknown", disposition: "review" });
  });

  test("that settles too late is kept all the same, and the next attempt goes on from there", async () => {
    const { store } = given();
    const { engine, events } = engineOn(store, { requestTimeout: 100, lease: "30s" });
    const request = checkout("late");
    const { until: gate, goOn } = held();
    let calls = 0;
    const work = ({ effect }: DeclaredAttempt) =>
      effect("charge", BLIND, async () => {
        calls += 1;
        await gate;
        return calls;
      });
    await ran(engine, request, work);
    expect(await checkedOut(store, request)).toMatchObject({ state: "unknown" });
    goOn();
    await becomes(store, request, "released");
    expect(ofType(events, "transition")).toMatchObject([{ by: "attempt", from: "unknown", to: "released" }]);
    expect(await ran(engine, request, work)).toEqual({ kind: "first", value: 1 });
  });

  test("whose result can no longer be kept tells its handler so, however late it comes", async () => {
    const faulty = faultyStore(given().store);
    const { engine, events } = engineOn(faulty.store, {
      requestTimeout: 100,
      storeTimeout: 100,
      lease: "1s",
    });
    const overtaken = await leftBehind(engine, checkout("late, overtaken"));
    const next = await ran(engine, overtaken.request, ({ effect }) =>
      effect("charge", REPEATABLE, () => "next"),
    );
    expect(next).toEqual({ kind: "first", value: "next" });
    overtaken.goOn();
    expect(await overtaken.heard).toMatchObject({ code: "lease_lost" });
    const unheard = await leftBehind(engine, checkout("late, store away"));
    faulty.plan("replace", "every", "not_applied");
    unheard.goOn();
    expect(await unheard.heard).toMatchObject({ code: "store_unavailable" });
    faulty.heal();
    expect(ofType(events, "failure").at(-1)).toMatchObject({
      what: expect.stringMatching(/late result of charge/),
    });
    expect(await checkedOut(given().store, unheard.request)).toMatchObject({ state: "unknown" });
  });

  test("that fails to be sent too late proves as much: the record is released", async () => {
    const { store } = given();
    const { engine } = engineOn(store, { requestTimeout: 100, lease: "30s" });
    const request = checkout("late, unsent");
    const { until: gate, goOn } = held();
    await ran(engine, request, ({ effect }) =>
      effect("charge", BLIND, async () => {
        await gate;
        throw Object.assign(new Error(), { code: "ECONNREFUSED" });
      }),
    );
    goOn();
    await becomes(store, request, "released");
    expect(await stepOf(store, request)).toEqual({ state: "clear", generation: 0 });
  });

  test("is refused once the attempt's time is up, or the attempt has ended: nothing is called", async () => {
    const { store } = given();
    const { engine } = engineOn(store, { requestTimeout: 100, lease: "30s" });
    let calls = 0;
    const call = async () => ++calls;
    const codes: unknown[] = [];
    const refused = async (work: Promise<unknown>) => {
      codes.push(
        await work.then(
          () => "called",
          (error: unknown) => Reflect.get(Object(error), "code"),
        ),
      );
    };
    const request = checkout("too late");
    await ran(engine, request, async ({ effect, signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      await refused(effect("charge", BLIND, call));
    });
    await until(() => codes.length === 1);
    expect(await checkedOut(store, request)).toMatchObject({ state: "released" });
    let kept: DeclaredAttempt | undefined;
    await ran(engine, checkout("ended"), async (attempt) => {
      kept = attempt;
    });
    if (kept !== undefined) await refused(kept.effect("charge", BLIND, call));
    expect([codes, calls]).toEqual([["attempt_ended", "attempt_ended"], 0]);
    expect(await checkedOut(store, checkout("ended"))).toMatchObject({
      state: "completed",
      steps: new Map(),
    });
  });

  test("is called again only while its provider still knows the key, the attempt's whole time included", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const till = openTill();
    const step = { provider: "repeatable", keyTtl: 60_000 + 300 } as const;
    const request = checkout("forgotten");
    await ran(engine, request, ({ effect }) =>
      effect("charge", step, () => Promise.reject(new Error("reset"))),
    );
    const mark = await stepOf(store, request);
    expect(mark).toMatchObject({ state: "open", keyTtlMs: 300 });
    await until(async () => {
      const { now } = await store.read({
        kind: "run",
        principal: "alice",
        operation: "checkout",
        key: "forgotten",
      });
      return mark?.state === "open" && now > mark.openedAt + 300;
    });
    const again = await ran(engine, request, ({ effect }) => effect("charge", step, till.charge));
    expect(again).toMatchObject({ kind: "outcome_unknown" });
    expect(till.asked).toEqual([]);
  });
}

function losses(given: () => Opened): void {
  test("of an attempt that another has taken over is not called, and what it had called changes nothing", async () => {
    const { store, other } = given();
    const slow = engineOn(store, { ...SHORT, runtime: stoppedRuntime() });
    const request = checkout("taken over");
    const till = openTill();
    const { until: gate, goOn } = held();
    let calls = 0;
    const first = ran(slow.engine, request, async ({ effect }) => {
      await effect("charge", REPEATABLE, async (key) => {
        await till.charge(key);
        await gate;
        return { id: 99 };
      });
      return await effect("mail", BLIND, async () => ++calls);
    });
    await until(() => till.asked.length === 1);
    const { engine } = engineOn(other);
    await until(
      async () =>
        (await checkedOut(store, request)).state === "in_progress" && (await isLapsed(given(), "taken over")),
    );
    const second = await ran(engine, request, ({ effect }) => effect("charge", REPEATABLE, till.charge));
    expect(second).toEqual({ kind: "first", value: { id: 1 } });
    goOn();
    expect(await first).toMatchObject({ kind: "replayed", value: { id: 1 } });
    expect([calls, till.charges.size]).toEqual([0, 1]);
    expect(ofType(slow.events, "lease_lost")).toHaveLength(1);
  });

  test("under way when its process must stop is in doubt, and its late result is kept", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = checkout("drained");
    const { until: gate, goOn } = held();
    const left = ran(engine, request, ({ effect }) =>
      effect("charge", BLIND, async () => {
        await gate;
        return "made";
      }),
    );
    await until(async () => (await store.read(identityOf("drained"))).record?.steps.size === 1);
    await engine.close({ drain: 1 });
    expect(await left).toMatchObject({ kind: "threw", error: { code: "outcome_unknown" } });
    expect(await checkedOut(store, request)).toMatchObject({ state: "unknown" });
    goOn();
    await becomes(store, request, "released");
    expect(await stepOf(store, request)).toMatchObject({ state: "finished" });
  });
}

const identityOf = (key: string) =>
  ({ kind: "run", principal: "alice", operation: "checkout", key }) as const;

async function isLapsed({ store }: Opened, key: string): Promise<boolean> {
  const { record, now } = await store.read(identityOf(key));
  return record?.state === "in_progress" && record.leaseUntil < now;
}

function faults(given: () => Opened): void {
  test("whose mark cannot be written is not called", async () => {
    const faulty = faultyStore(given().store);
    const { engine } = engineOn(faulty.store, { storeTimeout: "2s" });
    const request = checkout("unmarked");
    let calls = 0;
    const left = await ran(engine, request, async ({ effect }) => {
      faulty.plan("replace", "every", "not_applied");
      try {
        return await effect("charge", BLIND, async () => ++calls);
      } finally {
        faulty.heal();
      }
    });
    expect(left).toMatchObject({ kind: "threw", error: { code: "store_unavailable" } });
    expect(calls).toBe(0);
    expect(await checkedOut(given().store, request)).toMatchObject({ state: "released", steps: new Map() });
  });

  test.each(["reply_lost", "not_applied"] as const)(
    "whose mark, and whose result, meet a write with %s is called once and kept once",
    async (fault) => {
      const faulty = faultyStore(given().store);
      const { engine } = engineOn(faulty.store);
      const request = checkout(`fault ${fault}`);
      let calls = 0;
      const left = await ran(engine, request, ({ effect }) => {
        faulty.plan("replace", 1, fault);
        return effect("charge", BLIND, async () => {
          faulty.plan("replace", 1, fault);
          return ++calls;
        });
      });
      expect(left).toEqual({ kind: "first", value: 1 });
      expect(await stepOf(given().store, request)).toMatchObject({ state: "finished" });
      expect(calls).toBe(1);
    },
  );

  test("whose result is too large for the store stays in doubt", async () => {
    const { store } = given();
    const replace: Store["replace"] = async (seen, write, patience) => {
      const large = [...write.steps.values()].some((step) => "result" in step && step.result.length > 1_000);
      if (large) throw new OncekeyError("record_too_large", "The record is too large (planned).");
      return await store.replace(seen, write, patience);
    };
    const { engine } = engineOn({ ...store, replace });
    const request = checkout("too large");
    const left = await ran(engine, request, ({ effect }) =>
      effect("charge", BLIND, async () => "x".repeat(1_001)),
    );
    expect(left).toMatchObject({ kind: "threw", error: { code: "record_too_large" } });
    expect(await checkedOut(store, request)).toMatchObject({ state: "unknown", disposition: "review" });
  });
}
