import { describe, expect, test } from "vitest";
import { memoryStore } from "../../src/stores/memory.ts";
import { reconcile, sweep } from "../../src/worker/tick.ts";
import { answerOf, engineOn, proceeded, requestFor, SHORT, standing, stoppedRuntime } from "./engines.ts";

/** A process that stood still and lost its key, and one that swept it meanwhile; only the store's clock moves. */
function twoProcesses() {
  let now = 1_800_000_000_000;
  const store = memoryStore({ now: () => now });
  const settings = { ...SHORT, sweepGrace: 1, runtime: stoppedRuntime() };
  const [stood, other] = [engineOn(store, settings).engine, engineOn(store, settings).engine];
  const sweeps = async () => {
    now += 1_000;
    await sweep(other);
    await reconcile(other);
  };
  return { store, stood, other, sweeps };
}

describe("an attempt that lost a released key to a corrected request", () => {
  test.each(["complete", "fail", "release"] as const)(
    "and ends by %s is told that the key was reused, and never the other's answer",
    async (ending) => {
      const { store, stood, other, sweeps } = twoProcesses();
      const first = requestFor("corrected", { effects: "declared", body: "as it was" });
      const attempt = proceeded(await stood.begin(first));
      await sweeps();
      const corrected = requestFor("corrected", { effects: "declared", body: "as it is meant" });
      await proceeded(await other.begin(corrected)).complete(answerOf("for the corrected one"));
      const ended = await (ending === "release" ? attempt.release() : attempt[ending](answerOf("late")));
      const record = await standing(store, first);
      expect(ended).toEqual({ kind: "answered", answered: { kind: "mismatch", record } });
    },
  );

  test("hears from `run` what any other copy with its input hears", async () => {
    const { stood, other, sweeps } = twoProcesses();
    const call = { operation: "pay", principal: "alice", key: "k", effects: "declared" } as const;
    const ran = stood.attemptRun({ ...call, input: "as it was" }, async () => {
      await sweeps();
      await other.run({ ...call, input: "as it is meant" }, () => "for the corrected one");
      return "late";
    });
    expect(await ran).toMatchObject({ kind: "mismatch" });
  });

  test("hears the kept answer where the other asked for the same", async () => {
    const { stood, other, sweeps } = twoProcesses();
    const call = {
      operation: "pay",
      principal: "alice",
      key: "k",
      input: "one",
      effects: "declared",
    } as const;
    const ran = stood.attemptRun(call, async () => {
      await sweeps();
      await other.run(call, () => "of the next attempt");
      return "late";
    });
    expect(await ran).toEqual({ kind: "replayed", value: "of the next attempt" });
  });
});
