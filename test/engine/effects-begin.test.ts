import { describe, expect, test } from "vitest";
import { concludeEnding } from "../../src/core/ending.ts";
import { createEffectsBegin } from "../../src/engine/beginning.ts";
import { createGate } from "../../src/engine/gate.ts";
import { sweep } from "../../src/worker/tick.ts";
import { faultyStore } from "../support/faulty-store.ts";
import {
  answerOf,
  engineOn,
  lapsed,
  ofType,
  proceeded,
  requestFor,
  SHORT,
  standing,
  stoppedRuntime,
} from "./engines.ts";
import { type Opened, onEveryStore } from "./stores.ts";

describe("a handler that says when its effects begin", () => {
  onEveryStore((given) => {
    deaths(given);
    writes(given);
  });
});

describe("what the programmer says of an outcome that nobody knows", () => {
  onEveryStore(overrides);
});

/** An attempt of a process that stands still, and its way to begin. */
async function begun({ store }: Opened, key: string) {
  const request = requestFor(key, { effectsBegin: true });
  const { engine } = engineOn(store, { ...SHORT, runtime: stoppedRuntime() });
  const attempt = proceeded(await engine.begin(request));
  const begin = createEffectsBegin(engine.context, attempt, createGate(engine.context, attempt));
  return { request, begin, attempt };
}

function deaths(given: () => Opened): void {
  test("and died before is released, by a duplicate and by the sweeper", async () => {
    const { store } = given();
    const one = await begun(given(), "before, duplicate");
    await lapsed(store, one.request);
    const { engine } = engineOn(store, { sweepGrace: 1 });
    const corrected = requestFor("before, duplicate", { body: "corrected" });
    expect((await engine.begin(corrected)).kind).toBe("mismatch"); // nobody has judged it yet
    expect((await engine.begin(one.request)).kind).toBe("proceed");
    const other = await begun(given(), "before, swept");
    await lapsed(store, other.request);
    await sweep(engine);
    expect(await standing(store, other.request)).toMatchObject({ state: "released" });
    expect((await engine.begin(requestFor("before, swept", { body: "corrected" }))).kind).toBe("proceed");
  });

  test("and died after is in doubt, and held", async () => {
    const { store } = given();
    const { request, begin } = await begun(given(), "after");
    await begin();
    await lapsed(store, request);
    expect(await engineOn(store).engine.begin(request)).toMatchObject({ kind: "outcome_unknown" });
    expect(await standing(store, request)).toMatchObject({ state: "unknown", disposition: "hold" });
  });

  test("says so of its own attempt only: the next one, which says nothing, is in doubt when it dies", async () => {
    const { store } = given();
    const { request, attempt } = await begun(given(), "silent successor");
    await attempt.release();
    const { effectsBegin: _said, ...silent } = request;
    const { engine } = engineOn(store, { ...SHORT, runtime: stoppedRuntime() });
    const second = proceeded(await engine.begin(silent));
    expect(concludeEnding(second.record(), { kind: "threw" })).toMatchObject({ kind: "doubt" });
    await lapsed(store, silent);
    expect(await engineOn(store).engine.begin(silent)).toMatchObject({ kind: "outcome_unknown" });
  });

  test("has not begun in its next attempt only because an earlier one had", async () => {
    const { store } = given();
    const { request, begin, attempt } = await begun(given(), "again");
    await begin();
    await attempt.release();
    const { engine } = engineOn(store);
    const second = proceeded(await engine.begin(request));
    expect(concludeEnding(second.record(), { kind: "threw" })).toEqual({ kind: "release" });
    await second.release();
  });
}

function writes(given: () => Opened): void {
  test("may not go on where its beginning cannot be kept, or its key is lost", async () => {
    const faulty = faultyStore(given().store);
    const { engine } = engineOn(faulty.store, { storeTimeout: "2s" });
    const request = requestFor("unkept", { effectsBegin: true });
    const attempt = proceeded(await engine.begin(request));
    const begin = createEffectsBegin(engine.context, attempt, createGate(engine.context, attempt));
    faulty.plan("replace", "every", "not_applied");
    await expect(begin()).rejects.toMatchObject({ code: "store_unavailable" });
    faulty.heal();
    expect(concludeEnding(attempt.record(), { kind: "threw" })).toEqual({ kind: "release" });
    await begin();
    expect(concludeEnding(attempt.record(), { kind: "threw" })).toMatchObject({ kind: "doubt" });
    await attempt.release();
    const lost = await begun(given(), "lost");
    await lapsed(given().store, lost.request);
    proceeded(await engine.begin(lost.request));
    await expect(lost.begin()).rejects.toMatchObject({ code: "lease_lost" });
  });
}

function overrides(given: () => Opened): void {
  test("to run it again is told to the listeners and stands in the audit", async () => {
    const { store } = given();
    const { engine, events } = engineOn(store);
    const request = requestFor("rerun", { onAmbiguous: "rerun" });
    const first = proceeded(await engine.begin(request));
    await first.doubt({ evidence: { reason: "?", result: null }, disposition: "hold", nextLookAt: null });
    const second = proceeded(await engine.begin(request));
    expect(ofType(events, "ambiguity_overridden")).toMatchObject([
      { policy: "rerun", attempt: second.number },
    ]);
    expect(await store.audits(request.identity)).toMatchObject([
      { actor: "policy", action: "rerun_after_ambiguous", before: "unknown", after: "in_progress" },
    ]);
    await second.complete(answerOf("made"));
  });

  test("is no override where the claim needed none", async () => {
    const { store } = given();
    const { engine, events } = engineOn(store);
    const request = requestFor("plain", { onAmbiguous: "rerun" });
    await proceeded(await engine.begin(request)).release();
    await proceeded(await engine.begin(request)).complete(answerOf("made"));
    expect(ofType(events, "ambiguity_overridden")).toEqual([]);
    expect(await store.audits(request.identity)).toEqual([]);
  });
}
