import { describe, expect, test } from "vitest";
import { NotPerformed, OutcomeUnknown, PermanentFailure } from "../../src/errors.ts";
import { BLIND, becomes, checkedOut, checkout, openTill, REPEATABLE, ran, stepOf } from "./declared-calls.ts";
import { engineOn, ofType } from "./engines.ts";
import { type Opened, onEveryStore } from "./stores.ts";

describe("a declared effect", () => {
  onEveryStore((given) => {
    keeping(given);
    judging(given);
    refusing(given);
  });
});

const reset = () => Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });

function keeping(given: () => Opened): void {
  test("has an open mark before its call starts, and its result on record before the handler goes on", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = checkout("marks");
    const seen: unknown[] = [];
    const value = await engine.run(request, async ({ effect }) => {
      const made = await effect("charge", REPEATABLE, async (key, { number, signal, validUntil }) => {
        expect([typeof key, key.length, signal.aborted, validUntil]).toEqual(["string", 64, false, null]);
        expect(number).toBe((await checkedOut(store, request)).attempt);
        seen.push(await stepOf(store, request));
        return { id: 7n, at: new Date(0), nothing: undefined };
      });
      seen.push(await stepOf(store, request));
      return made;
    });
    expect(value).toEqual({ id: 7n, at: new Date(0), nothing: undefined });
    expect(seen).toMatchObject([
      { state: "open", provider: "repeatable", generation: 0, keyTtlMs: 86_400_000 - 60_000 },
      { state: "finished", provider: "repeatable" },
    ]);
    expect(await checkedOut(store, request)).toMatchObject({ state: "completed" });
  });

  test("TX-07 that has finished is not called again: the next attempt gets its kept result and goes on", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = checkout("resumed");
    const calls: string[] = [];
    const work =
      (failing: boolean) =>
      async ({ effect }: Parameters<Parameters<typeof ran>[2]>[0]) => {
        const charge = await effect("charge", BLIND, async () => {
          calls.push("charge");
          return { id: 1 };
        });
        if (failing) throw new Error("The order table is gone.");
        const order = await effect("order", BLIND, async () => {
          calls.push("order");
          return { of: charge.id };
        });
        return order.of;
      };
    expect(await ran(engine, request, work(true))).toMatchObject({ kind: "threw" });
    expect(await checkedOut(store, request)).toMatchObject({ state: "released" });
    const other = engineOn(given().other).engine;
    expect(await ran(other, checkout("resumed", { input: "another" }), work(false))).toMatchObject({
      kind: "mismatch",
    });
    expect(await ran(other, request, work(false))).toEqual({ kind: "first", value: 1 });
    expect(calls).toEqual(["charge", "order"]);
    expect(await ran(engine, request, work(false))).toEqual({ kind: "replayed", value: 1 });
  });

  test("of several at once each is marked and kept", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = checkout("parallel");
    const till = openTill();
    const names = Array.from({ length: 8 }, (_, n) => `ship:${n}`);
    const value = await engine.run(request, ({ effect }) =>
      Promise.all(names.map((name) => effect(name, REPEATABLE, till.charge))),
    );
    expect(value).toHaveLength(8);
    const { steps } = await checkedOut(store, request);
    expect(names.map((name) => steps.get(name)?.state)).toEqual(names.map(() => "finished"));
    expect(till.charges.size).toBe(8);
  });
}

function judging(given: () => Opened): void {
  test.each([
    ["a reset after sending", reset()],
    ["OutcomeUnknown", new OutcomeUnknown("idempotency_error")],
    ["a time-out after sending", Object.assign(new Error(), { code: "UND_ERR_HEADERS_TIMEOUT" })],
  ])(
    "that ends in %s is in doubt, and is called again with the same key where its provider knows it",
    async (_, error) => {
      const { store } = given();
      const { engine, events } = engineOn(store);
      const request = checkout(`doubt ${error.message}${String(Reflect.get(error, "code"))}`);
      const till = openTill();
      const first = await ran(engine, request, ({ effect }) =>
        effect("charge", REPEATABLE, async (key) => {
          await till.charge(key);
          throw error;
        }),
      );
      expect(first).toEqual({ kind: "threw", error });
      expect(await checkedOut(store, request)).toMatchObject({ state: "unknown", disposition: "reconcile" });
      expect(ofType(events, "failure")).toHaveLength(1);
      const again = await ran(engine, request, ({ effect }) => effect("charge", REPEATABLE, till.charge));
      expect(again).toMatchObject({ kind: "first", value: { id: 1 } });
      expect([till.asked.length, till.charges.size]).toEqual([2, 1]);
    },
  );

  test.each([
    [
      "a refused connection",
      Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } }),
    ],
    ["NotPerformed", new NotPerformed("The shop is closed.")],
  ])("that ends in %s was not made: another body may come with the same key", async (_, error) => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = checkout(error.message);
    const first = await ran(engine, request, ({ effect }) =>
      effect("charge", BLIND, () => Promise.reject(error)),
    );
    expect(first).toMatchObject({ kind: "threw", error: expect.any(NotPerformed) });
    expect(await checkedOut(store, request)).toMatchObject({ state: "released" });
    expect(await stepOf(store, request)).toEqual({ state: "clear", generation: 0 });
    const corrected = checkout(error.message, { input: "corrected" });
    const second = await ran(engine, corrected, ({ effect }) => effect("charge", BLIND, async () => "made"));
    expect(second).toEqual({ kind: "first", value: "made" });
  });

  test("that was refused to one body is called for again for a corrected one, under the next downstream key", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = checkout("corrected", { input: "bad card" });
    const keys: string[] = [];
    const first = await ran(engine, request, async ({ effect }) => {
      const declined = effect("charge", REPEATABLE, async (key) => {
        keys.push(key);
        throw new PermanentFailure("declined");
      });
      await declined.catch(() => {});
      throw new NotPerformed("another card may do");
    });
    expect(first).toMatchObject({ kind: "threw" });
    expect(await stepOf(store, request)).toMatchObject({ state: "refused", generation: 0 });
    const corrected = checkout("corrected", { input: "good card" });
    const second = await ran(engine, corrected, ({ effect }) =>
      effect("charge", REPEATABLE, async (key) => {
        keys.push(key);
        return "paid";
      }),
    );
    expect(second).toEqual({ kind: "first", value: "paid" });
    expect(new Set(keys).size).toBe(2);
    expect(await stepOf(store, corrected)).toMatchObject({ state: "finished", generation: 1 });
  });

  test("that its provider declined for good counts as none: the refusal is kept, and thrown again without a call", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = checkout("declined");
    let calls = 0;
    const decline = ({ effect }: Parameters<Parameters<typeof ran>[2]>[0]) =>
      effect("charge", BLIND, async () => {
        calls += 1;
        throw new PermanentFailure({ code: "card_declined" });
      });
    const caught = await ran(engine, request, async (attempt) => {
      await decline(attempt).catch(() => {});
      throw new Error("and then it died");
    });
    expect(caught).toMatchObject({ kind: "threw" });
    expect(await checkedOut(store, request)).toMatchObject({ state: "released" });
    expect(await stepOf(store, request)).toMatchObject({ state: "refused" });
    expect(await ran(engine, request, decline)).toEqual({
      kind: "refused",
      failure: { code: "card_declined" },
      replayed: false,
    });
    expect(await checkedOut(store, request)).toMatchObject({ state: "failed_permanent" });
    expect(calls).toBe(1);
  });

  test("that was made before a refusal makes the refusal a completed outcome, the same for every copy", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = checkout("refused after");
    const work = async ({ effect }: Parameters<Parameters<typeof ran>[2]>[0]) => {
      await effect("charge", BLIND, async () => "made");
      throw new PermanentFailure("out of stock");
    };
    expect(await ran(engine, request, work)).toEqual({
      kind: "refused",
      failure: "out of stock",
      replayed: false,
    });
    expect(await checkedOut(store, request)).toMatchObject({ state: "completed" });
    expect(await ran(engine, request, work)).toEqual({
      kind: "refused",
      failure: "out of stock",
      replayed: true,
    });
  });

  test("in doubt outweighs whatever the handler makes of it", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = checkout("swallowed");
    const work = async ({ effect }: Parameters<Parameters<typeof ran>[2]>[0]) => {
      await effect("mail", BLIND, () => Promise.reject(reset())).catch(() => {});
      return "all is well";
    };
    expect(await ran(engine, request, work)).toMatchObject({ kind: "outcome_unknown", retryAfterMs: null });
    expect(await checkedOut(store, request)).toMatchObject({ state: "unknown", disposition: "review" });
    await expect(engine.run(request, work)).rejects.toMatchObject({ code: "outcome_unknown" });
  });

  test("that nobody waited for is in doubt as well: its mark stands when its handler ends", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = checkout("floating");
    let goOn = () => {};
    const gate = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const left = await ran(engine, request, async ({ effect }) => {
      void effect("charge", REPEATABLE, async () => {
        await gate;
        return { id: 1 };
      });
      return "too early";
    });
    expect(left).toMatchObject({ kind: "outcome_unknown" });
    expect(await checkedOut(store, request)).toMatchObject({ state: "unknown" });
    goOn();
    await becomes(store, request, "released");
    expect(await stepOf(store, request)).toMatchObject({ state: "finished" });
  });

  test("whose provider cannot tell a second call from the first is not called twice in one attempt", async () => {
    const { engine } = engineOn(given().store);
    let calls = 0;
    const send = async () => {
      calls += 1;
      throw reset();
    };
    const left = await ran(engine, checkout("retried inside"), async ({ effect }) => {
      await effect("mail", BLIND, send).catch(() => {});
      await effect("mail", BLIND, send);
    });
    expect(left).toMatchObject({ kind: "threw", error: { code: "outcome_unknown" } });
    expect(calls).toBe(1);
  });

  test("whose provider knows our key may be called again in one attempt, under that key", async () => {
    const { engine } = engineOn(given().store);
    const till = openTill();
    let failing = true;
    const charge = async (key: string) => {
      const made = await till.charge(key);
      if (failing) {
        failing = false;
        throw reset();
      }
      return made;
    };
    const left = await ran(engine, checkout("retried inside, known"), async ({ effect }) => {
      await effect("charge", REPEATABLE, charge).catch(() => {});
      return await effect("charge", REPEATABLE, charge);
    });
    expect(left).toEqual({ kind: "first", value: { id: 1 } });
    expect([till.asked.length, till.charges.size]).toEqual([2, 1]);
  });

  test("that did nothing the second time is as much in doubt as after the first", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = checkout("second refused");
    await ran(engine, request, ({ effect }) => effect("charge", REPEATABLE, () => Promise.reject(reset())));
    await ran(engine, request, ({ effect }) =>
      effect("charge", REPEATABLE, () => Promise.reject(new NotPerformed("closed"))),
    );
    expect(await checkedOut(store, request)).toMatchObject({ state: "unknown" });
    expect(await stepOf(store, request)).toMatchObject({ state: "open" });
  });
}

function refusing(given: () => Opened): void {
  const never = () => {
    throw new Error("It was called.");
  };

  test("is called for once in an attempt: a second one of its name is refused, at once or later", async () => {
    const { engine } = engineOn(given().store);
    let calls = 0;
    const left = await ran(engine, checkout("twice"), async ({ effect }) => {
      const ship = () => effect("ship", BLIND, async () => ++calls);
      const atOnce = await Promise.allSettled([ship(), ship()]);
      const later = await Promise.allSettled([ship()]);
      return [...atOnce, ...later].map((each) =>
        each.status === "fulfilled" ? each.value : String(Reflect.get(each.reason, "code")),
      );
    });
    expect(left).toMatchObject({ kind: "first", value: [1, "step_repeated", "step_repeated"] });
    expect(calls).toBe(1);
  });

  test.each([
    ["that nobody has described", "step_unusable", ["charge", never]],
    ["with no call", "step_unusable", ["charge", BLIND]],
    ["with a name of ours", "configuration", ["oncekey:begin", BLIND, never]],
    ["with no name", "configuration", [" ", BLIND, never]],
    [
      "of a memory shorter than the attempt",
      "configuration",
      ["charge", { provider: "repeatable", keyTtl: "60s" }, never],
    ],
    ["of no kind", "configuration", ["charge", { provider: "magic" }, never]],
    ["that only a route can describe", "configuration", ["charge", { provider: "keyed" }, never]],
  ])("%s is refused, and nothing is called", async (what, code, asked) => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = checkout(`refused ${what}`);
    const left = await ran(engine, request, ({ effect }) => Reflect.apply(effect, null, asked));
    expect(left).toMatchObject({ kind: "threw", error: { code } });
    expect((await checkedOut(store, request)).steps.size).toBe(0);
  });

  test.each([
    ["a Response", () => new Response("made"), /read it first/],
    ["no plain data", () => ({ send: () => {} }), /plain data/],
  ])("that returned %s says so, and is in doubt", async (what, returned, message) => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = checkout(`returned ${what}`);
    const left = await ran(engine, request, ({ effect }) => effect("charge", BLIND, async () => returned()));
    expect(left).toMatchObject({
      kind: "threw",
      error: { code: "value_unsupported", message: expect.stringMatching(message) },
    });
    expect(await checkedOut(store, request)).toMatchObject({ state: "unknown", disposition: "review" });
  });

  test("is not there where nothing was declared", async () => {
    const { engine } = engineOn(given().store);
    const { effects: _effects, ...request } = checkout("undeclared");
    const left = engine.run(request, (attempt) => Reflect.get(attempt, "effect")("charge", BLIND, never));
    await expect(left).rejects.toMatchObject({ code: "configuration", field: "effects" });
  });
}
