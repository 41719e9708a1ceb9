import { describe, expect, test } from "vitest";
import { NotRun } from "../../src/engine/not-run.ts";
import type { RunRequest } from "../../src/engine/run.ts";
import { NotPerformed, OutcomeUnknown, PermanentFailure } from "../../src/errors.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { faultyStore } from "../support/faulty-store.ts";
import { until } from "../support/processes.ts";
import { engineOn, ofType, requestFor } from "./engines.ts";
import { type Opened, onEveryStore } from "./stores.ts";
import { virtualTime } from "./virtual-time.ts";

const called = (key: string, rest: Partial<RunRequest> = {}): RunRequest => ({
  operation: "send invoice",
  principal: "alice",
  key,
  ...rest,
});

describe("a function that runs once", () => {
  onEveryStore((given) => {
    values(given);
    failures(given);
    identities(given);
  });
});

function values(given: () => Opened): void {
  const kinds: readonly unknown[] = [
    ...[undefined, null, 0, -0, Number.NaN, 12n, "", "é\ud800", true],
    ...[
      new Date(0),
      new Uint8Array([0, 255]),
      new Map([["a", new Set([1])]]),
      { a: [undefined, { b: null }] },
    ],
  ];
  test("hands back an equal value of every kind, the first time and at every replay", async () => {
    const { store, other } = given();
    const [engine, another] = [engineOn(store).engine, engineOn(other).engine];
    for (const [index, value] of kinds.entries()) {
      let runs = 0;
      const work = () => {
        runs += 1;
        return value;
      };
      const request = called(`value ${index}`);
      expect(await engine.attemptRun(request, work)).toEqual({ kind: "first", value });
      expect(await engine.attemptRun(request, work)).toEqual({ kind: "replayed", value });
      expect(await another.run(request, work)).toEqual(value);
      expect([index, runs]).toEqual([index, 1]);
    }
  });

  test("hands back a value of the caller's own: what he does to it reaches no replay", async () => {
    const { engine } = engineOn(given().store);
    const first = await engine.run(called("own"), () => ({ list: [1] }));
    first.list.push(2);
    expect(await engine.run(called("own"), () => ({ list: [] }))).toEqual({ list: [1] });
  });

  test("whose value cannot be kept has run, says so, and does not run again", async () => {
    const { engine } = engineOn(given().store);
    let runs = 0;
    const work = () => {
      runs += 1;
      return () => {};
    };
    await expect(engine.run(called("function"), work)).rejects.toMatchObject({ code: "value_unsupported" });
    await expect(engine.run(called("function"), work)).rejects.toMatchObject({ code: "response_not_stored" });
    expect(runs).toBe(1);
  });
}

function failures(given: () => Opened): void {
  /** What a second call is told, after the first threw. */
  async function afterThrow(key: string, error: unknown) {
    const { engine } = engineOn(given().store);
    const first = engine.run(called(key), () => Promise.reject(error));
    await expect(first).rejects.toSatisfy((thrown) => thrown === error || thrown instanceof PermanentFailure);
    return await engine.attemptRun(called(key), () => "second");
  }

  test("and said that nothing was done runs again", async () => {
    expect(await afterThrow("not performed", new NotPerformed("The mail server refused."))).toEqual({
      kind: "first",
      value: "second",
    });
  });

  test("and was refused for good is refused alike for ever, with an equal answer", async () => {
    const answer = { reason: "no such customer", at: new Date(5) };
    const refused = { kind: "refused", failure: answer, replayed: true };
    expect(await afterThrow("refused", new PermanentFailure(answer))).toEqual(refused);
    const { engine } = engineOn(given().store);
    const again = engine.run(called("refused"), () => "third");
    await expect(again).rejects.toBeInstanceOf(PermanentFailure);
    await expect(again).rejects.toMatchObject({ answer });
  });

  test.each([
    ["said that nobody knows", new OutcomeUnknown("The line went dead.")],
    ["threw what says nothing", new TypeError("a bug")],
    ["threw nothing at all", undefined],
  ])("and %s is held as unknown, and does not run again", async (what, error) => {
    const second = await afterThrow(`unknown, ${what}`, error);
    expect(second).toMatchObject({
      kind: "outcome_unknown",
      retryAfterMs: null,
      record: { disposition: "hold" },
    });
  });

  test("whose refusal cannot be kept is refused all the same, and its key is not left to die", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const unkeepable = new PermanentFailure({ callback: () => {} });
    await expect(engine.run(called("odd refusal"), () => Promise.reject(unkeepable))).rejects.toThrow();
    expect(engine.context.running.size).toBe(0);
    const again = await engine.attemptRun(called("odd refusal"), () => "second");
    expect(again.kind).toBe("response_not_stored");
  });

  test("with another input is refused, in whatever order the members of the first one stood", async () => {
    const { engine } = engineOn(given().store);
    const run = (input: unknown) => engine.attemptRun(called("input", { input }), () => "value");
    expect(await run({ a: 1, b: [1, 2] })).toMatchObject({ kind: "first" });
    expect(await run({ b: [1, 2], a: 1 })).toMatchObject({ kind: "replayed" });
    expect(await run({ a: 1, b: [2, 1] })).toMatchObject({ kind: "mismatch" });
    expect(await run(undefined)).toMatchObject({ kind: "mismatch" });
    const request = called("input", { input: "another" });
    await expect(engine.run(request, () => 1)).rejects.toMatchObject({ name: "NotRun", code: "key_reused" });
  });

  test("is not run beside itself: the second caller is told when to ask again", async () => {
    const { store, other } = given();
    let letGo = () => {};
    const gate = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const first = engineOn(store).engine.run(called("beside"), () => gate);
    const { engine } = engineOn(other);
    await until(async () => (await other.read({ kind: "run", ...called("beside") })).record !== null);
    const second = engine.run(called("beside"), () => "second");
    await expect(second).rejects.toBeInstanceOf(NotRun);
    await expect(second).rejects.toMatchObject({ code: "in_progress", retryAfterMs: 1000 });
    letGo();
    await first;
    expect(await engine.attemptRun(called("beside"), () => gate)).toMatchObject({ kind: "replayed" });
  });
}

function identities(given: () => Opened): void {
  test("shares nothing with an HTTP key of the same words, nor with another operation", async () => {
    const { engine } = engineOn(given().store);
    const http = await engine.begin(requestFor("order 7", { operation: "send invoice" }));
    expect(http.kind).toBe("proceed");
    expect(await engine.run(called("order 7"), () => 1)).toBe(1);
    expect(await engine.run(called("order 7", { operation: "ship" }), () => 2)).toBe(2);
    expect(await engine.run(called("order 7", { principal: "bob" }), () => 3)).toBe(3);
    expect(await engine.run(called("order 7"), () => 4)).toBe(1);
  });
}

describe("a call that cannot be kept apart", () => {
  const long = "x".repeat(2000);
  const wrong: readonly (readonly [string, Partial<RunRequest>, string])[] = [
    ["an empty key", { key: "" }, "key_missing"],
    ["a blank key", { key: " \t" }, "key_invalid"],
    ["a key with NUL", { key: "a\0b" }, "key_invalid"],
    ["a damaged key", { key: "a\ud800" }, "key_invalid"],
    ["a key that is too long", { key: long }, "key_invalid"],
    ["no principal", { principal: "" }, "principal_unresolved"],
    ["a blank principal", { principal: "  " }, "principal_unresolved"],
    ["a principal that is too long", { principal: long }, "principal_unresolved"],
    ["no operation", { operation: "" }, "configuration"],
    ["an input that cannot be compared", { input: () => {} }, "value_unsupported"],
    ["a time that is none", { maxRunTime: "soon" }, "configuration"],
  ];
  test.each(wrong)(
    "with %s is refused before the store is asked, and nothing runs",
    async (_what, rest, code) => {
      const { store, calls } = faultyStore(memoryStore());
      const { engine, events } = engineOn(store);
      let runs = 0;
      await expect(engine.attemptRun(called("key", rest), () => runs++)).rejects.toMatchObject({ code });
      expect([runs, calls("insert"), calls("read"), events]).toEqual([0, 0, 0, []]);
    },
  );

  test.each(["key", "principal"] as const)("with a %s that is no text is refused alike", async (field) => {
    const { store, calls } = faultyStore(memoryStore());
    for (const value of [undefined, null, 7, {}]) {
      const request: RunRequest = JSON.parse(JSON.stringify({ ...called("key"), [field]: value }));
      await expect(engineOn(store).engine.run(request, () => 1)).rejects.toMatchObject({
        code: field === "key" ? "key_missing" : "principal_unresolved",
      });
    }
    expect(calls("insert")).toBe(0);
  });
});

describe("a function that does not end in time", () => {
  test("is given up, held as unknown, and told by its signal", async () => {
    const time = virtualTime();
    const { engine } = engineOn(memoryStore({ now: time.now }), { runtime: time.runtime });
    let signal: AbortSignal | undefined;
    const run = engine.run(called("endless"), (attempt) => {
      signal = attempt.signal;
      return new Promise(() => {});
    });
    await expect(time.until(run)).rejects.toBeInstanceOf(OutcomeUnknown);
    expect(time.elapsedMs()).toBe(60_000);
    expect(signal?.aborted).toBe(true);
    const again = await time.until(engine.attemptRun(called("endless"), () => 1));
    expect(again).toMatchObject({ kind: "outcome_unknown" });
  });

  test("whose outcome the store does not take is unsettled, and replayed once it has", async () => {
    const time = virtualTime();
    const faulty = faultyStore(memoryStore({ now: time.now }));
    const { engine, events } = engineOn(faulty.store, { runtime: time.runtime });
    faulty.plan("replace", "every", "not_applied");
    const ran = await time.until(engine.attemptRun(called("unsettled"), () => "value"));
    expect(ran).toEqual({ kind: "unsettled", record: null });
    faulty.heal();
    await time.pass(2_000);
    const again = await time.until(engine.attemptRun(called("unsettled"), () => "second"));
    expect(again).toEqual({ kind: "replayed", value: "value" });
    expect(ofType(events, "failure")).toEqual([]);
  });
});
