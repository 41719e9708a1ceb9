import { describe, expect, test } from "vitest";
import { createEngine } from "../../src/engine/engine.ts";
import { ConfigurationError } from "../../src/errors.ts";
import { protect } from "../../src/http/fetch.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { sqliteDriver } from "../support/databases.ts";
import { called } from "./one-commit-calls.ts";

const principal = () => "alice";
const handler = () => new Response("made");
const atomic = createEngine({ store: sqliteStore({ connect: () => new (sqliteDriver())(":memory:") }) });
const plain = createEngine({ store: memoryStore() });
const untyped = (options: object) => ({ principal, ...JSON.parse(JSON.stringify(options)) });

/** Of an error that names this setting. */
const naming = (field: string) => expect.objectContaining({ code: "configuration", field });

describe('commits: "one"', () => {
  test.each([
    ["without effects", { commits: "one" }],
    ["of another word", { effects: "transaction", commits: "three" }],
    ["of no word", { effects: "transaction", commits: 1 }],
    ["of another word without effects", { commits: "none" }],
  ])("on a route %s is refused when the route is made", (_, options) => {
    expect(() => protect(atomic, untyped(options), handler)).toThrow(ConfigurationError);
    expect(() => protect(atomic, untyped(options), handler)).toThrow(naming("commits"));
  });

  test("on a route that stands for an operation is refused", () => {
    const operation = { kind: "operation", name: "pay", execute: () => Promise.reject(new Error()) } as const;
    expect(() => protect(atomic, untyped({ commits: "one" }), operation)).toThrow(naming("commits"));
  });

  test("on a store without transactions is refused, and nothing runs", async () => {
    const options = { principal, effects: "transaction", commits: "one" } as const;
    expect(() => protect(plain, options, handler)).toThrow(naming("effects"));
    let runs = 0;
    const run = plain.runInTransaction(called("memory"), () => {
      runs += 1;
      throw new Error("It ran.");
    });
    await expect(run).rejects.toThrow(naming("store"));
    expect(runs).toBe(0);
  });

  test("of another word on a function is refused, and nothing runs", async () => {
    let runs = 0;
    const run = atomic.runInTransaction(untyped({ ...called("word"), commits: "three" }), () => {
      runs += 1;
    });
    await expect(run).rejects.toThrow(naming("commits"));
    expect(runs).toBe(0);
  });

  test("is accepted where effects are a transaction's, by either word", () => {
    for (const commits of ["one", "two"] as const)
      expect(protect(atomic, { principal, effects: "transaction", commits }, handler)).toBeTypeOf("function");
  });

  test("does not compile on a route without effects, nor where a function has no transaction", () => {
    const calls = [
      // @ts-expect-error: without effects there is no commit that a claim could go into
      () => protect(atomic, { principal, commits: "one" }, handler),
      // @ts-expect-error: there are two words
      () => protect(atomic, { principal, effects: "transaction", commits: "three" }, handler),
      // @ts-expect-error: a function without a transaction has no commit of its own
      () => atomic.run({ operation: "o", principal: "p", key: "k", commits: "one" }, () => 1),
    ];
    expect(calls).toHaveLength(3);
  });
});
