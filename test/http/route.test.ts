import { describe, expect, test } from "vitest";
import { createEngine } from "../../src/engine/engine.ts";
import { headerPolicy } from "../../src/engine/header-policy.ts";
import { ConfigurationError } from "../../src/errors.ts";
import { sharedPrincipal } from "../../src/http/guests.ts";
import { protect } from "../../src/http/hono.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { sqliteDriver } from "../support/databases.ts";

const principal = () => "alice";
const handler = () => new Response("made");
const plain = createEngine({ store: memoryStore() });
const atomic = createEngine({ store: sqliteStore({ connect: () => new (sqliteDriver())(":memory:") }) });
const operation = { kind: "operation", name: "pay", execute: () => Promise.reject(new Error()) } as const;
const untyped = (options: object) => ({ principal, ...JSON.parse(JSON.stringify(options)) });

const declaring = (charge: object) => ({ operation: "pay", effects: "declared", steps: { charge } });

describe("a route that could not keep its promises is refused when it is made", () => {
  test.each([
    ["operation", { operation: "" }],
    ["operation", { operation: "a\0b" }],
    ["operation", { operation: "o".repeat(1_025) }],
    ["maxResponseBytes", { maxResponseBytes: 0 }],
    ["maxResponseBytes", { maxResponseBytes: 1.5 }],
    ["maxRunTime", { maxRunTime: "soon" }],
    ["maxRunTime", { maxRunTime: 0 }],
    ["onAmbiguous", { onAmbiguous: "guess" }],
    ["waitMs", { waitMs: 0 }],
    ["waitMs", { waitMs: -1 }],
    ["waitMs", { waitMs: "60" }],
    ["waitMs", { waitMs: 60_000 }],
    ["waitMs", { waitMs: 1_000, effects: "transaction", commits: "one" }],
    ["finality", { finality: "completed" }],
    ["authorizeReplay", { authorizeReplay: true }],
    ["effects", { effects: "somewhere" }],
    ["effectsBegin", { effectsBegin: true, effects: "declared" }],
    ["steps", { steps: {} }],
    ["operation", { effects: "declared", steps: {} }],
    ["steps.charge.keyTtl", declaring({ provider: "repeatable" })],
    ["steps.charge.keyTtl", declaring({ provider: "repeatable", keyTtl: "60s" })],
    ["steps.charge.validFor", declaring({ provider: "query", validFor: 1 })],
    ["steps.charge.look", declaring({ provider: "keyed" })],
    ["steps.charge.provider", declaring({ provider: "magic" })],
    ["effect", { operation: "pay", effects: "declared", steps: { "oncekey:x": { provider: "blind" } } }],
    ["observe", { observe: "yes" }],
    ["observe", { observe: true, effects: "declared" }],
    ["observe", { observe: true, effects: "transaction" }],
    ["observe", { observe: true, effectsBegin: true }],
    ["mode", { mode: "yaml" }],
    ["fingerprint", { fingerprint: "/amount" }],
    ["fingerprintHeaders", { fingerprintHeaders: ["a:b"] }],
    ["ignore", { ignore: ["a"] }],
    ["keepHeaders", { keepHeaders: ["Content-Length"] }],
    ["keepHeaders", { keepHeaders: ["Transfer-Encoding"] }],
    ["keepHeaders", { keepHeaders: ["Idempotent-Replayed"] }],
    ["keepHeaders", { keepHeaders: ["a b"] }],
    ["dropHeaders", { dropHeaders: [""] }],
    ["store", { store: "memory" }],
  ])("by its %s: %j", (field, options) => {
    expect(() => protect(atomic, untyped(options), handler)).toThrow(ConfigurationError);
    expect(() => protect(atomic, untyped(options), handler)).toThrow(expect.objectContaining({ field }));
  });

  test("with a transaction, or an operation, on a store that has none", () => {
    const expected = expect.objectContaining({ field: "effects" });
    expect(() => protect(plain, { principal, effects: "transaction" }, handler)).toThrow(expected);
    expect(() => protect(plain, { principal }, operation)).toThrow(expected);
    protect(atomic, { principal, effects: "transaction" }, handler);
    protect(atomic, { principal }, operation);
  });

  test("with what an operation, whose answer a worker may make, could not keep", () => {
    const refused = (field: string) => expect.objectContaining({ field });
    const finality = () => "completed" as const;
    expect(() => protect(atomic, { principal, finality }, operation)).toThrow(refused("finality"));
    expect(() => protect(atomic, { principal, sendUnkept: true }, operation)).toThrow(refused("sendUnkept"));
  });

  test.each([
    ["failOpen", { failOpen: true }],
    ["required", { required: false }],
  ] as const)("with %s where the effect commits with the record", (field, options) => {
    const expected = expect.objectContaining({ field });
    expect(() => protect(atomic, { principal, ...options, effects: "transaction" }, handler)).toThrow(
      expected,
    );
    expect(() => protect(atomic, { principal, ...options, effects: "declared" }, handler)).toThrow(expected);
    expect(() => protect(atomic, { principal, ...options }, operation)).toThrow(expected);
    protect(atomic, { principal, ...options }, handler);
  });
});

describe("a route tells what it promises", () => {
  test("with why its callers share their keys, once for all routes that promise the same", () => {
    const engine = createEngine({ store: memoryStore() });
    const guests = sharedPrincipal("checkout without login");
    for (const _ of [1, 2]) protect(engine, { principal: guests, operation: "pay", failOpen: true }, handler);
    protect(engine, { principal }, handler);
    const said = { effects: "none", required: true, onAmbiguous: "keep", failOpen: false, sendUnkept: false };
    expect([...engine.routes.values()]).toEqual([
      { ...said, operation: "pay", sharedPrincipal: "checkout without login", failOpen: true },
      { ...said, operation: null, sharedPrincipal: null },
    ]);
  });

  test("and guests need a reason", () => {
    const expected = expect.objectContaining({ field: "sharedPrincipal" });
    for (const reason of ["", "  ", JSON.parse("null")])
      expect(() => sharedPrincipal(reason)).toThrow(expected);
  });
});

describe("of an answer's headers", () => {
  const kept = (settings: Parameters<typeof headerPolicy>[0], ...names: readonly string[]) =>
    names.filter((name) => headerPolicy(settings)([name, "value"]));

  test("those are kept that are the answer's, whatever their case", () => {
    const own = ["Location", "etag", "X-Own", "Vary", "Content-Type", "content-encoding", "Cache-Control"];
    expect(kept({}, ...own)).toEqual(own);
  });

  test("those are not that belong to one exchange", () => {
    const others = ["Set-Cookie", "DATE", "www-authenticate", "X-RateLimit-Limit", "ratelimit", "Connection"];
    const more = [
      "Access-Control-Allow-Origin",
      "Retry-After",
      "Transfer-Encoding",
      "Content-Length",
      "Trailer",
    ];
    expect(kept({}, ...others, ...more, "Idempotency-Status", "traceparent", "X-Request-Id")).toEqual([]);
  });

  test("a route may keep and drop others", () => {
    const settings = { keepHeaders: ["SET-COOKIE", "x-ratelimit-limit"], dropHeaders: ["X-Own", "etag"] };
    expect(kept(settings, "set-cookie", "X-RateLimit-Limit", "X-Own", "ETag", "date")).toEqual([
      "set-cookie",
      "X-RateLimit-Limit",
    ]);
  });
});
