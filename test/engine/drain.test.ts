import { describe, expect, test } from "vitest";
import { memoryStore } from "../../src/stores/memory.ts";
import { faultyStore } from "../support/faulty-store.ts";
import { answerOf, engineOn, proceeded, requestFor, standing } from "./engines.ts";
import { virtualTime } from "./virtual-time.ts";

function inVirtualTime() {
  const time = virtualTime();
  const faulty = faultyStore(memoryStore({ now: time.now }), { sleep: time.runtime.sleep });
  return { time, faulty, store: faulty.store, ...engineOn(faulty.store, { runtime: time.runtime }) };
}

describe("an engine that closes", () => {
  test("refuses new work at once, without asking the store", async () => {
    const { time, faulty, engine } = inVirtualTime();
    await time.until(engine.close());
    expect(await engine.begin(requestFor("new"))).toEqual({ kind: "draining" });
    const run = engine.run({ operation: "o", principal: "p", key: "k" }, () => 1);
    await expect(run).rejects.toMatchObject({ code: "draining" });
    expect(faulty.calls("insert")).toBe(0);
  });

  test("closes at once when nothing runs", async () => {
    const { time, engine } = inVirtualTime();
    await time.until(engine.close());
    expect(time.elapsedMs()).toBe(0);
  });

  test("lets running work end, and keeps what it ends with", async () => {
    const { time, store, engine } = inVirtualTime();
    const request = requestFor("running");
    const attempt = proceeded(await time.until(engine.begin(request)));
    const closing = engine.close({ drain: "5s" });
    await time.pass(4_000);
    expect(await time.until(attempt.complete(answerOf("done")))).toMatchObject({ kind: "kept" });
    await time.until(closing);
    expect(time.elapsedMs()).toBeLessThan(4_100);
    expect(await standing(store, request)).toMatchObject({ state: "completed" });
  });

  test("judges what still runs at the drain's end by what it may have done, and tells it by its signal", async () => {
    const { time, store, engine } = inVirtualTime();
    const judged = [
      ["none", "unknown"],
      ["declared", "released"],
      ["transaction", "released"],
    ] as const;
    const attempts = [];
    for (const [effects] of judged)
      attempts.push(proceeded(await time.until(engine.begin(requestFor(effects, { effects })))));
    await time.until(engine.close({ drain: "5s" }));
    expect(time.elapsedMs()).toBe(5_000);
    for (const [effects, state] of judged)
      expect([effects, await standing(store, requestFor(effects))]).toMatchObject([effects, { state }]);
    for (const { signal } of attempts) expect(signal.aborted).toBe(true);
    expect(engine.context.running.size).toBe(0);
  });

  test("keeps what work brings after it was judged, as long as nobody took it over", async () => {
    const { time, engine } = inVirtualTime();
    const request = { operation: "o", principal: "p", key: "k" };
    const attempt = proceeded(await time.until(engine.begin(requestFor("late"))));
    await time.until(engine.close({ drain: 10 }));
    expect(await time.until(attempt.complete(answerOf("late")))).toMatchObject({
      kind: "kept",
      record: { state: "completed" },
    });
    expect((await engine.attemptRun(request, () => 1)).kind).toBe("draining");
  });

  test("waits for outcomes that are being kept, and does not fail when the store takes none", async () => {
    const { time, faulty, store, engine } = inVirtualTime();
    const request = requestFor("being kept");
    const attempt = proceeded(await time.until(engine.begin(request)));
    faulty.plan("replace", "every", "not_applied");
    const completing = attempt.complete(answerOf("done"));
    await time.until(engine.close({ drain: "1s" }));
    expect(await time.until(completing)).toEqual({ kind: "unkept" });
    faulty.heal();
    await time.pass(2_000);
    expect(await standing(store, request)).toMatchObject({ state: "completed" });
  });

  test("starts no work whose claim was on its way: nothing runs once it is closed", async () => {
    const { time, faulty, store, engine } = inVirtualTime();
    const request = requestFor("on its way", { effects: "transaction" });
    faulty.plan("insert", 1, { kind: "slow", ms: 1_000 });
    const beginning = engine.begin(request);
    await time.pass(100);
    await time.until(engine.close({ drain: "5s" }));
    const atClose = (await store.read(request.identity)).record?.state;
    const begun = await time.until(beginning);
    expect(begun.kind).toBe("draining");
    expect(atClose).not.toBe("in_progress");
    expect((await store.read(request.identity)).record?.state).not.toBe("in_progress");
  });

  test("refuses a drain that is no time, and stays open", async () => {
    const { time, engine } = inVirtualTime();
    await expect(engine.close({ drain: "soon" })).rejects.toMatchObject({ code: "configuration" });
    expect((await time.until(engine.begin(requestFor("open still")))).kind).toBe("proceed");
  });
});
