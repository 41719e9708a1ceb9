import { describe, expect, test } from "vitest";
import { createAborting } from "../../src/engine/aborting.ts";
import { LeaseLost, OutcomeUnknown } from "../../src/errors.ts";

const timeIsUp = new OutcomeUnknown("The work did not end in time.");
const keyIsLost = new LeaseLost("Another attempt has taken this key over.");

describe("what aborts an attempt", () => {
  test("is heard by a signal that was asked for before, and by one that is asked for afterwards", () => {
    const [early, late] = [createAborting(), createAborting()];
    const signal = early.signal();
    expect(signal.aborted).toBe(false);
    early.abort(timeIsUp);
    late.abort(timeIsUp);
    expect([signal.reason, late.signal().reason]).toEqual([timeIsUp, timeIsUp]);
  });

  test("is told once, with the first reason, to the signal and then to the listeners", () => {
    const aborting = createAborting();
    const heard: string[] = [];
    aborting.onAbort(() => heard.push("listener"));
    aborting.signal().addEventListener("abort", () => heard.push("signal"));
    aborting.abort(timeIsUp);
    aborting.abort(keyIsLost);
    expect(heard).toEqual(["signal", "listener"]);
    expect([aborting.reason(), aborting.signal().reason]).toEqual([timeIsUp, timeIsUp]);
  });

  test("is told to nobody who has stopped listening, and leaves the others", () => {
    const aborting = createAborting();
    const heard: string[] = [];
    const deaf = aborting.onAbort(() => heard.push("first"));
    aborting.onAbort(() => heard.push("second"));
    deaf();
    aborting.abort(timeIsUp);
    expect(heard).toEqual(["second"]);
  });

  test("is one signal, however often it is asked for", () => {
    const aborting = createAborting();
    expect(aborting.signal()).toBe(aborting.signal());
  });
});
