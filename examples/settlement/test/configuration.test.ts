import { resolve } from "node:path";
import { createEngine } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { describe, expect, test } from "vitest";
import { type Configuration, readConfiguration } from "../src/configuration.ts";
import { bankTimeoutWithin } from "../src/durations.ts";

describe("defaults", () => {
  test("nothing set is a service on port 3000, a bank on 3001 and files below ./data", () => {
    const { durations, ...rest } = configurationOf({});
    expect(rest).toEqual({
      host: "127.0.0.1",
      port: 3000,
      database: { kind: "sqlite", path: resolve("data/settlement.sqlite") },
      bank: { kind: "embedded", port: 3001, dataDir: resolve("data") },
      workers: "here",
      principals: new Map([
        ["demo-alice", "alice"],
        ["demo-bob", "bob"],
      ]),
      demoToken: "demo-alice",
      adminToken: "demo-admin",
    });
    expect(policyOf(durations)).toMatchObject({
      requestTimeoutMs: 60_000,
      leaseMs: 90_000,
      retentionMs: 604_800_000,
    });
  });

  test("a variable that is empty or blank is not set", () => {
    expect(configurationOf({ PORT: "", DATABASE_URL: "  ", TOKENS: "" })).toEqual(configurationOf({}));
  });

  test("the embedded bank is next to the service, and on a free port where the service is", () => {
    expect(configurationOf({ PORT: "8080" }).bank).toMatchObject({ port: 8081 });
    expect(configurationOf({ PORT: "0" }).bank).toMatchObject({ port: 0 });
    expect(configurationOf({ PORT: "65535" }).bank).toMatchObject({ port: 65534 });
    expect(configurationOf({ BANK_PORT: "99" }).bank).toMatchObject({ port: 99 });
    expect(configurationOf({ BANK_URL: "http://bank:1/" }).bank).toEqual({
      kind: "elsewhere",
      url: "http://bank:1",
    });
  });

  test("a database is named by its URL", () => {
    const database = (url: string) => configurationOf({ DATABASE_URL: url }).database;
    expect(database("sqlite:/var/a.db")).toEqual({ kind: "sqlite", path: "/var/a.db" });
    expect(database("sqlite:///var/a.db")).toEqual({ kind: "sqlite", path: "/var/a.db" });
    expect(database("sqlite:a.db")).toEqual({ kind: "sqlite", path: resolve("a.db") });
    for (const url of ["postgres://a:b@c/d", "postgresql://c/d"])
      expect(database(url)).toEqual({ kind: "postgres", url });
  });
});

describe("what cannot be used is refused by the name of its variable", () => {
  const wrong: readonly (readonly [name: string, text: string])[] = [
    ["PORT", "http"],
    ["PORT", "65536"],
    ["PORT", "-1"],
    ["BANK_PORT", "3000"],
    ["BANK_PORT", "1.5"],
    ["BANK_URL", "ftp://bank"],
    ["BANK_URL", "bank"],
    ["DATABASE_URL", "redis://host"],
    ["DATABASE_URL", "/var/a.db"],
    ["DATABASE_URL", "sqlite:"],
    ["DATABASE_URL", "sqlite::memory:"],
    ["DATABASE_URL", "postgres://a:b@c:port/d"],
    ["TOKENS", "alice"],
    ["TOKENS", "=alice"],
    ["TOKENS", "a=alice,a=bob"],
    ["TOKENS", "a=alice,,b=bob"],
    ["TOKENS", "two words=alice"],
    ["WORKERS", "no"],
    ["ADMIN_TOKEN", "two words"],
    ["ADMIN_TOKEN", "demo-alice"],
    ...durationNames().flatMap((name) =>
      ["0s", "-1s", "5", "NaN", "Infinity", "1 s", "1w", "366d", "1e3s"].map((text) => [name, text] as const),
    ),
  ];
  test.each(wrong)("%s=%s", (name, text) => {
    expect(problemsOf({ [name]: text })).toEqual([expect.stringMatching(`^${name} `)]);
  });

  test("every wrong variable is named at once, and no secret of theirs is repeated", () => {
    const problems = problemsOf({
      PORT: "x",
      LEASE: "y",
      TOKENS: "secret",
      DATABASE_URL: "mysql://root:secret@host/a",
    });
    expect(problems).toHaveLength(4);
    expect(problems.join()).toMatch(/MySQL, which is not built yet/);
    expect(problems.join()).not.toContain("secret");
  });

  test("production takes neither default token", () => {
    expect(problemsOf({ NODE_ENV: "production" })).toEqual([
      expect.stringMatching(/^TOKENS must be set/),
      expect.stringMatching(/^ADMIN_TOKEN must be set/),
    ]);
    const { principals, demoToken } = configurationOf({
      NODE_ENV: "production",
      TOKENS: "aB+/==carol",
      ADMIN_TOKEN: "x",
    });
    expect(principals).toEqual(new Map([["aB+/=", "carol"]]));
    expect(demoToken).toBeNull();
  });
});

describe("times", () => {
  const alone = durationNames().flatMap((name) =>
    ["20ms", "300ms", "1s", "30s", "40d", "365d"].map((text) => [name, text] as const),
  );
  test.each(alone)("%s=%s alone never makes the service refuse to start", (name, text) => {
    const { durations } = configurationOf({ [name]: text });
    const policy = policyOf(durations);
    const bankTimeoutMs = durations.bankTimeoutMs ?? bankTimeoutWithin(policy.requestTimeoutMs);
    expect(bankTimeoutMs).toBeLessThan(policy.requestTimeoutMs);
  });

  test("shortening any one beside times that are set long does not either, unless it contradicts one of them", () => {
    const long = { BANK_TIMEOUT: "90s", SWEEP_GRACE: "10m" };
    for (const name of durationNames()) policyOf(configurationOf({ ...long, [name]: "1s" }).durations);
    expect(() => policyOf(configurationOf({ REQUEST_TIMEOUT: "2s", LEASE: "1s" }).durations)).toThrow(
      /lease/,
    );
  });

  test("fractions and all units are understood", () => {
    const { durations } = configurationOf({
      STORE_TIMEOUT: "1.5s",
      BANK_TIMEOUT: "250ms",
      SWEEP_GRACE: "1.5m",
    });
    expect(durations).toMatchObject({
      storeTimeoutMs: 1500,
      bankTimeoutMs: 250,
      engine: { sweepGrace: 90_000 },
    });
  });
});

function durationNames(): readonly string[] {
  return [
    ...["REQUEST_TIMEOUT", "LEASE", "SWEEP_INTERVAL", "SWEEP_GRACE", "RECONCILE_INTERVAL", "NOT_FOUND_GRACE"],
    ...["RETENTION", "STORE_TIMEOUT", "BANK_TIMEOUT"],
  ];
}

function configurationOf(environment: Readonly<Record<string, string>>): Configuration {
  const reading = readConfiguration(environment);
  if (reading.kind === "configuration") return reading.configuration;
  throw new Error(reading.problems.join("\n"));
}

function problemsOf(environment: Readonly<Record<string, string>>): readonly string[] {
  const reading = readConfiguration(environment);
  return reading.kind === "invalid" ? reading.problems : [];
}

function policyOf({ engine }: Configuration["durations"]) {
  return createEngine({ store: memoryStore(), ...engine }).policy;
}
