import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { callNumbers, checkWritten } from "../effects.mjs";
import { inBurstsOf, inFlightOf } from "../load.mjs";
import { readOptions } from "../options.mjs";
import { rowsOf, spread } from "../ratios.mjs";
import { tableOf } from "../report.mjs";
import { measureRounds } from "../rounds.mjs";
import { chosen } from "../selection.mjs";

const all = (calls) => calls;
const none = () => 0;
const flowNamed = (name, rest = {}) => ({
  measures: [{ name, against: [] }],
  effects: none,
  run: async () => [1],
  ...rest,
});

describe("effects that are lost or doubled", () => {
  const made = [
    { flow: flowNamed("fresh", { effects: all }), ids: [1, 2] },
    { flow: flowNamed("replay"), ids: [3, 4] },
    { flow: flowNamed("one key", { effects: () => 1 }), ids: [5, 6] },
  ];

  test("a round in which every flow wrote what it had to passes", () => {
    expect(() => checkWritten([2, 1, 6], made)).not.toThrow();
  });

  test.each([
    ["a lost one", [1, 6], /2 calls of "fresh" wrote 1 rows instead of 2/],
    ["one of a replay", [1, 2, 4, 6], /2 calls of "replay" wrote 1 rows instead of 0/],
    ["a second winner", [1, 2, 5, 6], /2 calls of "one key" wrote 2 rows instead of 1/],
    ["a second row of one call", [1, 2, 2, 6], /1 rows are the second of their call/],
    ["a row of nobody's", [1, 2, 6, 7], /1 rows were written by no call/],
  ])("%s fails the round", (_, written, expected) => {
    expect(() => checkWritten(written, made)).toThrow(expected);
  });

  test("a run ends at the first round that lost one", async () => {
    const rounds = measured({ flows: [flowNamed("fresh", { effects: all })], written: async () => [] });
    await expect(rounds).rejects.toThrow(/wrote 0 rows instead of 4/);
  });
});

describe("rounds", () => {
  test("flows take turns, every other round backwards, and the first round does not count", async () => {
    const turns = [];
    const flow = (name, costs) => {
      const run = async () => {
        turns.push(name);
        return [costs.shift()];
      };
      return flowNamed(name, { run });
    };
    const { rows } = await measured({ flows: [flow("a", [100, 1, 2]), flow("b", [200, 3, 4])], rounds: 2 });
    expect(turns.join("")).toBe("abbaab");
    expect(rows.map(({ costs }) => costs)).toEqual([
      [1, 2],
      [3, 4],
    ]);
  });

  test("no two calls have the same number", async () => {
    const seen = [];
    const run = async (ids) => {
      seen.push(...ids);
      return [1];
    };
    await measured({ flows: [flowNamed("a", { run })], rounds: 3 });
    expect(new Set(seen).size).toBe(4 * 4);
  });

  test("a section that takes too long makes three rounds and says so", async () => {
    const { rounds, rows } = await measured({ flows: [flowNamed("a")], rounds: 9, longestMs: 0 });
    expect({ rounds, costs: rows[0].costs.length }).toEqual({ rounds: 3, costs: 3 });
  });

  test("an interrupted run makes no further calls", async () => {
    const stop = new AbortController();
    let runs = 0;
    const run = async () => {
      runs += 1;
      stop.abort(new Error("enough"));
      return [1];
    };
    await expect(measured({ flows: [flowNamed("a", { run })], signal: stop.signal })).rejects.toThrow(
      "enough",
    );
    expect(runs).toBe(1);
  });
});

describe("ratios", () => {
  test("a ratio is taken within its round, and 0.5 is half as fast", () => {
    const flows = [
      flowNamed("select"),
      flowNamed("replay", { measures: [{ name: "replay", against: ["select"] }] }),
    ];
    const costs = new Map([
      ["select", [1, 10, 3]],
      ["replay", [2, 40, 3]],
    ]);
    expect(rowsOf(flows, costs)[1].ratios).toEqual([{ of: "select", median: 0.5, min: 0.25, max: 1 }]);
  });

  test("the median of an even number is the mean of the two in the middle", () => {
    expect(spread([4, 1, 10, 2])).toEqual({ median: 3, min: 1, max: 10 });
  });
});

describe("overhead", () => {
  const flows = [
    flowNamed("bare"),
    flowNamed("fresh", { measures: [{ name: "fresh", against: ["bare"], over: "bare" }] }),
  ];
  const rows = rowsOf(
    flows,
    new Map([
      ["bare", [1, 10, 4]],
      ["fresh", [2, 10.5, 2.75]],
    ]),
  );

  test("it is the difference within a round, in microseconds, and marked as of this machine", () => {
    const [bare, fresh] = rows;
    expect(bare).not.toHaveProperty("overhead");
    const spreadUs = { median: 500, min: -1_250, max: 1_000 };
    expect(fresh.overhead).toEqual({ over: "bare", unit: "µs", machineDependent: true, ...spreadUs });
  });

  test("the table tells it beside its ratio, marked as of this machine", () => {
    const sections = [{ store: "a store", rows }];
    const lines = tableOf({ loadAverage: {}, sections }).split("\n");
    const place = lines.findIndex((line) => line.includes("ON THIS MACHINE ONLY"));
    expect(lines.slice(place + 2).map((line) => line.replace(/ +/g, " "))).toEqual([
      "| fresh | 500 (-1250 – 1000) µs | 0.952 (0.500 – 1.45) | bare |",
    ]);
  });

  test("the flows of the group are asked for by its name, and bring what they are laid over", () => {
    const all = [...flows, flowNamed("replay")];
    expect(chosen(all, ["overhead"])).toEqual(flows);
  });
});

describe("load", () => {
  test.each([1, 3])("calls are made once each with %d in flight, never more", async (inFlight) => {
    const { take } = callNumbers();
    const ids = take(20);
    const made = [];
    let [now, most] = [0, 0];
    await inFlightOf(ids, inFlight, async (id) => {
      made.push(id);
      now += 1;
      most = Math.max(most, now);
      await new Promise(setImmediate);
      now -= 1;
    });
    expect({ made, most }).toEqual({ made: ids, most: inFlight });
  });

  test("a burst begins when the one before it is answered", async () => {
    const bursts = [];
    let now = 0;
    const { results } = await inBurstsOf([1, 2, 3, 4, 5], 2, (ids) => {
      bursts.push({ ids, stillRunning: now });
      return ids.map(async (id) => {
        now += 1;
        await new Promise(setImmediate);
        now -= 1;
        return id;
      });
    });
    expect(bursts.map(({ ids }) => ids)).toEqual([[1, 2], [3, 4], [5]]);
    expect(bursts.map(({ stillRunning }) => stillRunning)).toEqual([0, 0, 0]);
    expect(results).toEqual([1, 2, 3, 4, 5]);
  });
});

describe("what is asked for", () => {
  test("a flow brings those that it is compared with, and theirs, in their order", () => {
    const flows = [
      flowNamed("insert"),
      flowNamed("transaction", { measures: [{ name: "transaction", against: ["insert"] }] }),
      flowNamed("replay"),
      flowNamed("fresh", { measures: [{ name: "fresh", against: ["transaction"] }] }),
    ];
    expect(chosen(flows, ["fresh"]).map(({ measures: [{ name }] }) => name)).toEqual([
      "insert",
      "transaction",
      "fresh",
    ]);
  });

  test.each([
    [["--stores", "mysql"], /--stores knows postgres, sqlite, memory/],
    [["--rounds", "0"], /--rounds needs whole numbers/],
    [["--seconds", "1.5"], /--seconds needs whole numbers/],
    [["--in-flight", "1,x"], /--in-flight needs whole numbers/],
    [["--in-flight", "64", "--calls", "10"], /10 calls are never 64 in flight/],
    [["--in-flight", "1,8,64", "--calls", "10,80"], /--calls needs one number, or one for each/],
    [["--fast"], /--fast/],
  ])("%j is refused", (given, expected) => {
    expect(() => readOptions(given)).toThrow(expected);
  });
});

test("a run tells of every flow, in a table and in the same figures as JSON", () => {
  const folder = mkdtempSync(join(tmpdir(), "oncekey-bench-test-"));
  try {
    const json = join(folder, "figures.json");
    const { kind, url } = inject("postgres");
    const stores = kind === "running" ? ["postgres,sqlite,memory", "--database", url] : ["sqlite,memory"];
    const few = ["--stores", ...stores, "--in-flight", "2,4", "--calls", "8", "--rounds", "1"];
    const ran = spawnSync(
      process.execPath,
      [join(import.meta.dirname, "../main.mjs"), ...few, "--json", json],
      {
        encoding: "utf8",
      },
    );
    expect(ran).toMatchObject({ status: 0, stderr: "" });
    const report = JSON.parse(readFileSync(json, "utf8"));
    const names = report.sections.flatMap(({ rows }) => rows.map(({ name }) => name));
    expect(names).toEqual(expect.arrayContaining(["burst: one key", "transfer, fresh, commits one"]));
    for (const name of names) expect(ran.stdout).toContain(`| ${name} `);
    expect(ran.stdout).toBe(`${tableOf(report)}\n`);
    expect(report.sections.slice(-3).map(({ inFlight }) => inFlight)).toEqual([2, 4, 1]);
    expect(report.sections.at(-2)).toMatchObject({
      database: expect.stringMatching(/^SQLite 3/),
      driver: expect.stringMatching(/sqlite/),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

function measured(subject) {
  const { signal } = new AbortController();
  const quiet = { numbers: callNumbers(), written: async () => [], signal, onRound: () => {} };
  return measureRounds({ rounds: 1, longestMs: 60_000, calls: 4, ...quiet, ...subject });
}
