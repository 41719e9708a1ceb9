import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Policy, type PolicySettings, parseDuration, settlePolicy } from "../../src/core/policy.ts";
import { seed } from "../support/seed.ts";

const DURATIONS = [
  "requestTimeout",
  "lease",
  "sweepGrace",
  "sweepInterval",
  "reconcileInterval",
  "storeTimeout",
  "completionTimeout",
  "retention",
  "tombstone",
  "unknownRetention",
  "releasedRetention",
  "notFoundGrace",
] as const satisfies readonly (keyof PolicySettings)[];

const DAY_MS = 86_400_000;

describe("with nothing set", () => {
  test("the defaults are those of the reference", () => {
    expect(settled({})).toEqual({
      requestTimeoutMs: 60_000,
      leaseMs: 90_000,
      heartbeatMs: 30_000,
      sweepGraceMs: 300_000,
      sweepIntervalMs: 30_000,
      reconcileIntervalMs: 30_000,
      storeTimeoutMs: 2_000,
      completionTimeoutMs: 2_000,
      retentionMs: DAY_MS,
      tombstoneMs: null,
      unknownRetentionMs: 30 * DAY_MS,
      releasedRetentionMs: DAY_MS,
      notFoundGraceMs: 120_000,
      maxReconcileLooks: 10,
    });
  });
});

describe("a duration", () => {
  test.each([
    ["500ms", 500],
    ["30s", 30_000],
    ["2m", 120_000],
    ["24h", DAY_MS],
    ["7d", 7 * DAY_MS],
    ["1.5s", 1_500],
    ["3650d", 3_650 * DAY_MS],
    [1, 1],
    [30_000, 30_000],
  ])("%j is %i milliseconds", (value, ms) => {
    expect(parseDuration(value)).toEqual({ kind: "duration", ms });
  });

  test.each([
    [1.5, 2],
    [0.001, 1],
    ["0.5ms", 1],
    ["1.0001s", 1_001],
  ])("%j is rounded up to %i whole milliseconds", (value, ms) => {
    expect(parseDuration(value)).toEqual({ kind: "duration", ms });
  });
});

describe("a value that cannot be used", () => {
  const numbers = [0, -0, -1, -1.5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e20];
  const texts = [
    "",
    " ",
    "60",
    "0s",
    "-1s",
    "1e3s",
    "30 s",
    " 30s",
    "30S",
    "30sec",
    "1w",
    "s",
    "NaN",
    "3651d",
    "1m30s",
  ];
  const others: readonly unknown[] = [null, true, [], {}, 5n, () => 1];

  test.each(DURATIONS)("is refused for %s by the name of the field, with what would be right", (field) => {
    for (const value of [...numbers, ...texts]) {
      const settings: PolicySettings = { [field]: value };
      const refused = {
        kind: "bad",
        field,
        reason: expect.stringMatching(/^must be a positive number .*"30s"/),
      };
      expect(settlePolicy(settings), JSON.stringify(value)).toEqual(refused);
    }
  });

  test.each(others.map((value) => [value]))(
    "is no duration either where it is neither number nor text: %o",
    (value) => {
      expect(parseDuration(value)).toMatchObject({ kind: "bad" });
    },
  );

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    "is refused as a number of looks: %d",
    (looks) => {
      const refused = {
        kind: "bad",
        field: "maxReconcileLooks",
        reason: expect.stringMatching(/whole number/),
      };
      expect(settlePolicy({ maxReconcileLooks: looks })).toEqual(refused);
    },
  );

  test("is said as it was given", () => {
    expect(settlePolicy({ lease: "60" })).toMatchObject({ reason: expect.stringContaining('got "60"') });
    expect(settlePolicy({ lease: Number.NaN })).toMatchObject({ reason: expect.stringContaining("got NaN") });
  });
});

describe("a setting of another name", () => {
  test("is refused by its name, so that a slip of the pen does not pass for a default", () => {
    const settings: object = { leaseMs: 5_000 };
    expect(settlePolicy({ ...settings })).toEqual({
      kind: "bad",
      field: "leaseMs",
      reason: "unknown setting",
    });
  });

  test("that is not set at all is as if it were not there", () => {
    const settings = { lease: undefined };
    expect(settlePolicy(JSON.parse(JSON.stringify(settings)))).toEqual(settlePolicy({}));
  });
});

describe("settings that contradict each other", () => {
  test("a lease that does not outlive the request is refused, equal ones too", () => {
    for (const lease of ["30s", "29999ms"]) {
      const refused = {
        kind: "bad",
        field: "lease",
        reason: expect.stringMatching(/longer than requestTimeout \(30000 ms\)/),
      };
      expect(settlePolicy({ requestTimeout: "30s", lease })).toEqual(refused);
    }
    expect(settlePolicy({ requestTimeout: "30s", lease: 30_001 }).kind).toBe("policy");
  });

  test("a retention below the lease is refused, and one as long as it is not", () => {
    const refused = {
      kind: "bad",
      field: "retention",
      reason: expect.stringMatching(/shorter than the lease \(30000 ms\)/),
    };
    expect(settlePolicy({ lease: "30s", retention: 29_999 })).toEqual(refused);
    expect(settlePolicy({ lease: "30s", retention: "30s" }).kind).toBe("policy");
  });

  test("a retention below the request's own timeout is refused", () => {
    expect(settlePolicy({ requestTimeout: "2m", retention: "1m" })).toMatchObject({
      kind: "bad",
      field: "retention",
    });
  });
});

describe("defaults follow what is set", () => {
  /** As short as two milliseconds: in one there is no room for a request and its lease. */
  const usable = fc.oneof(fc.integer({ min: 2, max: 99 }), fc.integer({ min: 2, max: 3_650 * DAY_MS }));
  const holds = (property: fc.IProperty<unknown[]>) => fc.assert(property, { seed: seed(), numRuns: 500 });

  test.each(DURATIONS)("any %s alone gives a usable policy, and stays as it is", (field) => {
    holds(
      fc.property(usable, (ms) => {
        const policy = settled({ [field]: ms });
        expect(policy[`${field}Ms`]).toBe(ms);
        isUsable(policy);
      }),
    );
  });

  test("any two that do not contradict each other give a usable policy, and stay as they are", () => {
    holds(
      fc.property(usable, usable, (one, other) => {
        const [short, long] = [Math.min(one, other), Math.max(one, other) + 1];
        for (const pair of [
          { requestTimeout: short, lease: long },
          { requestTimeout: short, retention: long },
          { lease: short, retention: long },
        ]) {
          if (long > 3_650 * DAY_MS) continue;
          const policy = settled(pair);
          isUsable(policy);
          for (const [field, ms] of Object.entries(pair)) {
            expect(new Map(Object.entries(policy)).get(`${field}Ms`), field).toBe(ms);
          }
        }
      }),
    );
  });

  test("a lease or a retention of one millisecond is refused by its name: no request fits into it", () => {
    expect(settlePolicy({ lease: 1 })).toMatchObject({ kind: "bad", field: "lease" });
    expect(settlePolicy({ retention: 1 })).toMatchObject({ kind: "bad", field: "retention" });
  });

  test("a shorter request has a shorter lease, a shorter lease a shorter request", () => {
    expect(settled({ requestTimeout: "2s" })).toMatchObject({ leaseMs: 3_000, heartbeatMs: 1_000 });
    expect(settled({ lease: "3s" })).toMatchObject({ requestTimeoutMs: 2_000, heartbeatMs: 1_000 });
    expect(settled({ lease: "90s" })).toEqual(settled({}));
  });

  test("a longer request has a longer lease, and a lease longer than a day a longer retention", () => {
    expect(settled({ requestTimeout: "10m" })).toMatchObject({ leaseMs: 900_000, retentionMs: DAY_MS });
    expect(settled({ requestTimeout: "20h" })).toMatchObject({
      leaseMs: 108_000_000,
      retentionMs: 108_000_000,
    });
    expect(settled({ lease: "2d" })).toMatchObject({ requestTimeoutMs: 60_000, retentionMs: 2 * DAY_MS });
  });

  test("what was released is kept as long as an answer would be, where nothing else is said", () => {
    expect(settled({ retention: "7d" })).toMatchObject({ releasedRetentionMs: 7 * DAY_MS });
    expect(settled({ lease: "2d" })).toMatchObject({ releasedRetentionMs: 2 * DAY_MS });
    expect(settled({ retention: "3s" })).toMatchObject({ releasedRetentionMs: DAY_MS });
    expect(settled({ retention: "7d", releasedRetention: "1h" })).toMatchObject({
      releasedRetentionMs: 3_600_000,
    });
  });

  test("a key in doubt is remembered as long as one that has finished, where nothing else is said", () => {
    expect(settled({ tombstone: "365d" })).toMatchObject({ unknownRetentionMs: 366 * DAY_MS });
    expect(settled({ tombstone: "1d" })).toMatchObject({ unknownRetentionMs: 30 * DAY_MS });
    expect(settled({ tombstone: "365d", unknownRetention: "1d" })).toMatchObject({
      unknownRetentionMs: DAY_MS,
    });
  });

  test("a short retention shortens lease and request", () => {
    const { requestTimeoutMs, leaseMs, retentionMs } = settled({ retention: "3s" });
    expect({ requestTimeoutMs, leaseMs, retentionMs }).toEqual({
      requestTimeoutMs: 2_000,
      leaseMs: 3_000,
      retentionMs: 3_000,
    });
  });
});

function settled(settings: PolicySettings): Policy {
  const result = settlePolicy(settings);
  if (result.kind === "bad") throw new Error(`${result.field} ${result.reason}`);
  return result.policy;
}

function isUsable(policy: Policy): void {
  const odd = Object.entries({ ...policy, tombstoneMs: policy.tombstoneMs ?? 1 }).filter(
    ([, value]) => !Number.isSafeInteger(value) || value <= 0,
  );
  const { requestTimeoutMs, leaseMs, heartbeatMs, retentionMs } = policy;
  const related = requestTimeoutMs < leaseMs && heartbeatMs < leaseMs && leaseMs <= retentionMs;
  expect(odd.length === 0 && related, JSON.stringify(policy)).toBe(true);
}
