import { describe, expect, test } from "vitest";
import { type Decision, decide, retentionIsOver, type Situation } from "../../src/core/decide.ts";
import type { KeyRecord } from "../../src/core/record.ts";
import type { Doubt } from "../../src/core/transition.ts";
import {
  type Cell,
  cellOf,
  cells,
  completedOf,
  type Death,
  doubtedOf,
  MARKS,
  type Marks,
  NOW,
  recordOf,
  runningOf,
  TTL_ENDS_AT,
} from "./cells.ts";

/**
 * The table of docs/state-machine.md, row by row: of those that fit a cell the first one holds. It knows nothing of the
 * functions under test; what marks mean is written beside each set of them in cells.ts.
 */
const TABLE: readonly Row[] = [
  // Expired: of a finished one it is remembered that there was one, whatever asks, until its tombstone is over.
  {
    when: { state: ["completed", "failed_permanent"], retention: ["over"], tombstone: ["stands"] },
    gets: "says expired",
  },

  // Absent: never seen, or its retention is over. Never for what runs, nor for a doubt that somebody is to end.
  {
    when: { state: ["released", "completed", "failed_permanent"], retention: ["over"] },
    gets: "claims anew",
  },
  { when: { state: ["unknown"], disposition: ["hold"], retention: ["over"] }, gets: "claims anew" },

  // An owner that asks before it ran anything finds its own claim, or makes it live again.
  { when: { state: ["in_progress"], owner: ["own"], lease: ["live"] }, gets: "runs" },
  { when: { state: ["in_progress"], owner: ["own"], lease: ["lapsed"] }, gets: "takes over" },

  // Released: it may bring a corrected body, unless a step has finished or is open.
  { when: { state: ["released"], match: ["same"] }, gets: "takes over" },
  { when: { state: ["released"], marks: MARKS.filter(({ bind }) => !bind) }, gets: "takes over" },

  // Another request is refused in every other case, running included; and so is what cannot be checked.
  { when: { match: ["other"] }, gets: "refuses as reused" },
  { when: { match: ["unverifiable"] }, gets: "refuses as unverifiable" },

  // Finished: the kept answer, or the word that its body was not kept.
  { when: { state: ["completed", "failed_permanent"], body: ["kept"] }, gets: "replays" },
  { when: { state: ["completed", "failed_permanent"], body: ["not kept"] }, gets: "says not stored" },

  // The same execution comes back: it goes on at once, but for what is open at a provider.
  {
    when: { state: ["in_progress"], execution: ["the same"], effects: ["none", "transaction"] },
    gets: "takes over",
  },
  {
    when: { state: ["in_progress"], execution: ["the same"], marks: dying("released") },
    gets: "takes over",
  },
  {
    when: { state: ["in_progress"], execution: ["the same"], marks: dying("review") },
    gets: "marks for review",
  },
  {
    when: { state: ["in_progress"], execution: ["the same"], marks: dying("look at once") },
    gets: "marks to look at once",
  },
  {
    when: { state: ["in_progress"], execution: ["the same"], marks: dying("look when the ttl ends") },
    gets: "marks to look when the ttl ends",
  },
  { when: { state: ["unknown"], execution: ["the same"], disposition: ["hold"] }, gets: "takes over" },

  // Running: a duplicate judges at the lapse, and not before.
  { when: { state: ["in_progress"], lease: ["live"] }, gets: "says running" },

  // Lapsed: judged by where the effects are, never by age.
  { when: { state: ["in_progress"], effects: ["transaction"] }, gets: "takes over" },
  { when: { state: ["in_progress"], effects: ["none"] }, gets: "marks held" },

  // Declared: without an open mark nothing was sent; an open mark is judged by what its provider offers.
  { when: { state: ["in_progress"], marks: dying("released") }, gets: "takes over" },
  { when: { state: ["in_progress"], marks: dying("review") }, gets: "marks for review" },
  { when: { state: ["in_progress"], marks: dying("look at once") }, gets: "marks to look at once" },
  {
    when: { state: ["in_progress"], marks: dying("look when the ttl ends") },
    gets: "marks to look when the ttl ends",
  },

  // In doubt: repeated by the programmer's explicit word, or where the provider still knows our key.
  { when: { state: ["unknown"], onAmbiguous: ["rerun"] }, gets: "takes over" },
  { when: { state: ["unknown"], marks: MARKS.filter(({ repeat }) => repeat) }, gets: "takes over" },

  // In doubt otherwise: said, with the time of the next look where one is planned.
  { when: { state: ["unknown"] }, gets: "says unknown" },
];

describe("every cell of the state table", () => {
  const states = ["in_progress", "released", "unknown", "completed", "failed_permanent"] as const;
  test.each(states)("%s: a request gets what the table says", (state) => {
    const all = cells(state);
    expect(all.length).toBeGreaterThan(700);
    const wrong = all.flatMap((cell) => {
      const record = recordOf(cell);
      const { match, onAmbiguous } = cell;
      const reenters = cell.execution === "the same";
      const owner = cell.owner === "own" ? record.owner : "another-owner";
      const decision = decide({ record, match, owner, now: NOW, onAmbiguous, reenters });
      const found =
        decision.record === record ? inWords(decision, cell.marks) : "decides about another record";
      const expected = rowOf(cell).gets;
      return found === expected ? [] : [{ ...cell, marks: cell.marks.name, found, expected }];
    });
    expect(wrong).toEqual([]);
  });

  test("each row of the table holds for some cell", () => {
    const used = new Set(states.flatMap((state) => cells(state).map(rowOf)));
    expect(TABLE.filter((row) => !used.has(row))).toEqual([]);
  });
});

describe("what a decision carries", () => {
  test("a tombstone stands from the very moment at which the retention ends to the one at which its own time does", () => {
    const record = { ...completedOf(cellOf({ state: "completed" })), retainUntil: NOW, tombstoneMs: 1_000 };
    const at = (now: number) => decide({ ...asked(record), now }).kind;
    expect([NOW - 1, NOW, NOW + 999, NOW + 1_000].map(at)).toEqual([
      ...["replay", "expired", "expired", "claim_anew"],
    ]);
  });

  test("a replay carries the answer as it was kept, and so does one whose body was not kept", () => {
    for (const state of ["completed", "failed_permanent"] as const) {
      for (const body of ["kept", "not kept"] as const) {
        const record = recordOf(cellOf({ state, body }));
        const decision = decide(asked(record));
        expect(decision).toMatchObject({ answer: "answer" in record && record.answer });
      }
    }
  });

  test("a lease that ends this very moment has lapsed, and one of a millisecond has not", () => {
    const record = runningOf(cellOf({ state: "in_progress", effects: "transaction" }));
    expect(decide(asked({ ...record, leaseUntil: NOW })).kind).toBe("take_over");
    expect(decide(asked({ ...record, leaseUntil: NOW + 1 })).kind).toBe("in_progress");
    expect(decide({ ...asked({ ...record, leaseUntil: NOW }), owner: record.owner }).kind).toBe("take_over");
    expect(decide({ ...asked({ ...record, leaseUntil: NOW + 1 }), owner: record.owner }).kind).toBe("run");
  });

  test("Retry-After grows with the attempt's age, is a second at least and at most what is left of the lease", () => {
    const record = runningOf(cellOf({ state: "in_progress" }));
    const retryAfter = (ageMs: number, leftMs: number) =>
      decide(asked({ ...record, claimedAt: NOW - ageMs, leaseUntil: NOW + leftMs }));
    for (const [ageMs, leftMs, retryAfterMs] of [
      [0, 90_000, 1_000],
      [999, 90_000, 1_000],
      [1_500, 90_000, 1_500],
      [40_000, 50_000, 40_000],
      [60_000, 30_000, 30_000],
      [89_500, 500, 1_000],
    ] as const) {
      expect(retryAfter(ageMs, leftMs)).toMatchObject({ kind: "in_progress", retryAfterMs });
    }
  });

  test("an unknown says when to come again just when a look is scheduled, a second at least", () => {
    const record = doubtedOf(cellOf({ state: "unknown", marks: "keyed" }));
    const retryAfter = (nextLookAt: number | null) => decide(asked({ ...record, nextLookAt }));
    expect(retryAfter(NOW + 30_000)).toMatchObject({ kind: "outcome_unknown", retryAfterMs: 30_000 });
    expect(retryAfter(NOW + 1)).toMatchObject({ retryAfterMs: 1_000 });
    expect(retryAfter(NOW - 30_000)).toMatchObject({ retryAfterMs: 1_000 });
    expect(retryAfter(null)).toMatchObject({ kind: "outcome_unknown", retryAfterMs: null });
  });

  test("a provider's key is good for a repeat up to the last millisecond of its ttl, and for the shortest of several", () => {
    const record = doubtedOf(cellOf({ state: "unknown", marks: "repeatable" }));
    const at = (now: number) => decide({ ...asked(record), now }).kind;
    expect([at(TTL_ENDS_AT - 1), at(TTL_ENDS_AT)]).toEqual(["take_over", "outcome_unknown"]);
  });

  test("a key whose ttl nobody named is good for no repeat at all", () => {
    const record = doubtedOf(cellOf({ state: "unknown", marks: "repeatable" }));
    const steps = new Map(
      [...record.steps].map(([name, step]) => [name, { ...step, keyTtlMs: null }] as const),
    );
    expect(decide(asked({ ...record, steps })).kind).toBe("outcome_unknown");
  });

  test("a doubt names its reason, and knows of no result", () => {
    for (const marks of ["keyed", "blind", "repeatable"]) {
      const decision = decide(asked(runningOf(cellOf({ state: "in_progress", lease: "lapsed", marks }))));
      const evidence = { reason: expect.stringMatching(/\w.*\.$/), result: null };
      expect(decision).toMatchObject({ kind: "mark_unknown", doubt: { evidence } });
    }
  });

  test("retention ends at its very moment, and never for what is running or for somebody to end", () => {
    const ended = completedOf(cellOf({ state: "completed" }));
    expect([NOW - 1, NOW].map((now) => retentionIsOver({ ...ended, retainUntil: NOW }, now))).toEqual([
      false,
      true,
    ]);
    const far = NOW * 2;
    expect(retentionIsOver(runningOf(cellOf({ state: "in_progress" })), far)).toBe(false);
    for (const disposition of ["reconcile", "review"] as const) {
      expect(retentionIsOver(doubtedOf(cellOf({ state: "unknown", disposition })), far)).toBe(false);
    }
  });
});

type Pattern = { readonly [Dimension in Exclude<keyof Cell, "look">]?: readonly Cell[Dimension][] };

interface Row {
  readonly when: Pattern;
  readonly gets: Verdict;
}

type Verdict =
  | "claims anew"
  | "runs"
  | "takes over"
  | "refuses as reused"
  | "refuses as unverifiable"
  | "replays"
  | "says not stored"
  | "says expired"
  | "says running"
  | "says unknown"
  | "marks held"
  | "marks for review"
  | "marks to look at once"
  | "marks to look when the ttl ends";

function rowOf(cell: Cell): Row {
  const row = TABLE.find(({ when }) => fits(cell, when));
  if (row === undefined) throw new Error(`No row for ${JSON.stringify(cell)}.`);
  return row;
}

function fits(cell: Cell, when: Pattern): boolean {
  return (
    allows(when.state, cell.state) &&
    allows(when.match, cell.match) &&
    allows(when.owner, cell.owner) &&
    allows(when.lease, cell.lease) &&
    allows(when.effects, cell.effects) &&
    allows(when.marks, cell.marks) &&
    allows(when.retention, cell.retention) &&
    allows(when.disposition, cell.disposition) &&
    allows(when.tombstone, cell.tombstone) &&
    allows(when.body, cell.body) &&
    allows(when.onAmbiguous, cell.onAmbiguous) &&
    allows(when.execution, cell.execution)
  );
}

function allows<Value>(some: readonly Value[] | undefined, value: Value): boolean {
  return some === undefined || some.includes(value);
}

function dying(death: Death): readonly Marks[] {
  return MARKS.filter((marks) => marks.death === death);
}

function asked(record: KeyRecord): Situation {
  return { record, match: "same", owner: "another-owner", now: NOW, onAmbiguous: "keep", reenters: false };
}

function inWords(decision: Decision, { ttlEndsAt }: Marks): string {
  switch (decision.kind) {
    case "claim_anew":
      return "claims anew";
    case "run":
      return "runs";
    case "take_over":
      return "takes over";
    case "mismatch":
      return "refuses as reused";
    case "unverifiable":
      return "refuses as unverifiable";
    case "replay":
      return "replays";
    case "response_not_stored":
      return "says not stored";
    case "expired":
      return "says expired";
    case "in_progress":
      return "says running";
    case "outcome_unknown":
      return "says unknown";
    case "mark_unknown":
      return doubtInWords(decision.doubt, ttlEndsAt);
  }
}

function doubtInWords({ disposition, nextLookAt }: Doubt, ttlEndsAt: number | undefined): string {
  if (disposition === "hold" && nextLookAt === null) return "marks held";
  if (disposition === "review" && nextLookAt === null) return "marks for review";
  if (disposition === "reconcile" && nextLookAt !== null) {
    if ("inMs" in nextLookAt && nextLookAt.inMs === 0) return "marks to look at once";
    if ("at" in nextLookAt && nextLookAt.at === ttlEndsAt) return "marks to look when the ttl ends";
  }
  return `marks ${disposition}, to look at ${JSON.stringify(nextLookAt)}`;
}
