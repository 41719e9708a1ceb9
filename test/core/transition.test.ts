import { describe, expect, test } from "vitest";
import type { InProgress, KeyRecord, Released, Step, Unknown } from "../../src/core/record.ts";
import {
  checkpoint,
  claim,
  claimAnew,
  conclude,
  doubt,
  look,
  lookAgain,
  refer,
  release,
  renew,
  review,
  seen,
  takeOver,
  touch,
} from "../../src/core/transition.ts";
import {
  ANSWER,
  CLEAR,
  changes,
  doubted,
  FINISHED,
  NOW,
  OPEN,
  opening,
  REFUSED,
  released,
  request,
  running,
  STEPS,
  standing,
  stepsOf,
  WRITE,
} from "./versions.ts";

describe("a claim", () => {
  test("holds all that the request brings, and asks the store for the attempt's number and for the times", () => {
    const { leaseMs, ...brought } = request();
    expect(claim(request())).toEqual({
      ...brought,
      state: "in_progress",
      attempt: "next",
      reference: null,
      createdAt: { inMs: 0 },
      claimedAt: { inMs: 0 },
      leaseUntil: { inMs: leaseMs },
    });
  });

  test("of a record whose retention is over is as if the key had never been seen", () => {
    const ended = standing(
      conclude(running(), {
        ...WRITE,
        state: "completed",
        answer: ANSWER,
        keep: { retainMs: 1, tombstoneMs: null },
      }),
    );
    expect(claimAnew(ended, request())).toEqual(claim(request()));
  });
});

describe("a takeover", () => {
  const states: readonly (readonly [string, Released | InProgress | Unknown])[] = [
    ["released", released()],
    ["lapsed", running()],
    ["doubted", doubted()],
  ];

  test.each(states)(
    "of a %s record is the next attempt on the same reference, operation, correlation id and steps",
    (_, record) => {
      const taken = takeOver(record, request({ operation: record.operation }));
      const { operation, reference, createdAt, correlationId } = record;
      expect(standing(taken)).toEqual({
        ...standing(claim(request({ operation }))),
        ...{ reference, createdAt, correlationId, steps: record.steps },
      });
    },
  );

  test.each(states)(
    "of a %s record on which a step has finished keeps the operation that its keys are made of",
    (_, record) => {
      const taken = takeOver(record, request({ operation: "another operation" }));
      expect(taken).toMatchObject({ operation: record.operation, reference: record.reference });
      expect(standing(taken).steps).toEqual(record.steps);
    },
  );

  test("of a released record without progress may be bound to another operation, and keeps no more than the generations of its keys", () => {
    const record = {
      ...released(),
      steps: stepsOf({ charge: CLEAR, mail: REFUSED }),
    };
    const other = request({ operation: "another operation", steps: new Map([["ship", opening()]]) });
    const generations = new Map<string, unknown>([
      ["charge", { state: "clear", generation: CLEAR.generation }],
      ["mail", { state: "clear", generation: REFUSED.generation }],
      ["ship", opening()],
    ]);
    expect(takeOver(record, other)).toEqual({
      ...claim(other),
      steps: generations,
      createdAt: { at: record.createdAt },
    });
  });

  test("takes the new request's correlation id where the first one had none", () => {
    const record = { ...released(), correlationId: null };
    const taken = takeOver(record, request({ operation: record.operation, correlationId: "the next trace" }));
    expect(taken.correlationId).toBe("the next trace");
  });

  test("of a record in doubt is never bound to another operation, whatever its steps", () => {
    for (const record of [running(), doubted()]) {
      const bare = { ...record, steps: new Map<string, Step>() };
      expect(takeOver(bare, request({ operation: "another operation" })).operation).toBe(record.operation);
    }
  });

  test("leaves a finished step finished, though the claim would open it", () => {
    const taken = takeOver(released(), request({ steps: new Map([["done", opening()]]) }));
    expect(standing(taken).steps.get("done")).toEqual(FINISHED);
  });

  test("opens a clear, a refused or an open step under the generation that it has reached", () => {
    const record = {
      ...doubted(),
      steps: stepsOf({ clear: CLEAR, refused: REFUSED, open: OPEN }),
    };
    const steps = new Map([...record.steps.keys()].map((name) => [name, opening()] as const));
    const { steps: opened } = standing(takeOver(record, request({ operation: record.operation, steps })));
    expect([...opened].map(([name, { state, generation }]) => [name, state, generation])).toEqual([
      ["clear", "open", CLEAR.generation],
      ["refused", "open", REFUSED.generation],
      ["open", "open", OPEN.generation],
    ]);
  });

  test("opens a step that was not there as the claim says", () => {
    const taken = takeOver(released(), request({ steps: new Map([["new", opening()]]) }));
    expect(taken.steps.get("new")).toEqual(opening());
  });

  test("does not lengthen the time in which a provider knows our key: it counts from the first call", () => {
    const record = { ...doubted(), steps: stepsOf({ charge: OPEN }) };
    const again = request({ operation: record.operation, steps: new Map([["charge", opening()]]) });
    expect(standing(takeOver(record, again)).steps.get("charge")).toMatchObject({
      state: "open",
      openedAt: OPEN.openedAt,
    });
  });
});

describe("a running record", () => {
  test("that is renewed has a later lease, and nothing else is another", () => {
    const renewed = standing(renew(running(), { ...WRITE, leaseMs: 30_000 }));
    expect(changes(running(), renewed)).toEqual({ ...WRITE, leaseUntil: NOW + 30_000 });
  });

  test("that is touched has another write id, and nothing else is another", () => {
    expect(changes(running(), standing(touch(running(), WRITE)))).toEqual(WRITE);
  });

  test("remembers a reference, and nothing else is another", () => {
    const reference = Uint8Array.of(9);
    expect(changes(running(), standing(refer(running(), { ...WRITE, reference })))).toEqual({
      ...WRITE,
      reference,
    });
  });

  test("changes one step at a checkpoint, whether it was there or not, and no other", () => {
    for (const step of ["open", "new"]) {
      const write = checkpoint(running(), { ...WRITE, step, mark: opening() });
      const steps = new Map(STEPS).set(step, { ...opening(), openedAt: NOW, validUntil: NOW + 5_000 });
      expect(changes(running(), standing(write))).toEqual({ ...WRITE, steps });
    }
  });
});

describe("a conclusion", () => {
  test.each([
    ["running", running()],
    ["doubted", doubted()],
  ] as const)(
    "of a %s record keeps owner, attempt and steps, and has its answer for as long as it was told",
    (_, record) => {
      for (const state of ["completed", "failed_permanent"] as const) {
        const done = conclude(record, {
          ...WRITE,
          state,
          answer: ANSWER,
          keep: { retainMs: 1_000, tombstoneMs: null },
        });
        const { identity, operation, effects, fingerprint, owner, attempt, reference, correlationId } =
          record;
        const { createdAt, claimedAt, steps } = record;
        expect(standing(done)).toEqual({
          ...{ identity, operation, effects, fingerprint, owner, attempt, reference, correlationId },
          ...{
            createdAt,
            claimedAt,
            steps,
            ...WRITE,
            state,
            answer: ANSWER,
            retainUntil: NOW + 1_000,
            tombstoneMs: null,
          },
          ...{ revision: 8, updatedAt: NOW },
        });
      }
    },
  );

  test("ends in the same write the step that its answer rests on", () => {
    const step = {
      name: "open",
      mark: { ...opening(), state: "finished", result: Uint8Array.of(7) },
    } as const;
    const done = standing(
      conclude(running(), {
        ...WRITE,
        state: "completed",
        answer: ANSWER,
        keep: { retainMs: 1, tombstoneMs: null },
        step,
      }),
    );
    const finished = { ...step.mark, openedAt: NOW, validUntil: NOW + 5_000 };
    expect(done.steps).toEqual(new Map(STEPS).set("open", finished));
  });
});

describe("a release", () => {
  test.each([
    ["running", running()],
    ["doubted", doubted()],
  ] as const)(
    "of a %s record clears its open marks, and keeps what finished and what was refused",
    (_, record) => {
      const freed = standing(release(record, { ...WRITE, retainMs: 1_000 }));
      expect(freed).toMatchObject({
        ...WRITE,
        state: "released",
        retainUntil: NOW + 1_000,
        owner: record.owner,
      });
      expect(freed.reference).toEqual(record.reference);
      expect(freed.steps).toEqual(
        new Map(STEPS).set("open", { state: "clear", generation: OPEN.generation }),
      );
    },
  );

  test("moves on the generation of a step that the provider has cancelled, and of no other", () => {
    const steps = stepsOf({ one: OPEN, two: OPEN, done: FINISHED });
    const freed = release(
      { ...doubted(), steps },
      { ...WRITE, retainMs: 1, cancelled: new Set(["one", "done", "none"]) },
    );
    expect(standing(freed).steps).toEqual(
      stepsOf({
        one: { state: "clear", generation: OPEN.generation + 1 },
        two: { state: "clear", generation: OPEN.generation },
        done: FINISHED,
      }),
    );
  });

  test("after a cancel makes the next attempt call under the next generation, and so on", () => {
    let record: KeyRecord = standing(claim(request({ steps: new Map([["charge", opening()]]) })));
    for (const generation of [0, 1, 2]) {
      if (record.state !== "in_progress") throw new Error(record.state);
      expect(record.steps.get("charge")).toMatchObject({ state: "open", generation });
      const freed = standing(release(record, { ...WRITE, retainMs: 1, cancelled: new Set(["charge"]) }));
      if (freed.state !== "released") throw new Error(freed.state);
      record = standing(takeOver(freed, request({ steps: new Map([["charge", opening()]]) })));
    }
  });
});

describe("a doubt", () => {
  test("keeps the owner, whose late result still counts, with the attempt and all it had done", () => {
    const evidence = { reason: "The reply was lost.", result: null };
    const verdict = { evidence, disposition: "reconcile", nextLookAt: { inMs: 5_000 } } as const;
    const { leaseUntil: _, ...record } = running();
    expect(standing(doubt(running(), { ...WRITE, doubt: verdict, heldRetainMs: 1_000 }))).toEqual({
      ...record,
      ...{ ...WRITE, state: "unknown", evidence, looks: 0, disposition: "reconcile" },
      ...{ nextLookAt: NOW + 5_000, retainUntil: null, revision: 8, updatedAt: NOW },
    });
  });

  test("ends by time only where it is held", () => {
    const evidence = { reason: "It died.", result: null };
    for (const [disposition, retainUntil] of [
      ["hold", NOW + 1_000],
      ["review", null],
      ["reconcile", null],
    ] as const) {
      const verdict = { evidence, disposition, nextLookAt: null };
      expect(standing(doubt(running(), { ...WRITE, doubt: verdict, heldRetainMs: 1_000 }))).toMatchObject({
        retainUntil,
      });
    }
  });

  test("that is touched has another write id, and nothing else is another", () => {
    expect(changes(doubted(), standing(touch(doubted(), WRITE)))).toEqual(WRITE);
  });

  test("that a reconciler looks at has a new owner and attempt, and nobody else looks until its lease ends", () => {
    const taken = look(doubted(), { ...WRITE, owner: "reconciler", leaseMs: 20_000 });
    expect(taken.attempt).toBe("next");
    const next = { ...WRITE, owner: "reconciler", nextLookAt: NOW + 20_000 };
    expect(changes(doubted(), standing({ ...taken, attempt: 7 }))).toEqual(next);
  });

  test("counts the looks that were answered, and none that found nobody at home", () => {
    for (const [answered, looks] of [
      [true, 3],
      [false, 2],
    ] as const) {
      const again = lookAgain(doubted(), { ...WRITE, answered, nextLookInMs: 40_000, reason: "Not yet." });
      expect(standing(again)).toEqual({
        ...{ ...doubted(), ...WRITE, looks, nextLookAt: NOW + 40_000, revision: 8, updatedAt: NOW },
        evidence: { ...doubted().evidence, reason: "Not yet." },
      });
    }
  });

  test("that goes to review is looked at by nobody, and keeps what the provider said", () => {
    const reviewed = standing(review(doubted(), { ...WRITE, reason: "Ten looks." }));
    const evidence = { ...doubted().evidence, reason: "Ten looks." };
    expect(changes(doubted(), reviewed)).toEqual({
      ...WRITE,
      disposition: "review",
      nextLookAt: null,
      evidence,
    });
  });

  test("that goes to review does not end by time, though it was held before", () => {
    const held: Unknown = { ...doubted(), disposition: "hold", retainUntil: NOW + 1_000 };
    expect(standing(review(held, { ...WRITE, reason: "Somebody asked." }))).toMatchObject({
      retainUntil: null,
    });
  });
});

test("what a compare-and-set compares is the version that was seen", () => {
  const { identity, owner, revision } = running();
  expect(seen(running())).toEqual({ identity, owner, revision });
});
