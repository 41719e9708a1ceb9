import { describe, expect, test } from "vitest";
import type { Identity } from "../../src/core/record.ts";
import { type PersonsVerdict, type Resolved, resolve } from "../../src/worker/resolve.ts";
import { reconcile } from "../../src/worker/tick.ts";
import { type Bank, type Mood, openBank, order, paying } from "../engine/bank.ts";
import {
  died,
  engineOn,
  ofType,
  proceeded,
  requestFor,
  sqlEngineOn,
  standing,
  textOf,
} from "../engine/engines.ts";
import { type Opened, onEverySqlStore, onEveryStore, type Sql } from "../engine/stores.ts";
import { until } from "../support/processes.ts";
import { seededRandom } from "../support/seed.ts";

const BY = { actor: "ada", reason: "The provider's support said so." };

describe("a person's verdict", () => {
  onEveryStore((given) => {
    decides(given);
    refuses(given);
  });
  onEverySqlStore((given) => {
    operations(given);
    races(given);
  });
});

/** An attempt without declared effects that died: `unknown` and held. */
async function held({ store }: Opened, key: string): Promise<Identity> {
  const request = requestFor(key);
  const attempt = await died(store, request);
  await attempt.abandon("The process had to stop.");
  expect(await standing(store, request)).toMatchObject({ state: "unknown", disposition: "hold" });
  return request.identity;
}

function decides(given: () => Opened): void {
  test.each([
    [{ kind: "completed", answer: { status: 201, json: { id: 7 } } }, "completed"],
    [{ kind: "failed", answer: { status: 402, json: { declined: true } } }, "failed_permanent"],
    [{ kind: "not_happened" }, "released"],
  ] as const)("%o ends what is held, and is in the log before and after", async (verdict, state) => {
    const { store } = given();
    const { engine, events } = engineOn(store);
    const identity = await held(given(), `held ${verdict.kind}`);
    const before = (await store.read(identity)).record;
    const resolved = await resolve(engine, identity, verdict, BY);
    expect(resolved).toMatchObject({ kind: "resolved", record: { state } });
    const after = (await store.read(identity)).record;
    expect(after?.state).toBe(state);
    expect(after?.owner).not.toBe(before?.owner);
    expect(after?.attempt).toBeGreaterThan(before?.attempt ?? 0);
    const logged = { action: `resolve ${verdict.kind}`, ...BY, before: "unknown" };
    expect((await store.audits(identity)).map((entry) => entry)).toMatchObject([
      { ...logged, after: null },
      { ...logged, after: state },
    ]);
    expect(ofType(events, "transition")).toMatchObject([{ by: "person", from: "unknown", to: state }]);
    const begun = await engine.begin(requestFor(`held ${verdict.kind}`));
    if (verdict.kind === "not_happened") return void proceeded(begun);
    if (begun.kind !== "replay") throw new Error(`It was ${begun.kind}.`);
    expect(textOf(begun.answer)).toBe(JSON.stringify(verdict.answer.json));
  });

  test("ends an attempt whose lease has lapsed, which changes nothing afterwards", async () => {
    const { store } = given();
    const request = requestFor("lapsed");
    const attempt = await died(store, request);
    const { engine } = engineOn(store);
    expect(await resolve(engine, request.identity, { kind: "not_happened" }, BY)).toMatchObject({
      kind: "resolved",
    });
    expect(await attempt.complete({ status: 200, headers: [], body: null })).toMatchObject({ kind: "lost" });
    expect(await standing(store, request)).toMatchObject({ state: "released" });
  });
}

function refuses(given: () => Opened): void {
  test("is refused while the attempt is alive: only it knows", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = requestFor("alive");
    proceeded(await engine.begin(request));
    const before = await standing(store, request);
    const resolved = await resolve(engine, request.identity, { kind: "not_happened" }, BY);
    expect(resolved).toMatchObject({ kind: "running", leaseLeftMs: expect.any(Number) });
    expect(await standing(store, request)).toEqual(before);
    expect(await store.audits(request.identity)).toEqual([]);
  });

  test("learns what stands where it comes too late, and of a key that nobody has used", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const identity = await held(given(), "twice");
    await resolve(engine, identity, { kind: "completed", answer: { status: 201 } }, BY);
    const second = await resolve(engine, identity, { kind: "not_happened" }, BY);
    expect(second).toMatchObject({ kind: "ended", record: { state: "completed" } });
    const nobody = requestFor("nobody's").identity;
    expect(await resolve(engine, nobody, { kind: "not_happened" }, BY)).toEqual({ kind: "absent" });
  });

  test.each([
    [{ kind: "not_happened" }, { actor: "ada", reason: " " }, /reason/],
    [{ kind: "not_happened" }, { actor: "", reason: "Because." }, /actor/],
    [{ kind: "failed", answer: { status: 201 } }, BY, /400 to 499/],
    [{ kind: "completed", answer: { status: 503 } }, BY, /500 or above/],
    [{ kind: "found", result: () => 1 }, BY, /cannot be kept/],
  ] as const)("%o by %o is refused before anything is written", async (verdict, by, said) => {
    const { store } = given();
    const { engine } = engineOn(store);
    const identity = await held(given(), `refused ${said}`);
    const before = (await store.read(identity)).record;
    await expect(resolve(engine, identity, verdict, by)).rejects.toThrow(said);
    expect((await store.read(identity)).record).toEqual(before);
    expect(await store.audits(identity)).toEqual([]);
  });

  test("cannot finish an operation that this engine does not know", async () => {
    const { engine } = engineOn(given().store);
    const identity = await held(given(), "strange");
    const resolved = await resolve(engine, identity, { kind: "found", result: { number: 1 } }, BY);
    expect(resolved).toMatchObject({ kind: "operation_unknown" });
  });
}

async function inReview<Tx>(sql: Sql<Tx>, bank: Bank, key: string, mood: Mood) {
  const told = sqlEngineOn(sql.store);
  const made = paying(told.engine, sql, bank, { provider: "blind" });
  bank.setMood(mood);
  expect(await made.pay(order(key))).toMatchObject({ kind: "in_doubt" });
  bank.setMood("well");
  return { ...told, ...made };
}

function operations<Tx>(given: () => Sql<Tx>): void {
  test("with the provider's result finishes the operation: its row and its answer", async () => {
    const bank = openBank();
    const { engine, pay } = await inReview(given(), bank, "found", "pays silently");
    const verdict = { kind: "found", result: { kind: "paid", number: 1 } } as const;
    expect(await resolve(engine, order("found").identity, verdict, BY)).toMatchObject({ kind: "resolved" });
    expect(await given().rows("found")).toMatchObject([{ state: "paid" }]);
    expect(await pay(order("found"))).toMatchObject({ kind: "replay", answer: { status: 201 } });
    expect(bank.asked).toHaveLength(1);
  });

  test("that nothing happened abandons the operation's row, and lets the key run again", async () => {
    const bank = openBank();
    const { engine, pay } = await inReview(given(), bank, "nothing", "loses requests");
    const stranger = engineOn(given().store).engine;
    expect(await resolve(stranger, order("nothing").identity, { kind: "not_happened" }, BY)).toMatchObject({
      kind: "operation_unknown",
    });
    await resolve(engine, order("nothing").identity, { kind: "not_happened" }, BY);
    expect(await given().rows("nothing")).toMatchObject([{ state: "abandoned" }]);
    expect(await pay(order("nothing"))).toMatchObject({ kind: "settled" });
    expect(await given().rows("nothing")).toMatchObject([{ state: "paid" }]);
  });

  test("whose finish fails is kept, and the reconciler finishes with it", async () => {
    const bank = openBank();
    let fails = true;
    const told = sqlEngineOn(given().store);
    const { pay, definition } = paying(told.engine, given(), bank, {
      provider: "blind",
      finish: (tx, finishing) => {
        if (fails) throw new TypeError("a bug in finish");
        return whole.definition.finish(tx, finishing);
      },
    });
    const whole = paying(sqlEngineOn(given().store).engine, given(), bank);
    expect(definition.name).toBe("pay");
    bank.setMood("pays silently");
    await pay(order("kept"));
    const verdict = { kind: "found", result: { kind: "paid", number: 1 } } as const;
    const resolved = await resolve(told.engine, order("kept").identity, verdict, BY);
    expect(resolved).toMatchObject({ kind: "kept_for_later", record: { state: "unknown" } });
    fails = false;
    await until(async () => (await reconcile(told.engine)).settled === 1);
    expect(await given().rows("kept")).toMatchObject([{ state: "paid" }]);
  });
}

/** Two persons, a reconciler and the provider's late answer at once: whatever wins, the rows and the record agree. */
function races<Tx>(given: () => Sql<Tx>): void {
  test("may race the late answer, the reconciler and another person: one wins, and each of the others learns", async () => {
    const random = seededRandom();
    const won = new Map<string, number>();
    for (let round = 0; round < 12; round += 1) {
      const key = `race ${round}`;
      const bank = openBank();
      const original = sqlEngineOn(given().store);
      const { pay } = paying(original.engine, given(), bank);
      bank.setMood("stalls");
      await pay({ ...order(key), maxRunMs: 20 });
      const others = [given().store, given().other, given().other].map((store) => {
        const told = sqlEngineOn(store);
        paying(told.engine, given(), bank);
        return told.engine;
      });
      const [first, second, third] = others;
      if (first === undefined || second === undefined || third === undefined)
        throw new Error("Three were made.");
      const { identity } = order(key);
      const paid = { kind: "found", result: { kind: "paid", number: 1 } } as const;
      const word = (engine: typeof first, verdict: PersonsVerdict) => () =>
        resolve(engine, identity, verdict, BY);
      const rivals: readonly (() => Promise<Resolved | undefined>)[] = [
        word(first, paid),
        word(second, { kind: "not_happened" }),
        async () => void (await reconcile(third)),
        async () => void bank.goOn(),
      ];
      const said = await Promise.all(
        rivals.map(async (rival, n) => {
          // In some rounds the persons have a start, so that each kind of end is seen.
          const waitMs = random.below(12) + (n >= 2 && round % 4 === 0 ? 300 : 0);
          await new Promise((resolve) => setTimeout(resolve, waitMs));
          return await rival();
        }),
      );
      const winners = said.filter((each) => each?.kind === "resolved");
      expect(winners.length).toBeLessThanOrEqual(1);
      await until(async () => (await standing(given().store, order(key))).state !== "unknown");
      const record = await standing(given().store, order(key));
      const [row, ...more] = await given().rows(key);
      expect(more).toEqual([]);
      expect([record.state, row?.state]).toEqual(
        record.state === "completed" ? ["completed", "paid"] : ["released", "abandoned"],
      );
      for (const each of said)
        if (each !== undefined && each.kind !== "resolved") expect(["ended", "taken"]).toContain(each.kind);
      if (winners[0]?.kind === "resolved") expect(winners[0].record.state).toBe(record.state);
      const how = winners.length === 1 ? "a person" : "somebody else";
      won.set(how, (won.get(how) ?? 0) + 1);
    }
    expect(won.get("a person") ?? 0).toBeGreaterThan(0);
  });
}
