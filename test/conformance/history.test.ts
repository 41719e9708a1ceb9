import { describe, expect, test } from "vitest";
import { checkHistory } from "../../src/conformance/history/check.ts";
import type { History, HistoryCall, Told } from "../../src/conformance/history/history.ts";
import { ConfigurationError } from "../../src/errors.ts";
import { seed, seededRandom } from "../support/seed.ts";
import { soundHistory } from "./service.ts";

const RUNS = 400;

/** One careless moment of a service: a history with it, or `null` where this history has no place for it. */
type Careless = (history: History) => History | null;

test.each([Number.POSITIVE_INFINITY, 90])(
  "what callers of a sound service see is explained, whatever is lost on its way (retention of %s ms)",
  (retentionMs) => {
    for (let run = 0; run < RUNS; run++) {
      const history = soundHistory(seededRandom(seed() + run), retentionMs);
      expect(checkHistory(history), `run ${run}: ${JSON.stringify(history)}`).toEqual([]);
    }
  },
);

describe("a single careless moment is found", () => {
  const careless: readonly (readonly [what: string, guarantee: string, spoil: Careless])[] = [
    [
      "a second effect",
      "G1",
      ({ effects, ...rest }) =>
        first(effects, (one) => ({ ...rest, effects: [...effects, { ...one, id: "again" }] })),
    ],
    [
      "an effect that nobody asked for",
      "G2",
      (history) => ({ ...history, effects: [...history.effects, { principal: "bob", key: "k0", id: "x" }] }),
    ],
    [
      "another answer to a copy",
      "G3",
      (history) => changed(history, laterCopy, ({ told }) => ({ ...told, answer: "else" })),
    ],
    [
      "an effect that is lost",
      "G4",
      (history) =>
        first(history.calls.filter(isMade), ({ key }) => ({
          ...history,
          effects: history.effects.filter((one) => one.key !== key),
        })),
    ],
    [
      "a refusal with an effect",
      "G4",
      (history) =>
        first(history.calls.filter(isRefusal), ({ principal, key }) => ({
          ...history,
          effects: [...history.effects.filter((one) => one.key !== key), { principal, key, id: "x" }],
        })),
    ],
    [
      "an answer that names no effect that exists",
      "G4",
      (history) => changed(history, isMade, ({ told }) => ({ ...told, effectId: "none" })),
    ],
    [
      "an answer to another request",
      "G8",
      (history) =>
        changed(
          history,
          (call) => isAfterAnswer(history, call, "key_reused"),
          (call) => answerOf(history, call),
        ),
    ],
    [
      "a running copy after the answer",
      "G11",
      (history) => changed(history, laterCopy, () => ({ kind: "in_progress" })),
    ],
    [
      "nothing performed after the answer",
      "G11",
      (history) => changed(history, laterCopy, () => ({ kind: "not_performed" })),
    ],
    ["a running copy that there is not", "G12", (history) => added(history, { kind: "in_progress" })],
    ["another request that there is not", "G12", (history) => added(history, { kind: "key_reused" })],
  ];
  test.each(careless)("%s (%s)", (what, guarantee, spoil) => {
    let found = 0;
    for (let run = 0; run < RUNS; run++) {
      const history = spoil(soundHistory(seededRandom(seed() + run)));
      if (history === null) continue;
      const guarantees = checkHistory(history).map((violation) => violation.guarantee);
      expect(guarantees, `${what}, run ${run}: ${JSON.stringify(history)}`).toContain(guarantee);
      found++;
    }
    expect(found).toBeGreaterThan(RUNS / 20);
  });

  test("two answers that lie less than a retention apart (G3)", () => {
    const calls = [answered("first", 10, 20), answered("second", 60, 70)];
    expect(checkHistory({ calls, effects: [], retentionMs: 50 })).toEqual([]);
    expect(checkHistory({ calls, effects: [], retentionMs: 80 })).toMatchObject([
      { guarantee: "G3", key: "k" },
    ]);
  });
});

test("an answer is not given after its retention (G3)", () => {
  const calls = [answered("a", 10, 20), answered("a", 100, 110)];
  expect(checkHistory({ calls, effects: [], retentionMs: 80 })).toEqual([]);
  expect(checkHistory({ calls, effects: [], retentionMs: 50 })).toMatchObject([{ guarantee: "G3" }]);
});

test("calls that overlap may be in either order", () => {
  const busy: HistoryCall = { ...answered("", 10, 40), told: { kind: "in_progress" } };
  expect(checkHistory({ calls: [answered("a", 5, 20), busy], effects: [] })).toEqual([]);
  expect(checkHistory({ calls: [answered("a", 5, 9), busy], effects: [] })).toMatchObject([
    { guarantee: "G11" },
  ]);
});

test.each([
  ["calls[0]", { calls: [answered("a", 20, 10)], effects: [] }],
  ["calls[0]", { calls: [answered("a", Number.NaN, 10)], effects: [] }],
  ["retentionMs", { calls: [], effects: [], retentionMs: 0 }],
])("a history that cannot be is refused by name: %s", (name, history) => {
  expect(() => checkHistory(history)).toThrow(ConfigurationError);
  expect(() => checkHistory(history)).toThrow(name);
});

function answered(answer: string, fromMs: number, toMs: number): HistoryCall {
  return {
    principal: "alice",
    key: "k",
    intent: "one",
    fromMs,
    toMs,
    told: { kind: "final", answer, effect: "none" },
  };
}

function first<Item>(items: readonly Item[], spoil: (item: Item) => History): History | null {
  const [item] = items;
  return item === undefined ? null : spoil(item);
}

function changed(
  history: History,
  fits: (call: HistoryCall, all: readonly HistoryCall[]) => boolean,
  told: (call: HistoryCall) => object,
): History | null {
  return first(
    history.calls.filter((call) => fits(call, history.calls)),
    (call) => ({
      ...history,
      calls: history.calls.map((one) => (one === call ? { ...one, told: asTold(told(call)) } : one)),
    }),
  );
}

function asTold(told: object): Told {
  if (!isTold(told)) throw new Error("A call is told something.");
  return told;
}

function isTold(told: object): told is Told {
  return "kind" in told;
}

function added(history: History, told: Told): History {
  const call: HistoryCall = { ...answered("", 10, 20), key: "new", told };
  return { ...history, calls: [...history.calls, call] };
}

/** A copy that was sent when another one had its answer already. */
function laterCopy(call: HistoryCall, all: readonly HistoryCall[]): boolean {
  return (
    call.told.kind === "final" &&
    all.some((other) => other.key === call.key && other.told.kind === "final" && other.toMs < call.fromMs)
  );
}

function isMade({ told }: HistoryCall): boolean {
  return told.kind === "final" && told.effect === "made";
}

function isRefusal({ told }: HistoryCall): boolean {
  return told.kind === "final" && told.effect === "none";
}

function isAfterAnswer({ calls }: History, call: HistoryCall, kind: Told["kind"]): boolean {
  return (
    call.told.kind === kind &&
    calls.some((other) => other.key === call.key && other.told.kind === "final" && other.toMs < call.fromMs)
  );
}

function answerOf({ calls }: History, { key }: HistoryCall): Told {
  const call = calls.find((one) => one.key === key && one.told.kind === "final");
  if (call === undefined) throw new Error(`${key} has no answer.`);
  return call.told;
}
