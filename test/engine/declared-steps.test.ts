import { describe, expect, test } from "vitest";
import { declareSteps } from "../../src/engine/declared.ts";
import type { StepDefinition } from "../../src/engine/step-definitions.ts";
import { reconcile } from "../../src/worker/tick.ts";
import { openBank } from "./bank.ts";
import { checkedOut, checkout, openTill, ran, stepOf } from "./declared-calls.ts";
import { engineOn } from "./engines.ts";
import { type Opened, onEveryStore } from "./stores.ts";

describe("a step whose provider can be asked", () => {
  onEveryStore((given) => {
    asked(given);
    unasked(given);
  });
});

const reset = () => Promise.reject(Object.assign(new Error("reset"), { code: "ECONNRESET" }));

/** An engine, in a process of its own as far as the store goes, that knows the checkout's step. */
function knowing({ store }: Pick<Opened, "store">, charge: StepDefinition, settings = {}) {
  const { engine, events } = engineOn(store, settings);
  declareSteps(engine, "checkout", { charge });
  return { engine, events };
}

function keyed(bank: ReturnType<typeof openBank>): StepDefinition {
  return {
    provider: "keyed",
    look: ({ attempt }) => bank.look(attempt.downstreamKey),
    cancel: ({ attempt }) => bank.cancel(attempt.downstreamKey),
  };
}

function asked(given: () => Opened): void {
  test("is found out by a worker of another process: the next attempt goes on with what was found", async () => {
    const bank = openBank();
    const request = checkout("found");
    const { engine } = knowing(given(), keyed(bank));
    bank.setMood("pays silently");
    const work = ({ effect }: Parameters<Parameters<typeof ran>[2]>[0]) => effect("charge", bank.pay);
    expect(await ran(engine, request, work)).toMatchObject({ kind: "threw" });
    expect(await checkedOut(given().store, request)).toMatchObject({
      state: "unknown",
      disposition: "reconcile",
    });
    expect(await ran(engine, request, work)).toMatchObject({ kind: "outcome_unknown" });
    const worker = knowing({ store: given().other }, keyed(bank));
    expect(await reconcile(worker.engine)).toMatchObject({ released: 1 });
    expect(worker.events).toContainEqual(
      expect.objectContaining({ type: "transition", by: "reconciler", from: "unknown", to: "released" }),
    );
    expect(await stepOf(given().store, request)).toMatchObject({ state: "finished" });
    expect(await ran(engine, request, work)).toEqual({ kind: "first", value: { kind: "paid", number: 1 } });
    expect(bank.asked).toHaveLength(1);
  });

  test("is cancelled where it is not found: the next attempt calls under the next key", async () => {
    const bank = openBank();
    const request = checkout("cancelled");
    const { engine } = knowing(given(), keyed(bank));
    bank.setMood("loses requests");
    const work = ({ effect }: Parameters<Parameters<typeof ran>[2]>[0]) => effect("charge", bank.pay);
    await ran(engine, request, work);
    expect(await reconcile(engine)).toMatchObject({ released: 1 });
    expect(await stepOf(given().store, request)).toEqual({ state: "clear", generation: 1 });
    bank.setMood("well");
    expect(await ran(engine, request, work)).toMatchObject({ kind: "first" });
    expect([new Set(bank.asked).size, bank.paid.size]).toEqual([2, 1]);
  });

  test("that its provider has declined throws the refusal in the next attempt", async () => {
    const request = checkout("refused");
    const look = async () => ({ kind: "refused" as const, failure: "card_declined" });
    const { engine } = knowing(given(), { provider: "query", validFor: "2m", look });
    const work = ({ effect }: Parameters<Parameters<typeof ran>[2]>[0]) => effect("charge", reset);
    await ran(engine, request, work);
    expect(await reconcile(engine)).toMatchObject({ released: 1 });
    expect(await ran(engine, request, work)).toMatchObject({ kind: "refused", failure: "card_declined" });
  });

  test("waits while its provider is out of reach, has not decided, or does not find it", async () => {
    const answers = ["not_found", "pending", "down"] as const;
    for (const answer of answers) {
      const request = checkout(`waits ${answer}`);
      const look = async () => {
        if (answer === "down") throw new Error("The bank is down.");
        return { kind: answer };
      };
      const { engine } = knowing(given(), { provider: "query", validFor: "2m", look });
      await ran(engine, request, ({ effect }) => effect("charge", reset));
      expect(await reconcile(engine)).toMatchObject(answer === "down" ? { unreachable: 1 } : { waiting: 1 });
      const looks = answer === "down" ? 0 : 1;
      expect(await checkedOut(given().store, request)).toMatchObject({ state: "unknown", looks });
    }
  });

  test("is given a horizon by the database's clock, the same that stands on its mark", async () => {
    const request = checkout("horizon");
    const look = async () => ({ kind: "pending" as const });
    const { engine } = knowing(given(), { provider: "query", validFor: "2m", look });
    let told: number | undefined;
    await ran(engine, request, ({ effect }) =>
      effect("charge", async (_key, { validUntil }) => {
        told = validUntil?.getTime();
        return "made";
      }),
    );
    const { claimedAt } = await checkedOut(given().store, request);
    expect(told).toBe(claimedAt + 120_000);
    expect(await stepOf(given().store, request)).toMatchObject({ validUntil: told });
  });
}

function unasked(given: () => Opened): void {
  test("is left alone by a worker that does not know it", async () => {
    const bank = openBank();
    const request = checkout("left alone");
    const { engine } = knowing(given(), keyed(bank));
    bank.setMood("loses requests");
    await ran(engine, request, ({ effect }) => effect("charge", bank.pay));
    const { engine: stranger } = engineOn(given().store);
    expect(await reconcile(stranger)).toMatchObject({ released: 0, passed: 0, reviewed: 0 });
    expect(bank.looks()).toBe(0);
  });

  test("or cannot, goes to a person once its provider has forgotten our key", async () => {
    const request = checkout("forgotten");
    const { engine } = engineOn(given().store);
    const till = openTill();
    const step = { provider: "repeatable", keyTtl: 60_001 } as const;
    await ran(engine, request, ({ effect }) =>
      effect("charge", step, async (key) => {
        await till.charge(key);
        throw new Error("reset");
      }),
    );
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await reconcile(engine)).toMatchObject({ reviewed: 1 });
    expect(await checkedOut(given().store, request)).toMatchObject({
      state: "unknown",
      disposition: "review",
    });
    expect(till.asked).toHaveLength(1);
  });

  test("is described once on an engine", () => {
    const { engine } = engineOn(given().store);
    declareSteps(engine, "twice", { charge: { provider: "blind" } });
    expect(() => declareSteps(engine, "twice", {})).toThrow(/taken already/);
  });
}
