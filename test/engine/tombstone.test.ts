import { describe, expect, test } from "vitest";
import { createEngine, type EngineSettings } from "../../src/engine/engine.ts";
import { NotRun } from "../../src/engine/not-run.ts";
import { PermanentFailure } from "../../src/errors.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import type { Store } from "../../src/stores/store.ts";
import { resolve } from "../../src/worker/resolve.ts";
import { purge } from "../../src/worker/tick.ts";
import { openBank, order, paying } from "./bank.ts";
import { answerOf, engineOn, ofType, proceeded, requestFor, sqlEngineOn, standing } from "./engines.ts";
import { called, identityOf, working } from "./one-commit-calls.ts";
import { onEverySqlStore, onEveryStore, type Sql } from "./stores.ts";
import { endedAgo } from "./tombstones.ts";

/** A day of retention, and an hour of memory after it. */
const REMEMBERING: EngineSettings = { tombstone: "1h" };
const HOUR_MS = 3_600_000;

describe("a key whose retention is over", () => {
  onEveryStore((given) => {
    test("is as never seen where nothing else is said", async () => {
      const { store } = given();
      await finished(store, "plain", {});
      await endedAgo(store, requestFor("plain").identity, 1);
      expect((await engineOn(store).engine.begin(requestFor("plain"))).kind).toBe("proceed");
      expect(await standing(store, requestFor("plain"))).toMatchObject({ state: "in_progress" });
    });

    test("is remembered for as long as `tombstone` says, before the purge and after it, and then as never seen", async () => {
      const { store } = given();
      const { engine, events } = engineOn(store);
      const again = async () => (await engine.begin(requestFor("kept"))).kind;
      await finished(store, "kept");
      expect(await again()).toBe("replay");
      await endedAgo(store, requestFor("kept").identity, HOUR_MS - 60_000);
      expect(await again(), "before the purge").toBe("expired");
      expect(await purge(engine)).toMatchObject({ purged: 1 });
      expect(await again(), "of the tombstone").toBe("expired");
      expect(await purge(engine), "a purge that comes again").toMatchObject({ purged: 0 });
      const { record } = await store.read(requestFor("kept").identity);
      expect(record).toMatchObject({ state: "completed", answer: { headers: [], body: null } });
      await endedAgo(store, requestFor("kept").identity, HOUR_MS);
      expect(await again(), "after the tombstone's time").toBe("proceed");
      const outcomes = ["replayed", "key_expired", "key_expired", "claimed"];
      expect(ofType(events, "request").map(({ outcome }) => outcome)).toEqual(outcomes);
    });

    test("is expired to its own request even where the store's clock has stepped back behind the purge", async () => {
      const { store } = given();
      const { engine } = engineOn(store);
      await finished(store, "back");
      const { identity } = requestFor("back");
      await endedAgo(store, identity, 1);
      await purge(engine);
      await endedAgo(store, identity, -60_000);
      expect((await engine.begin(requestFor("back"))).kind).toBe("expired");
    });

    test("is expired to another request too: there is nothing left to compare it with", async () => {
      const { store } = given();
      const { engine } = engineOn(store);
      await finished(store, "other");
      await endedAgo(store, requestFor("other").identity, 1);
      const other = requestFor("other", { body: "another body" });
      expect((await engine.begin(other)).kind).toBe("expired");
      await purge(engine);
      expect((await engine.begin(other)).kind).toBe("expired");
    });

    test("is remembered by the words of the engine that finished it, whoever purges and whoever asks", async () => {
      const { store } = given();
      const plain = engineOn(store).engine;
      await finished(store, "theirs");
      await endedAgo(store, requestFor("theirs").identity, 1);
      await purge(plain);
      expect((await plain.begin(requestFor("theirs"))).kind).toBe("expired");
      await finished(store, "ours", {});
      await endedAgo(store, requestFor("ours").identity, 1);
      const { engine } = engineOn(store, REMEMBERING);
      expect((await engine.begin(requestFor("ours"))).kind).toBe("proceed");
    });

    test("leaves no tombstone where nothing happened, or where nobody knows what did", async () => {
      const { store } = given();
      const settings = { ...REMEMBERING, releasedRetention: 1, unknownRetention: 1 };
      const { engine } = engineOn(store, settings);
      await proceeded(await engine.begin(requestFor("released"))).release();
      await proceeded(await engine.begin(requestFor("held"))).abandon("The process had to stop.");
      const ended = async () => (await store.count()).endedNotPurged;
      await expect.poll(ended).toBe(2);
      await purge(engine);
      for (const key of ["released", "held"])
        expect((await store.read(requestFor(key).identity)).record, key).toBeNull();
    });

    test("throws out of `run`, and comes as a value from `attemptRun`: nothing runs", async () => {
      const { store } = given();
      const { engine } = engineOn(store, REMEMBERING);
      const call = { operation: "transfer", principal: "alice", key: "job" };
      let runs = 0;
      const work = async () => {
        runs += 1;
        return "done";
      };
      expect(await engine.run(call, work)).toBe("done");
      await endedAgo(store, identityOf("job"), 1);
      for (const _ of ["before the purge", "after it"]) {
        expect(await engine.attemptRun(call, work)).toMatchObject({ kind: "expired" });
        const thrown = await engine.run(call, work).catch((error: unknown) => error);
        expect(thrown).toBeInstanceOf(NotRun);
        expect(thrown).toMatchObject({ code: "key_expired", retryable: false, retryAfterMs: null });
        await purge(engine);
      }
      expect(runs).toBe(1);
    });

    test("whose first call was refused for good is remembered as well", async () => {
      const { store } = given();
      const { engine } = engineOn(store, REMEMBERING);
      const call = { operation: "transfer", principal: "alice", key: "refused" };
      const refuse = () => {
        throw new PermanentFailure("no");
      };
      expect(await engine.attemptRun(call, refuse)).toMatchObject({ kind: "refused" });
      await endedAgo(store, identityOf("refused"), 1);
      await purge(engine);
      expect(await engine.attemptRun(call, refuse)).toMatchObject({
        ...{ kind: "expired", record: { state: "failed_permanent" } },
      });
    });

    test("is claimed by one of many at once when its tombstone has stood its time", async () => {
      const { store, other } = given();
      await finished(store, "crowd");
      await endedAgo(store, requestFor("crowd").identity, HOUR_MS);
      const engines = [engineOn(store).engine, engineOn(other).engine];
      const begun = Array.from({ length: 20 }, (_, n) => engines[n % 2]?.begin(requestFor("crowd")));
      const purging = engines.map((engine) => purge(engine));
      const kinds = (await Promise.all(begun)).map((each) => each?.kind);
      await Promise.all(purging);
      expect(kinds.filter((kind) => kind === "proceed")).toHaveLength(1);
      expect(new Set(kinds)).toEqual(new Set(["proceed", "in_progress"]));
    });
  });

  onEverySqlStore((given) => everyDoor(given));
});

describe("the setting", () => {
  test("is refused by its name where it is no duration", () => {
    const store = memoryStore();
    for (const tombstone of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, "60", 1e20])
      expect(() => createEngine({ store, tombstone })).toThrow(
        expect.objectContaining({ field: "tombstone" }),
      );
  });
});

/** A tombstone must be left by whatever way an outcome goes on record. */
function everyDoor<Tx>(given: () => Sql<Tx>): void {
  test.each(["one", "two"] as const)("is remembered where the effect took %s commits", async (commits) => {
    const { store } = given();
    const { engine } = sqlEngineOn(store, REMEMBERING);
    const { work, runs } = working(given(), commits);
    const call = () =>
      engine.runInTransaction(
        called(commits, { commits }),
        work(() => "done"),
      );
    expect(await call()).toBe("done");
    for (const _ of ["before the purge", "after it"]) {
      await endedAgo(store, identityOf(commits), 1);
      await expect(call()).rejects.toMatchObject({ code: "key_expired" });
      await purge(engine);
    }
    expect(runs()).toBe(1);
    await endedAgo(store, identityOf(commits), HOUR_MS);
    expect(await call()).toBe("done");
  });

  test("is remembered of an operation", async () => {
    const { store } = given();
    const { engine } = sqlEngineOn(store, REMEMBERING);
    const bank = openBank();
    const { pay } = paying(engine, given(), bank);
    expect(await pay(order("paid"))).toMatchObject({ kind: "settled" });
    await endedAgo(store, order("paid").identity, 1);
    expect(await pay(order("paid"))).toMatchObject({ kind: "expired" });
    await purge(engine);
    expect(await pay(order("paid"))).toMatchObject({ kind: "expired" });
    expect(bank.asked).toHaveLength(1);
  });

  test("is remembered of what a person ended", async () => {
    const { store } = given();
    const { engine } = engineOn(store, REMEMBERING);
    const { identity } = requestFor("person");
    await proceeded(await engine.begin(requestFor("person"))).abandon("The process had to stop.");
    const verdict = { kind: "completed", answer: { status: 201 } } as const;
    await resolve(engine, identity, verdict, { actor: "ada", reason: "The bank says so." });
    expect((await store.read(identity)).record).toMatchObject({ state: "completed", tombstoneMs: HOUR_MS });
  });
}

async function finished(store: Store, key: string, settings = REMEMBERING): Promise<void> {
  const { engine } = engineOn(store, settings);
  await proceeded(await engine.begin(requestFor(key))).complete(answerOf("made"));
}
