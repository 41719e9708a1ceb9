import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import type { EngineSettings } from "../../src/engine/engine.ts";
import { type SealingKey, sealedStore } from "../../src/stores/sealed/index.ts";
import { resolve } from "../../src/worker/resolve.ts";
import { reconcile, sweep } from "../../src/worker/tick.ts";
import { freshSqliteFile, sqliteDriver } from "../support/databases.ts";
import { startProcess, until } from "../support/processes.ts";
import { openBank, order, type Paid, paying } from "./bank.ts";
import { BLIND, checkedOut, checkout, ran } from "./declared-calls.ts";
import { ofType, proceeded, requestFor, sqlEngineOn, standing, textOf } from "./engines.ts";
import { onEverySqlStore, rowOf, type Sql } from "./stores.ts";

describe("an engine on a sealed store", () => {
  onEverySqlStore((given) => {
    declared(given);
    marks(given);
    operations(given);
    doubts(given);
    transactions(given);
    kills(given);
  });
});

const key = (id: string): SealingKey => ({ id, secret: `${id} is a secret that has more than 32 bytes` });
const [OLD, NEW] = [key("old"), key("new")];
const BY = { actor: "ada", reason: "The provider's support said so." };

/** The same records as a process sees them that has these keys. */
function sealed<Tx>(sql: Sql<Tx>, keys: readonly SealingKey[]): Sql<Tx> {
  return { ...sql, store: sealedStore(sql.store, { keys }), other: sealedStore(sql.other, { keys }) };
}

function declared<Tx>(given: () => Sql<Tx>): void {
  const request = checkout("steps");
  const goesOn =
    (calls: string[], end: "fails" | "ends") =>
    async ({ effect }: Parameters<Parameters<typeof ran>[2]>[0]) => {
      calls.push("run");
      const charge = await effect("charge", BLIND, async () => {
        calls.push("charge");
        return { id: "sk_live_123" };
      });
      if (end === "fails") throw new Error("The order table is gone.");
      return charge.id;
    };

  test("goes on behind a finished step by its sealed result, also under a new key", async () => {
    const calls: string[] = [];
    const first = sqlEngineOn(sealed(given(), [OLD]).store).engine;
    expect(await ran(first, request, goesOn(calls, "fails"))).toMatchObject({ kind: "threw" });
    const next = sqlEngineOn(sealed(given(), [NEW, OLD]).store).engine;
    expect(await ran(next, request, goesOn(calls, "ends"))).toEqual({ kind: "first", value: "sk_live_123" });
    expect(calls).toEqual(["run", "charge", "run"]);
    const only = sqlEngineOn(sealed(given(), [NEW]).store).engine; // everything was written anew
    expect(await ran(only, request, goesOn(calls, "ends"))).toEqual({
      kind: "replayed",
      value: "sk_live_123",
    });
  });

  test("runs nothing where the result of a finished step has lost its key, and says so", async () => {
    const calls: string[] = [];
    const first = sqlEngineOn(sealed(given(), [OLD]).store).engine;
    await ran(first, request, goesOn(calls, "fails"));
    const before = await checkedOut(given().store, request);
    for (const blind of [sealed(given(), [NEW]), given()]) {
      const { engine, events } = sqlEngineOn(blind.store);
      expect(await ran(engine, request, goesOn(calls, "ends"))).toMatchObject({ kind: "record_corrupt" });
      expect(ofType(events, "record_corrupt")).toMatchObject([
        { error: expect.objectContaining({ message: expect.stringMatching(/sealed, and the key is not/) }) },
      ]);
    }
    expect(calls).toEqual(["run", "charge"]);
    expect(await checkedOut(given().store, request)).toEqual(before);
    const again = sqlEngineOn(sealed(given(), [OLD]).store).engine;
    expect(await ran(again, request, goesOn(calls, "ends"))).toMatchObject({ kind: "first" });
    expect(calls).toEqual(["run", "charge", "run"]);
  });
}

function marks<Tx>(given: () => Sql<Tx>): void {
  test("a key that is lost holds up no request of which nothing is kept but our own marks", async () => {
    const request = requestFor("begun", { effectsBegin: true });
    const { engine } = sqlEngineOn(sealed(given(), [OLD]).store);
    await proceeded(await engine.begin(request)).release();
    const { engine: blind } = sqlEngineOn(sealed(given(), [NEW]).store);
    expect(await blind.begin(request)).toMatchObject({ kind: "proceed" });
  });

  test("an execution with a name comes back to its key, whatever became of the keys of the ring", async () => {
    const request = { operation: "order", principal: "alice", key: "exec", input: 1, execution: "exec-1" };
    const { engine } = sqlEngineOn(sealed(given(), [OLD]).store);
    const suspended = engine.run(request, () => Promise.reject(new Error("suspended")));
    await expect(suspended).rejects.toThrow("suspended");
    const { engine: blind } = sqlEngineOn(sealed(given(), [NEW]).store);
    expect(await blind.run(request, () => "done")).toBe("done");
  });
}

/** A payment that the bank made, whose answer never came. */
async function doubtful<Tx>(sql: Sql<Tx>, name: string, changed: Parameters<typeof paying<Tx>>[3] = {}) {
  const bank = openBank();
  bank.setMood(changed.finish === undefined ? "pays silently" : "well");
  const { pay } = paying(sqlEngineOn(sql.store).engine, sql, bank, changed);
  await pay(order(name));
  bank.setMood("well");
  expect(await standing(sql.store, order(name))).toMatchObject({ state: "unknown" });
  return bank;
}

function worker<Tx>(sql: Sql<Tx>, bank: Awaited<ReturnType<typeof doubtful>>, settings: EngineSettings = {}) {
  const told = sqlEngineOn(sql.store, { reconcileInterval: 1, ...settings });
  return { ...told, ...paying(told.engine, sql, bank) };
}

function operations<Tx>(given: () => Sql<Tx>): void {
  test("an operation's sealed reference lets any worker with the key end it", async () => {
    const bank = await doubtful(sealed(given(), [OLD]), "op");
    const { engine, pay } = worker(sealed(given(), [NEW, OLD]), bank);
    expect(await reconcile(engine)).toMatchObject({ settled: 1 });
    expect(await given().rows("op")).toMatchObject([{ state: "paid" }]);
    expect(await pay(order("op"))).toMatchObject({ kind: "replay", answer: { status: 201 } });
    expect(bank.asked).toHaveLength(1);
  });

  test("a worker without the key asks nobody and ends nothing; with the key it is ended all the same", async () => {
    const bank = await doubtful(sealed(given(), [OLD]), "blind");
    const { engine, events } = worker(sealed(given(), [NEW]), bank);
    expect(await reconcile(engine)).toMatchObject({ waiting: 1, settled: 0, released: 0 });
    expect(bank.looks()).toBe(0);
    expect(ofType(events, "failure")).toMatchObject([{ what: "reading what is kept of pay" }]);
    expect(await standing(given().store, order("blind"))).toMatchObject({
      state: "unknown",
      looks: 1,
      evidence: { reason: expect.stringMatching(/sealed/) },
    });
    const { engine: seeing } = worker(sealed(given(), [NEW, OLD]), bank);
    await until(async () => (await reconcile(seeing)).settled === 1);
    expect(await given().rows("blind")).toMatchObject([{ state: "paid" }]);
    expect(bank.asked).toHaveLength(1);
  });

  test("a key that is lost for good leaves it to a person, whose own answer is kept", async () => {
    const bank = await doubtful(sealed(given(), [OLD]), "lost");
    const blind = sealed(given(), [NEW]);
    const { engine, pay } = worker(blind, bank, { maxReconcileLooks: 2 });
    await until(async () => (await reconcile(engine)).reviewed === 1);
    expect(await standing(blind.store, order("lost"))).toMatchObject({ disposition: "review" });
    expect(await pay(order("lost"))).toMatchObject({ kind: "outcome_unknown" });
    const { identity } = order("lost");
    for (const verdict of [
      { kind: "found", result: { kind: "paid", number: 1 } },
      { kind: "not_happened" },
    ] as const)
      expect(await resolve(engine, identity, verdict, BY)).toMatchObject({ kind: "sealed" });
    expect(await given().store.audits(identity)).toEqual([]);
    const verdict = { kind: "completed", answer: { status: 201, json: { number: 1 } } } as const;
    expect(await resolve(engine, identity, verdict, BY)).toMatchObject({ kind: "resolved" });
    expect(await pay(order("lost"))).toMatchObject({ kind: "replay", answer: { status: 201 } });
    expect([bank.looks(), bank.asked.length]).toEqual([0, 1]);
  });
}

function doubts<Tx>(given: () => Sql<Tx>): void {
  test("what a provider said, and could not be finished, is found by who has the key and by nobody else", async () => {
    const finish = () => {
      throw new Error("The table of payments is locked.");
    };
    const bank = await doubtful(sealed(given(), [OLD]), "said", { finish });
    const raw = await standing(given().store, order("said"));
    if (raw.state !== "unknown" || raw.evidence.result === null) throw new Error("Nothing was kept.");
    const blind = worker(sealed(given(), [NEW]), bank);
    await until(async () => (await reconcile(blind.engine)).waiting === 1);
    expect(await given().rows("said")).toMatchObject([{ state: "pending" }]);
    const seeing = worker(sealed(given(), [OLD]), bank);
    await until(async () => (await reconcile(seeing.engine)).settled === 1);
    expect(await given().rows("said")).toMatchObject([{ state: "paid" }]);
    expect([bank.looks(), bank.asked.length]).toEqual([0, 1]);
  });
}

function transactions<Tx>(given: () => Sql<Tx>): void {
  test.each(["one", "two"] as const)(
    "an answer that is committed with its effect in commits: %s is sealed, and not stored once its key is lost",
    async (commits) => {
      const { put, rows } = given();
      const request = requestFor(`in ${commits}`, { effects: "transaction", commits });
      const body = new TextEncoder().encode("sk_live_123");
      const commit = async (keys: readonly SealingKey[]) => {
        const { engine, events } = sqlEngineOn(sealed(given(), keys).store);
        const begun = await engine.begin(request);
        if (begun.kind !== "proceed") return { end: begun, events };
        const answer = { status: 201, headers: [], body };
        const end = await proceeded(begun).transaction((tx) => {
          const done = put(tx, rowOf(request.identity.key));
          const kept = { kind: "keep", state: "completed", answer, value: null } as const;
          return done === undefined ? kept : Promise.resolve(done).then(() => kept);
        });
        return { end: end.kind === "answered" ? end.answered : end, events };
      };
      expect((await commit([OLD])).end).toMatchObject({ kind: "committed", record: { answer: { body } } });
      const raw = await standing(given().store, request);
      expect(raw).toMatchObject({ state: "completed", answer: { status: 201, body: null } });
      const { end: replay } = await commit([NEW, OLD]);
      if (replay.kind !== "replay") throw new Error(`It was ${replay.kind}.`);
      expect(textOf(replay.answer)).toBe("sk_live_123");
      const lost = await commit([NEW]);
      expect(lost.end).toMatchObject({ kind: "response_not_stored", answer: { status: 201, body: null } });
      const told = ofType(lost.events, "failure").map(({ error }) => String(error));
      expect(told).toEqual([expect.stringMatching(/sealed by the key "old", which is not in the ring/)]);
      expect(await rows(request.identity.key)).toHaveLength(1);
    },
  );
}

function kills<Tx>(given: () => Sql<Tx>): void {
  test.each(["after the payment", "in finish", "before the answer"])(
    "a process that is killed %s is ended by a worker with the key: one payment, one row, nothing readable",
    async (moment) => {
      const { rows, url } = given();
      const { path, remove } = freshSqliteFile();
      const file = new (sqliteDriver())(path);
      file.exec("CREATE TABLE payments (key TEXT PRIMARY KEY)");
      onTestFinished(() => {
        file.close();
        remove();
      });
      const script = fileURLToPath(new URL("operation-child.mjs", import.meta.url));
      const child = await startProcess({
        ...{ command: process.execPath, args: [script, url, path, moment, moment] },
        env: { SEALING_SECRET: String(OLD.secret) },
      });
      expect([(await child.exited).signal, child.stderr]).toEqual(["SIGKILL", []]);
      const paid = () => file.prepare("SELECT key FROM payments").all();
      const raw = await standing(given().store, order(moment));
      const [row] = await rows(moment);
      expect(Buffer.from(raw.reference ?? []).includes(String(row?.id))).toBe(false);
      const seeing = sealed(given(), [NEW, OLD]);
      const { engine } = sqlEngineOn(seeing.store, { sweepGrace: 1 });
      const result: Paid = { kind: "paid", number: 1 };
      const { pay } = paying(engine, seeing, openBank(), {
        look: async () => (paid().length > 0 ? { kind: "found", result } : { kind: "not_found" }),
      });
      if (raw.state === "in_progress") {
        await until(async () => (await sweep(engine)).doubted === 1);
        expect(await reconcile(engine)).toMatchObject({ settled: 1 });
      }
      expect(await rows(moment)).toEqual([{ ...row, state: "paid" }]);
      const fingerprint = {
        version: "value 1",
        material: () => ({ raw: new Uint8Array(32), canonical: () => new Uint8Array(32) }),
      };
      expect(await pay({ ...order(moment), fingerprint })).toMatchObject({
        kind: "replay",
        answer: { status: 201 },
      });
      expect(paid()).toHaveLength(1);
    },
  );
}
