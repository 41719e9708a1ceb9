import type { Pool } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { createEngine } from "../../src/engine/engine.ts";
import { protect } from "../../src/http/hono.ts";
import { postgresIsHere } from "../support/databases.ts";
import { type EffectsDatabase, freshEffectsDatabase } from "./support/effects-database.ts";
import { openLedger } from "./support/ledger.ts";
import { insertEffect, openPool, openStore, type PostgresStore } from "./support/postgres-stores.ts";
import { askedIn, type Service, startService } from "./support/service.ts";
import { watchSessions } from "./support/sessions.ts";

const REQUESTS = 10;
const CONNECTIONS = 2;
const principal = () => "alice";

describe.skipIf(!postgresIsHere())(
  `DB-11: with ${CONNECTIONS} connections for the application's handlers, ${REQUESTS} parallel requests`,
  () => {
    test.each(["the store", "the application"])(
      "all run, and the store holds no transaction while they do: its connections are a pool of %s",
      { timeout: 20_000 },
      async (owner) => {
        const { database, application, own } = await pools();
        const store = openStore(owner === "the store" ? own : application);
        const service = await serving(withoutDeclaration(store, application));
        const watch = await watchSessions(database.url, "state LIKE 'idle in transaction%'");
        await expectAllDone(database, service, watch.during);
        expect(watch.seen()).toEqual([]);
        expect(watch.looks()).toBeGreaterThan(20);
      },
    );

    test.each(["two", "one"] as const)(
      "all run, also where each needs one of them inside its transaction: commits %s",
      { timeout: 20_000 },
      async (commits) => {
        const { database, application, own } = await pools();
        const service = await serving(insideItsTransaction(openStore(own), application, commits));
        await expectAllDone(database, service, (work) => work);
      },
    );
  },
);

async function pools() {
  const database = await freshEffectsDatabase("PostgreSQL");
  onTestFinished(database.remove);
  const open = () => openPool({ connectionString: database.url, max: CONNECTIONS });
  return { database, application: open(), own: open() };
}

async function serving(route: Parameters<typeof startService>[0]): Promise<Service> {
  const service = await startService(route);
  onTestFinished(service.close);
  return service;
}

/** A tenth of a second of the application's own, on one of its connections. */
async function work(application: Pool): Promise<void> {
  await application.query("SELECT pg_sleep(0.1)");
}

function withoutDeclaration(store: PostgresStore, application: Pool) {
  return protect(createEngine({ store }), { principal }, async (c, { number }) => {
    await work(application);
    return c.json({ id: await insertEffect(application, { ...(await askedIn(c)), attempt: number }) }, 201);
  });
}

function insideItsTransaction(store: PostgresStore, application: Pool, commits: "one" | "two") {
  const options = { principal, effects: "transaction", commits } as const;
  return protect(createEngine({ store }), options, async (c, attempt) => {
    const asked = await askedIn(c);
    return await attempt.transaction(async (tx) => {
      await work(application);
      return { status: 201, json: { id: await insertEffect(tx, { ...asked, attempt: attempt.number }) } };
    });
  });
}

async function expectAllDone(
  { found }: EffectsDatabase,
  { ask }: Service,
  during: (work: Promise<unknown>) => Promise<unknown>,
): Promise<void> {
  const ledger = openLedger();
  const request = async (_: unknown, number: number) => {
    const key = `key-${number}`;
    ledger.note(key, await ask(key));
  };
  await during(Promise.all(Array.from({ length: REQUESTS }, request)));
  expect(ledger.counts()).toMatchObject({ first: REQUESTS, unavailable: 0, wrong: 0 });
  expect(ledger.faults(await found(ledger.keys()))).toEqual([]);
}
