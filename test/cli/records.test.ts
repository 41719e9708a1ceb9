import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { openBank, order, paying } from "../engine/bank.ts";
import { answerOf, died, engineOn, proceeded, requestFor, sqlEngineOn, standing } from "../engine/engines.ts";
import { onEverySqlStore, type Sql } from "../engine/stores.ts";
import { endedAgo } from "../engine/tombstones.ts";
import { commandIsBuilt, oncekey } from "../support/command.ts";

beforeAll(commandIsBuilt);

const CONFIG = fileURLToPath(new URL("configured.mjs", import.meta.url));

describe("oncekey", () => {
  onEverySqlStore((given) => {
    counts(given); // before those that let workers be seen
    shows(given);
    decides(given);
    ticks(given);
    remembers(given);
  });

  const wrong: readonly (readonly [what: string, parameters: readonly string[], said: RegExp])[] = [
    ["no place", ["list"], /name a database by its URL, or an engine by --config/],
    ["two places", ["list", "sqlite:x.db", "--config", "y.mjs"], /a URL or --config, not both/],
    [
      "a setting beside a configuration",
      ["sweep", "--config", "y.mjs", "--sweep-grace", "1s"],
      /own settings hold/,
    ],
    ["a bad duration", ["sweep", "sqlite:x.db", "--sweep-grace", "soon"], /positive number/],
    ["no record named", ["show", "sqlite:x.db", "--key", "k"], /--principal and --key/],
    ["no reason", ["release", "sqlite:x.db", "--principal", "p", "--key", "k"], /--reason/],
    [
      "a blank reason",
      ["release", "sqlite:x.db", "--principal", "p", "--key", "k", "--reason", " "],
      /must say why/,
    ],
    ["nothing chosen", ["release", "sqlite:x.db", "--reason", "r"], /name one record/],
    [
      "one and many",
      ["release", "sqlite:x.db", "--reason", "r", "--key", "k", "--operation", "o"],
      /not both/,
    ],
    ["no verdict", ["resolve", "sqlite:x.db", "--reason", "r", "--operation", "o"], /--as/],
    [
      "a verdict without its answer",
      ["resolve", "sqlite:x.db", "--reason", "r", "--operation", "o", "--as", "found"],
      /--result/,
    ],
    [
      "no JSON",
      ["resolve", "sqlite:x.db", "--reason", "r", "--operation", "o", "--as", "found", "--result", "{"],
      /must be JSON/,
    ],
    [
      "a time that is none",
      ["release", "sqlite:x.db", "--reason", "r", "--since", "today"],
      /must be a time/,
    ],
  ];
  test.each(wrong)("%s makes no sense: 2", async (_what, parameters, said) => {
    const { code, stdout, stderr } = await oncekey(...parameters);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(said);
  });

  test("a file that is not there is a failure, and is not made", async () => {
    const { code, stderr } = await oncekey("list", "sqlite:/nowhere/at.all");
    expect([code, stderr]).toEqual([1, expect.stringMatching(/There is no file/)]);
  });
});

/** Requests whose outcome is unknown and held, by their keys. */
async function held<Tx>({ store }: Sql<Tx>, ...keys: readonly string[]): Promise<void> {
  const { engine } = engineOn(store);
  for (const key of keys) {
    const request = requestFor(key, { correlationId: `trace ${key}` });
    await proceeded(await engine.begin(request)).abandon("The process had to stop.");
  }
}

const ALICE = ["--principal", "alice"];
const REASON = ["--reason", "Support said so.", "--actor", "ada"];

function shows<Tx>(given: () => Sql<Tx>): void {
  test("list and show tell of records without their answers, for people and as JSON", async () => {
    const { store, url } = given();
    await held(given(), "one \u001b[31m", "two");
    const { engine } = engineOn(store);
    const secret = requestFor("answered");
    await proceeded(await engine.begin(secret)).complete(answerOf("a secret"));
    const listed = await oncekey("list", url);
    expect(listed).toMatchObject({ code: 0, stderr: "" });
    expect(listed.stdout).toMatch(/unknown \(hold\) +POST \/payments +alice +one/);
    expect(listed.stdout).not.toContain("\u001b");
    const some = JSON.parse(
      (await oncekey("list", url, "--state", "unknown", "--limit", "1", "--json")).stdout,
    );
    expect(some.records).toHaveLength(1);
    const shown = await oncekey("show", url, ...ALICE, "--key", "answered", "--json");
    expect(JSON.parse(shown.stdout).record).toMatchObject({
      state: "completed",
      answer: { status: 201, bodyBytes: 8 },
    });
    const told = await oncekey("show", url, ...ALICE, "--key", "answered");
    expect(shown.stdout + told.stdout + listed.stdout).not.toContain("a secret");
    expect(await oncekey("show", url, ...ALICE, "--key", "nobody's")).toMatchObject({
      ...{ code: 1, stderr: expect.stringMatching(/There is no record/) },
    });
  });
}

function remembers<Tx>(given: () => Sql<Tx>): void {
  test("list, show, stats and purge tell what has expired, and of what only the tombstone is left", async () => {
    const { store, url } = given();
    const { engine } = engineOn(store, { tombstone: "1h" });
    await proceeded(await engine.begin(requestFor("worn"))).complete(answerOf("a secret"));
    const shown = async () =>
      JSON.parse((await oncekey("show", url, ...ALICE, "--key", "worn", "--json")).stdout);
    const before = (await shown()).record;
    expect(before).toMatchObject({ expired: false, answer: { status: 201, bodyBytes: 8 } });
    expect(Date.parse(before.tombstoneUntil) - Date.parse(before.retainUntil)).toBe(3_600_000);
    await endedAgo(store, requestFor("worn").identity, 1);
    expect((await oncekey("list", url)).stdout).toMatch(
      /completed \(expired\) +POST \/payments +alice +worn/,
    );
    const { tombstones } = JSON.parse((await oncekey("stats", url, "--json")).stdout);
    expect((await oncekey("purge", url)).stdout).toMatch(/purged 1\b/);
    const { retainUntil, tombstoneUntil } = (await shown()).record;
    expect(Date.parse(tombstoneUntil) - Date.parse(retainUntil)).toBe(3_600_000);
    expect((await shown()).record).toMatchObject({ expired: true, answer: { status: 201, bodyBytes: null } });
    expect(JSON.parse((await oncekey("stats", url, "--json")).stdout).tombstones).toBe(tombstones + 1);
    expect((await oncekey("stats", url)).stdout).toMatch(/^only the tombstone left +\d+$/m);
  });
}

function counts<Tx>(given: () => Sql<Tx>): void {
  test("stats tells how many there are, how old the oldest are, and which workers are at work", async () => {
    const { store, url } = given();
    await held(given(), "one", "two");
    proceeded(await engineOn(store).engine.begin(requestFor("running")));
    await store.beat("sweeper");
    expect(JSON.parse((await oncekey("stats", url, "--json")).stdout)).toMatchObject({
      byState: { in_progress: 1, unknown: 2, completed: 0 },
      byDisposition: { hold: 2 },
      ...{ oldestInProgressMs: expect.any(Number), oldestUnknownMs: expect.any(Number) },
      ...{ endedNotPurged: 0, oldestEndedMs: null },
      workers: { sweeper: "ok", purge: "absent" },
    });
    const { code, stdout } = await oncekey("stats", url);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^unknown \(hold\) +2$[\s\S]*^in_progress +\d+ s$[\s\S]*^sweeper +ok$/m);
  });
}

function decides<Tx>(given: () => Sql<Tx>): void {
  test("resolve ends one by a person's word, which is in its log; a second time it is told what stands: 1", async () => {
    const { store, url } = given();
    await held(given(), "one");
    const completed = ["--as", "completed", "--status", "201", "--answer", '{"id":7}'];
    const first = await oncekey("resolve", url, ...ALICE, "--key", "one", ...REASON, ...completed);
    expect(first).toMatchObject({ code: 0, stdout: expect.stringMatching(/resolved, now completed/) });
    const begun = await engineOn(store).engine.begin(requestFor("one"));
    expect(begun).toMatchObject({ kind: "replay", answer: { status: 201 } });
    const { stdout } = await oncekey("show", url, ...ALICE, "--key", "one", "--json");
    expect(JSON.parse(stdout).audits).toMatchObject([
      { actor: "ada", reason: "Support said so.", before: "unknown", after: null },
      { actor: "ada", action: "resolve completed", after: "completed" },
    ]);
    const second = await oncekey("release", url, ...ALICE, "--key", "one", ...REASON, "--json");
    expect(second.code).toBe(1);
    expect(JSON.parse(second.stdout)).toMatchObject({ outcomes: [{ outcome: "ended", state: "completed" }] });
  });

  test("release of many chooses by operation, correlation id and time; --dry-run changes nothing", async () => {
    const { store, url } = given();
    await held(given(), "one", "two", "three");
    const { createdAt } = await standing(store, requestFor("three"));
    const dry = await oncekey(
      "release",
      url,
      "--operation",
      "POST /payments",
      ...REASON,
      "--dry-run",
      "--json",
    );
    expect(JSON.parse(dry.stdout).outcomes).toHaveLength(3);
    expect(await standing(store, requestFor("two"))).toMatchObject({ state: "unknown" });
    const traced = await oncekey("release", url, "--correlation", "trace two", ...REASON);
    expect(traced).toMatchObject({ code: 0, stdout: "alice, two: resolved, now released\n" });
    const since = new Date(createdAt).toISOString();
    expect((await oncekey("release", url, "--since", since, ...REASON)).stdout).toMatch(
      /^alice, three: resolved/,
    );
    expect(await standing(store, requestFor("one"))).toMatchObject({ state: "unknown" });
    const nothing = await oncekey("release", url, "--until", "2001-01-01T00:00:00Z", ...REASON);
    expect(nothing).toMatchObject({ code: 0, stdout: "Nothing was chosen.\n" });
  });

  test("an attempt that is alive is left as it is: 1", async () => {
    const { store, url } = given();
    proceeded(await engineOn(store).engine.begin(requestFor("alive")));
    const refused = await oncekey("release", url, ...ALICE, "--key", "alive", ...REASON);
    expect(refused).toMatchObject({ code: 1, stdout: expect.stringMatching(/its attempt is alive/) });
  });

  test("with --config a result finishes the operation, its row included", async () => {
    const { store, url, rows } = given();
    const { pay } = await lost(given(), "found");
    process.env["STORE_URL"] = url;
    const verdict = ["--as", "found", "--result", '{"kind":"paid","number":1}'];
    const named = [...ALICE, "--key", "found", ...REASON];
    expect((await oncekey("resolve", url, ...named, ...verdict)).stdout).toMatch(
      /not known here: give --config/,
    );
    const resolved = await oncekey("resolve", "--config", CONFIG, ...named, ...verdict);
    expect(resolved).toMatchObject({ code: 0, stdout: expect.stringMatching(/now completed/) });
    expect(await rows("found")).toMatchObject([{ state: "paid" }]);
    expect(await pay(order("found"))).toMatchObject({ kind: "replay" });
    expect((await standing(store, order("found"))).state).toBe("completed");
  });
}

async function lost<Tx>(sql: Sql<Tx>, key: string) {
  const bank = openBank();
  const { pay } = paying(sqlEngineOn(sql.store).engine, sql, bank);
  bank.setMood("pays silently");
  expect(await pay(order(key))).toMatchObject({ kind: "in_doubt" });
  return { pay, bank };
}

function ticks<Tx>(given: () => Sql<Tx>): void {
  test("sweep, reconcile and purge do one tick each, and say what they did", async () => {
    const { store, url, rows } = given();
    await died(store, requestFor("dead", { effects: "transaction" }));
    const swept = await oncekey("sweep", url, "--sweep-grace", "1ms", "--released-retention", "1ms");
    expect(swept).toMatchObject({ code: 0, stdout: "released 1\n" });
    expect(await oncekey("purge", url)).toMatchObject({ code: 0, stdout: "purged 1\n" });
    expect(JSON.parse((await oncekey("sweep", url, "--json")).stdout)).toMatchObject({
      released: 0,
      more: false,
    });
    expect(await oncekey("reconcile", url)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/give --config/),
    });
    await lost(given(), "looked for");
    Object.assign(process.env, { STORE_URL: url, BANK_SAYS: "paid" });
    expect(await oncekey("reconcile", "--config", CONFIG)).toMatchObject({ code: 0, stdout: "settled 1\n" });
    expect(await rows("looked for")).toMatchObject([{ state: "paid" }]);
  });
}
