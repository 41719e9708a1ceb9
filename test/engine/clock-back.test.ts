import { describe, expect, test } from "vitest";
import { BEGIN_STEP, hasBegun, NOT_BEGUN } from "../../src/core/begun.ts";
import { type KeyRecord, type RecordWrite, stamp } from "../../src/core/record.ts";
import { hasInherited } from "../../src/core/step.ts";
import { claim, takeOver } from "../../src/core/transition.ts";
import { OutcomeUnknown } from "../../src/errors.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import type { Store } from "../../src/stores/store.ts";
import { doubted, opening, request, running } from "../core/versions.ts";
import { BLIND, checkedOut, checkout, REPEATABLE, ran } from "./declared-calls.ts";
import { engineOn } from "./engines.ts";

const HOUR_MS = 3_600_000;

/** A store whose clock a test can put back, as a failover to a node with a slow clock does. */
function storeInTime() {
  const clock = { nowMs: 1_800_000_000_000 };
  return { clock, store: memoryStore({ now: () => clock.nowMs }) };
}

const reset = () => Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });

const written = (write: RecordWrite, updatedAt: number): KeyRecord =>
  stamp(write, { attempt: 2, revision: 2, updatedAt });

describe("a store's clock that stepped back", () => {
  test("hides no call that an earlier attempt left in doubt", () => {
    const steps = new Map([["open", opening()]]);
    const { claimedAt, operation } = doubted();
    const taken = takeOver(doubted(), request({ operation, steps }));
    expect(hasInherited(written(taken, claimedAt - HOUR_MS))).toBe(true);
    const fresh = claim(request({ steps: new Map([["open", { ...opening(), openedAt: { inMs: 0 } }]]) }));
    expect(hasInherited(written(fresh, claimedAt - HOUR_MS))).toBe(false);
  });

  test("makes nobody believe that a claim which says nothing of its beginning has not begun", () => {
    const earlier = running();
    const mark = { ...NOT_BEGUN, openedAt: earlier.claimedAt, validUntil: null };
    if (mark.state === "clear") throw new Error("It is refused.");
    const record = { ...earlier, steps: new Map([[BEGIN_STEP, mark]]) };
    const taken = takeOver(record, request({ operation: earlier.operation, effects: "none" }));
    expect(hasBegun(written(taken, earlier.claimedAt - HOUR_MS))).toBe(true);
  });

  test("leaves in doubt what was in doubt, where the next attempt is given back unused", async () => {
    const { clock, store } = storeInTime();
    const asked = checkout("given back");
    await ran(engineOn(store).engine, asked, ({ effect }) =>
      effect("charge", REPEATABLE, () => Promise.reject(reset())),
    );
    expect(await checkedOut(store, asked)).toMatchObject({ state: "unknown" });
    clock.nowMs -= HOUR_MS;
    let closing: Promise<void> | null = null;
    const replace: Store["replace"] = async (...given) => {
      closing ??= engine.close({ drain: 1 });
      return await store.replace(...given);
    };
    const { engine } = engineOn({ ...store, replace });
    expect(await ran(engine, asked, async () => "run")).toMatchObject({ kind: "draining" });
    await closing;
    expect(await checkedOut(store, asked)).toMatchObject({ state: "unknown" });
  });

  test("lets no call out again in one attempt whose provider does not know our key", async () => {
    const { clock, store } = storeInTime();
    const asked = checkout("twice");
    let calls = 0;
    await ran(engineOn(store).engine, asked, async ({ effect }) => {
      clock.nowMs -= HOUR_MS;
      const mail = () =>
        effect("mail", BLIND, () => {
          calls += 1;
          return Promise.reject(reset());
        });
      await expect(mail()).rejects.toMatchObject({ code: "ECONNRESET" });
      await expect(mail()).rejects.toBeInstanceOf(OutcomeUnknown);
    });
    expect(calls).toBe(1);
  });
});

test("a call in doubt that may be repeated by the programmer's word is repeated once in an attempt", async () => {
  const store = memoryStore();
  const { engine } = engineOn(store);
  const asked = checkout("rerun", { onAmbiguous: "rerun" });
  let calls = 0;
  const mail = () => {
    calls += 1;
    return Promise.reject(reset());
  };
  await ran(engine, asked, ({ effect }) => effect("mail", BLIND, mail));
  await ran(engine, asked, async ({ effect }) => {
    await expect(effect("mail", BLIND, mail)).rejects.toMatchObject({ code: "ECONNRESET" });
    await expect(effect("mail", BLIND, mail)).rejects.toBeInstanceOf(OutcomeUnknown);
  });
  expect(calls).toBe(2);
});
