import { describe, expect, test } from "vitest";
import { judgeNotFound } from "../../src/core/silence.ts";

const POLICY = { notFoundGraceMs: 1_000, maxReconcileLooks: 10 };
const HORIZON = 50_000;

function judged(validUntil: number | null, looks: number, askedAt: number, maxReconcileLooks = 10) {
  return judgeNotFound({ validUntil }, { looks, askedAt }, { ...POLICY, maxReconcileLooks });
}

describe('a provider\'s "not found", where nobody can cancel', () => {
  test("before the horizon of a provider that refuses after it proves nothing, however often it is heard", () => {
    for (let looks = 0; looks < 8; looks += 1)
      expect(judged(HORIZON, looks, 40_000)).toEqual({ kind: "inconclusive", soonestMs: 0 });
  });

  test("at the horizon itself proves nothing: the request is still taken then", () => {
    expect(judged(HORIZON, 5, HORIZON)).toMatchObject({ kind: "inconclusive" });
  });

  test("after the horizon proves it on a second look, not on a first", () => {
    expect(judged(HORIZON, 0, HORIZON + 1)).toEqual({ kind: "inconclusive", soonestMs: 0 });
    expect(judged(HORIZON, 1, HORIZON + 1)).toEqual({ kind: "proved" });
  });

  test.each([2, 3, 10])(
    "of %s looks the last one waits for the horizon, so that it can prove something",
    (most) => {
      expect(judged(HORIZON, most - 2, 40_000, most)).toEqual({ kind: "inconclusive", soonestMs: 10_001 });
    },
  );

  test("of a provider that refuses nothing is believed on the third look, a grace after the first", () => {
    const inconclusive = { kind: "inconclusive", soonestMs: 500 };
    expect([0, 1, 2, 3].map((looks) => judged(null, looks, 0))).toEqual([
      ...[inconclusive, inconclusive],
      ...[{ kind: "proved" }, { kind: "proved" }],
    ]);
  });
});
