import { describe, expect, test } from "vitest";
import type { KeyRecord } from "../../src/core/record.ts";
import { createEngine } from "../../src/engine/engine.ts";
import type { Store } from "../../src/stores/store.ts";
import { until } from "../support/processes.ts";
import { answerOf, died, engineOn, ofType, proceeded, requestFor, SHORT, standing } from "./engines.ts";
import { type Opened, onEverySqlStore, onEveryStore } from "./stores.ts";

const HELD = {
  evidence: { reason: "said so", result: null },
  disposition: "hold",
  nextLookAt: null,
} as const;

describe("a key that arrives", () => {
  onEveryStore((given) => {
    newKey(given);
    answeredKey(given);
    deadAttempt(given);
    freedKey(given);
  });
});

function newKey(given: () => Opened): void {
  test("of many simultaneous requests with one key exactly one runs, and the others are told to wait", async () => {
    const { store, other } = given();
    const engines = [engineOn(store).engine, engineOn(other).engine];
    const request = requestFor("one winner");
    const begun = await Promise.all(Array.from({ length: 24 }, (_, n) => engines[n % 2]?.begin(request)));
    expect(begun.filter((each) => each?.kind === "proceed")).toHaveLength(1);
    const waits = begun.flatMap((each) => (each?.kind === "in_progress" ? [each.retryAfterMs] : []));
    expect(waits).toHaveLength(23);
    // A second at least, and longer on a machine on which the attempt is older than that by now.
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(1_000);
  });

  test("another principal, and a function's key, have nothing to do with it", async () => {
    const { engine } = engineOn(given().store);
    const key = "kept apart";
    const run = { kind: "run", principal: "alice", operation: "POST /payments", key } as const;
    const begun = [
      await engine.begin(requestFor(key)),
      await engine.begin(requestFor(key, { identity: { kind: "http", principal: "bob", key } })),
      await engine.begin(requestFor(key, { identity: run })),
      await engine.begin(requestFor(key, { identity: { ...run, operation: "refund" } })),
    ];
    expect(begun.map(({ kind }) => kind)).toEqual(Array(4).fill("proceed"));
  });

  test("what a losing request was answered with did not change the record", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = requestFor("losers write nothing");
    const attempt = proceeded(await engine.begin(request));
    const running = await standing(store, request);
    await engine.begin(request);
    await engine.begin(requestFor("losers write nothing", { body: "another" }));
    expect(await standing(store, request)).toEqual(running);
    await attempt.complete(answerOf("done"));
    const completed = await standing(store, request);
    await engine.begin(request);
    await engine.begin(requestFor("losers write nothing", { body: "another" }));
    expect(await standing(store, request)).toEqual(completed);
  });
}

function answeredKey(given: () => Opened): void {
  test("its kept answer is replayed byte for byte, a refusal like a success", async () => {
    const { engine, events } = engineOn(given().store);
    for (const end of ["complete", "fail"] as const) {
      const request = requestFor(`replayed ${end}`);
      const attempt = proceeded(await engine.begin(request));
      const answer = {
        ...answerOf(`${end}\0é`, end === "fail" ? 402 : 201),
        headers: [["x-a", "ÿ"]] as const,
      };
      await attempt[end](answer);
      for (const again of [1, 2]) {
        expect([again, await engine.begin(request)]).toMatchObject([again, { kind: "replay", answer }]);
      }
    }
    const outcomes = ofType(events, "request").map(({ outcome }) => outcome);
    expect(outcomes).toEqual(["claimed", "replayed", "replayed", "claimed", "replayed", "replayed"]);
  });

  test("an answer whose body was not kept is not repeated, and nothing runs again", async () => {
    const { engine } = engineOn(given().store);
    const request = requestFor("not kept");
    await proceeded(await engine.begin(request)).complete({ ...answerOf(""), body: null });
    expect(await engine.begin(request)).toMatchObject({
      kind: "response_not_stored",
      answer: { status: 201, body: null },
    });
  });

  test("another body is refused in every state that knows its body", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    for (const state of ["in_progress", "unknown", "completed", "failed_permanent"] as const) {
      const key = `other body ${state}`;
      await into(state, store, key);
      const other = await engine.begin(requestFor(key, { body: "another", onAmbiguous: "rerun" }));
      expect([state, other]).toMatchObject([state, { kind: "mismatch", record: { state } }]);
    }
  });

  test("a record made under a rule that this process does not know is not compared, and nothing runs", async () => {
    const { engine } = engineOn(given().store);
    const request = requestFor("unverifiable");
    await proceeded(await engine.begin(request)).complete(answerOf("done"));
    const newer = { version: "value 2", material: () => null };
    const { fingerprint } = request;
    const unknowing = {
      ...newer,
      material: (version: string) => (version === "value 2" ? fingerprint.material("value 1") : null),
    };
    expect(await engine.begin({ ...request, fingerprint: unknowing })).toMatchObject({
      kind: "unverifiable",
    });
  });

  test("an unknown outcome is told, and runs again only by the programmer's word", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = requestFor("unknown");
    await into("unknown", store, "unknown");
    expect(await engine.begin(request)).toMatchObject({ kind: "outcome_unknown", retryAfterMs: null });
    const before = await standing(store, request);
    const attempt = proceeded(await engine.begin({ ...request, onAmbiguous: "rerun" }));
    expect(attempt.number).toBeGreaterThan(before.attempt);
  });

  test("once its retention is over a key starts again as if never seen, under a number never given before", async () => {
    const { store } = given();
    const { engine } = engineOn(store, { ...SHORT, retention: 60 });
    const request = requestFor("expired");
    const first = proceeded(await engine.begin(request));
    await first.complete(answerOf("first"));
    const ended = await standing(store, request);
    const other = requestFor("expired", { body: "another" });
    await until(async () => (await engine.begin(other)).kind === "proceed");
    const again = await standing(store, request);
    expect(again.attempt).toBeGreaterThan(first.number);
    expect(again.createdAt).toBeGreaterThan(ended.createdAt);
    expect(again.revision).toBe(ended.revision + 1);
  });
}

function deadAttempt(given: () => Opened): void {
  const judged = [
    ["transaction", "proceed", "in_progress", "stale_reclaimed"],
    ["declared", "proceed", "in_progress", "stale_reclaimed"],
    ["none", "outcome_unknown", "unknown", "outcome_unknown"],
  ] as const;
  test.each(judged)(
    "a dead attempt with effects %s means %s to a duplicate",
    async (effects, kind, state, outcome) => {
      const { store } = given();
      const request = requestFor(`dead ${effects}`, { effects });
      const dead = await died(store, request);
      const { engine, events } = engineOn(store);
      const begun = await engine.begin(request);
      expect(begun.kind).toBe(kind);
      const now = await standing(store, request);
      expect(now.state).toBe(state);
      if (begun.kind === "proceed") expect(begun.attempt.number).toBeGreaterThan(dead.number);
      expect(events).toMatchObject([
        { type: "transition", by: "duplicate", from: "in_progress", to: state, attempt: now.attempt },
        { type: "request", outcome },
      ]);
    },
  );

  test("of many duplicates of a dead attempt exactly one takes over", async () => {
    const { store, other } = given();
    const request = requestFor("one heir", { effects: "transaction" });
    await died(store, request);
    const engines = [engineOn(store).engine, engineOn(other).engine];
    const begun = await Promise.all(Array.from({ length: 16 }, (_, n) => engines[n % 2]?.begin(request)));
    const kinds = begun.map((each) => each?.kind).sort();
    expect(kinds).toEqual([...Array(15).fill("in_progress"), "proceed"]);
  });

  test("another body does not take over from a dead attempt", async () => {
    const { store } = given();
    const request = requestFor("no heir", { effects: "transaction" });
    await died(store, request);
    const before = await standing(store, request);
    const { engine } = engineOn(store);
    const begun = await engine.begin(requestFor("no heir", { effects: "transaction", body: "another" }));
    expect(begun.kind).toBe("mismatch");
    expect(await standing(store, request)).toEqual(before);
  });
}

function freedKey(given: () => Opened): void {
  test("a released key runs again as the next attempt, and may bring another body", async () => {
    const { store } = given();
    const { engine } = engineOn(store);
    const request = requestFor("released");
    const first = proceeded(await engine.begin(request));
    await first.release();
    const corrected = requestFor("released", { body: "corrected" });
    const second = proceeded(await engine.begin(corrected));
    expect(second.number).toBeGreaterThan(first.number);
    await second.complete(answerOf("corrected"));
    expect(await engine.begin(request)).toMatchObject({ kind: "mismatch" });
    expect(await engine.begin(corrected)).toMatchObject({ kind: "replay" });
  });

  test("of many requests for a released key exactly one runs", async () => {
    const { store, other } = given();
    const engines = [engineOn(store).engine, engineOn(other).engine];
    const request = requestFor("released and contested");
    await proceeded(await engineOn(store).engine.begin(request)).release();
    const begun = await Promise.all(Array.from({ length: 24 }, (_, n) => engines[n % 2]?.begin(request)));
    const kinds = begun.map((each) => each?.kind).sort();
    expect(kinds).toEqual([...Array(23).fill("in_progress"), "proceed"]);
  });
}

describe("a key whose record is damaged", () => {
  onEverySqlStore((given) => {
    test("is answered so, tells the listeners, and runs nothing", async () => {
      const { store, damage } = given();
      const { engine, events } = engineOn(store);
      const request = requestFor("damaged");
      await proceeded(await engine.begin(request)).complete(answerOf("done"));
      await damage();
      expect(await engine.begin(request)).toMatchObject({
        kind: "record_corrupt",
        error: { code: "record_corrupt" },
      });
      expect(ofType(events, "record_corrupt")).toHaveLength(1);
    });
  });
});

test("the production refuses a store that forgets, unless it is told that this is meant", async () => {
  const { memoryStore } = await import("../../src/stores/memory.ts");
  const store = memoryStore();
  expect(() => createEngine({ store, production: true })).toThrow(/allowMemoryStore/);
  expect(createEngine({ store, production: true, allowMemoryStore: true }).store).toBe(store);
  expect(createEngine({ store, production: false }).store).toBe(store);
});

/** Brings a key into a state, under the body that requests have where they say nothing. */
async function into(state: KeyRecord["state"], store: Store, key: string): Promise<void> {
  const attempt = proceeded(await engineOn(store).engine.begin(requestFor(key)));
  switch (state) {
    case "in_progress":
      return;
    case "unknown":
      return void (await attempt.doubt(HELD));
    case "released":
      return void (await attempt.release());
    case "completed":
      return void (await attempt.complete(answerOf("done")));
    case "failed_permanent":
      return void (await attempt.fail(answerOf("no", 422)));
  }
}
