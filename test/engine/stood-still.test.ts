import { expect, test } from "vitest";
import { hasInherited } from "../../src/core/step.ts";
import { inputFingerprint } from "../../src/engine/input.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import type { Store } from "../../src/stores/store.ts";
import { engineOn, proceeded, SHORT, stoppedRuntime } from "./engines.ts";

const KEYED = { provider: "repeatable", keyTtl: "24h" } as const;
const CALL = { operation: "pay", principal: "alice", key: "k", effects: "declared" } as const;

test.each([
  ["its lease", 50],
  ["its time", 25],
])(
  "a process that stood still past %s calls nobody, though it hears of its mark before its timers",
  async (_, ms) => {
    let monotonicMs = 0;
    const kept = memoryStore();
    const standsStill: Store = {
      ...kept,
      replace: async (...given) => {
        const replaced = await kept.replace(...given);
        monotonicMs += ms;
        return replaced;
      },
    };
    const runtime = { ...stoppedRuntime(), monotonicMs: () => monotonicMs };
    const { engine } = engineOn(standsStill, { ...SHORT, runtime });
    let calls = 0;
    const ran = engine.run(CALL, ({ effect }) =>
      effect("charge", KEYED, () => {
        calls += 1;
        return "paid";
      }),
    );
    await expect(ran).rejects.toThrow();
    expect(calls).toBe(0);
  },
);

test.each([0, 1_000])(
  "what an earlier attempt left in doubt is not taken for the next one's own, though both are of one instant (%i ms back)",
  async (backMs) => {
    let now = 1_800_000_000_000;
    const { engine } = engineOn(memoryStore({ now: () => now }));
    const failing = engine.run(CALL, ({ effect }) =>
      effect("charge", KEYED, () => Promise.reject(new Error("reset"))),
    );
    await expect(failing).rejects.toThrow("reset");
    now -= backMs;
    const { operation, principal, key, effects } = CALL;
    const identity = { kind: "run", principal, operation, key } as const;
    const request = { identity, operation, effects, fingerprint: inputFingerprint(undefined) };
    expect(hasInherited(proceeded(await engine.begin(request)).record())).toBe(true);
  },
);
