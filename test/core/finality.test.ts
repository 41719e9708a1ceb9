import { describe, expect, test } from "vitest";
import { BEGIN_STEP } from "../../src/core/begun.ts";
import type { Working } from "../../src/core/ending.ts";
import { effectOnRecord, type Finality, overrule } from "../../src/core/finality.ts";
import type { Step } from "../../src/core/record.ts";
import { answerOf } from "../stores/sample.ts";

const mark = {
  provider: "blind",
  generation: 0,
  openedAt: 7,
  keyTtlMs: null,
  validUntil: null,
} as const;
const result = new Uint8Array(0);
const finished: Step = { ...mark, state: "finished", result };
const open: Step = { ...mark, state: "open" };
const refused: Step = { ...mark, state: "refused", result };

const attemptOf = (effects: Working["effects"], ...steps: readonly (readonly [string, Step])[]): Working => ({
  effects,
  steps: new Map(steps),
  claimedAt: 7,
});
const answered = (status: number) => ({ ...answerOf(new Uint8Array(0)), status });

const words: readonly Finality[] = ["completed", "failed_permanent", "released", "unknown"];
const takenOf = (attempt: Working, status: number) =>
  words.filter((said) => overrule(attempt, answered(status), said).kind === "taken");

describe("the programmer's word about an answer", () => {
  test("is taken whatever it says where nothing was said of effects", () => {
    for (const status of [200, 402, 500]) expect(takenOf(attemptOf("none"), status)).toEqual(words);
  });

  test("leaves nothing in doubt where effects are on record", () => {
    const known: readonly Finality[] = ["completed", "failed_permanent", "released"];
    for (const status of [200, 402, 500]) {
      expect(takenOf(attemptOf("transaction"), status)).toEqual(known);
      expect(takenOf(attemptOf("declared", ["charge", refused]), status)).toEqual(known);
    }
  });

  test("never makes nothing of an effect that was made", () => {
    const charged = attemptOf("declared", ["charge", finished]);
    for (const status of [200, 402, 422]) expect(takenOf(charged, status)).toEqual(["completed"]);
    // Released by itself, too: the step is kept, and the next copy goes on from there.
    expect(takenOf(charged, 503)).toEqual(["completed", "released"]);
  });

  test("comes to the state that it names, with the answer", () => {
    const answer = answered(500);
    const conclusions = words.map((said) => overrule(attemptOf("none"), answer, said));
    expect(conclusions).toMatchObject([
      { conclusion: { kind: "conclude", state: "completed", answer } },
      { conclusion: { kind: "conclude", state: "failed_permanent", answer } },
      { conclusion: { kind: "release" } },
      { conclusion: { kind: "doubt", doubt: { disposition: "hold" } } },
    ]);
  });
});

test("what is on record of an attempt's effects is told by its steps alone", () => {
  expect(effectOnRecord(attemptOf("transaction"))).toBe("none");
  expect(effectOnRecord(attemptOf("declared"))).toBe("none");
  expect(effectOnRecord(attemptOf("declared", ["a", refused]))).toBe("none");
  expect(effectOnRecord(attemptOf("declared", ["a", finished]))).toBe("done");
  expect(effectOnRecord(attemptOf("declared", ["a", finished], ["b", open]))).toBe("maybe");
  expect(effectOnRecord(attemptOf("none"))).toBe("maybe");
  expect(effectOnRecord(attemptOf("none", [BEGIN_STEP, refused]))).toBe("none");
});
