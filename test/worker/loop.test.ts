import { describe, expect, test } from "vitest";
import { type Going, repeat } from "../../src/worker/loop.ts";
import { virtualTime } from "../engine/virtual-time.ts";

const INTERVAL_MS = 1_000;

/** A loop whose ticks take a while, in a time of the test's own; `random` is what chance says. */
function looping({ takesMs = 100, random = 0.5 } = {}) {
  const time = virtualTime();
  const begun: number[] = [];
  const told: unknown[] = [];
  const state = { running: 0, most: 0, ended: 0, more: false, fails: false };
  const tick = async (going: Going) => {
    begun.push(time.elapsedMs());
    state.running += 1;
    state.most = Math.max(state.most, state.running);
    const timer = time.runtime.timer(takesMs);
    let giveUp = () => {};
    const given = new Promise<void>((resolve) => {
      giveUp = resolve;
      going.signal.addEventListener("abort", giveUp, { once: true });
    });
    await Promise.race([timer.expired, given]);
    going.signal.removeEventListener("abort", giveUp);
    timer.cancel();
    state.running -= 1;
    state.ended += 1;
    if (state.fails) throw new Error("The store is away.");
    return { more: state.more };
  };
  const runtime = { ...time.runtime, random: () => random };
  const onFailure = (error: unknown) => told.push(error);
  return { time, begun, told, state, loop: repeat({ runtime, intervalMs: INTERVAL_MS, tick, onFailure }) };
}

const apart = (times: readonly number[]) => times.slice(1).map((time, n) => time - (times[n] ?? 0));

describe("a loop", () => {
  test("ticks at once, and again an interval after the end of each tick, never twice at a time", async () => {
    const { time, begun, state, loop } = looping({ takesMs: 2_500 });
    await time.pass(11_000);
    expect(begun).toEqual([0, 3_500, 7_000, 10_500]);
    expect(state.most).toBe(1);
    await time.until(loop.stop(5_000));
  });

  test.each([
    [0, 800],
    [1, 1_200],
  ])("drifts apart from others: chance %s waits %s ms", async (random, waits) => {
    const { time, begun, loop } = looping({ takesMs: 1, random });
    await time.pass(5_000);
    expect(new Set(apart(begun))).toEqual(new Set([waits + 1]));
    await time.until(loop.stop(5_000));
  });

  test("goes on at once where a tick left work", async () => {
    const { time, begun, state, loop } = looping();
    state.more = true;
    await time.pass(1_000);
    expect(begun.length).toBeGreaterThan(5);
    await time.until(loop.stop(5_000));
  });

  test("backs off while its ticks fail, tells each failure, and is back in its rhythm once one succeeds", async () => {
    const { time, begun, told, state, loop } = looping({ takesMs: 1 });
    state.fails = true;
    await time.pass(300_000);
    const waits = apart(begun);
    expect(waits.slice(0, 7)).toEqual([2_001, 4_001, 8_001, 16_001, 32_001, 60_001, 60_001]);
    expect(told).toHaveLength(begun.length);
    state.fails = false;
    await time.pass(70_000);
    expect(apart(begun).at(-1)).toBe(1_001);
    await time.until(loop.stop(5_000));
  });

  test("stops when the tick that runs has ended, and begins no other", async () => {
    const { time, begun, state, loop } = looping({ takesMs: 3_000 });
    await time.pass(1_000);
    await time.until(loop.stop(10_000));
    expect([time.elapsedMs(), state.ended]).toEqual([3_000, 1]);
    await time.pass(60_000);
    expect(begun).toHaveLength(1);
  });

  test("stops at once between two ticks", async () => {
    const { time, begun, loop } = looping();
    await time.pass(500);
    await time.until(loop.stop(10_000));
    expect(time.elapsedMs()).toBe(500);
    await time.pass(60_000);
    expect(begun).toHaveLength(1);
  });

  test("gives up what a tick still calls when the stop's time is up", async () => {
    const { time, state, loop } = looping({ takesMs: 1_000_000 });
    await time.pass(1_000);
    await time.until(loop.stop(2_000));
    expect([time.elapsedMs(), state.ended]).toEqual([3_000, 1]);
  });
});
