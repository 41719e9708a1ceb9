import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { createEngine } from "../../src/engine/engine.ts";
import { protect } from "../../src/http/hono.ts";
import { postgresIsHere } from "../support/databases.ts";
import { until } from "../support/processes.ts";
import { freshEffectsDatabase } from "./support/effects-database.ts";
import { openLedger } from "./support/ledger.ts";
import { insertEffect, openPool, openStore } from "./support/postgres-stores.ts";
import { askedIn, startService } from "./support/service.ts";
import { watchSessions } from "./support/sessions.ts";

const COPIES = 64;
const HANDLER_MS = 500;

const forms = [
  { form: "with a claim of its own", commits: "two" },
  { form: "with the claim in the effect's commit", commits: "one" },
] as const;

/** One whose lock has been freed, and who has not woken up yet, waits no more. */
const WAITS = "wait_event_type = 'Lock' AND cardinality(pg_blocking_pids(pid)) > 0";

describe.skipIf(!postgresIsHere()).each(forms)("on PostgreSQL, $form,", ({ commits }) => {
  test(`of ${COPIES} simultaneous copies one runs; they and as many more are answered before it ends, and nobody waits for a lock`, async () => {
    const database = await freshEffectsDatabase("PostgreSQL");
    onTestFinished(database.remove);
    const watch = await watchSessions(database.url, WAITS);
    const engine = createEngine({ store: openStore(openPool({ connectionString: database.url, max: 8 })) });
    const options = { principal: () => "alice", effects: "transaction", commits } as const;
    let runs = 0;
    let later: Promise<unknown> | undefined;
    const handle = protect(engine, options, async (c, attempt) => {
      const asked = await askedIn(c);
      return await attempt.transaction(async (tx) => {
        runs += 1;
        const id = await insertEffect(tx, { ...asked, attempt: attempt.number });
        // The first copies may all have been answered before this one had its transaction; these meet its locks.
        later = copies();
        // As long as a handler takes, and as long as it takes the others to be answered.
        const answered = until(() => order.length === 2 * COPIES - 1);
        await watch.during(Promise.all([sleep(HANDLER_MS), answered]));
        return { status: 201, json: { id } };
      });
    });
    const service = await startService(handle);
    onTestFinished(service.close);

    const ledger = openLedger();
    const order: unknown[] = [];
    const copy = async () => {
      const told = await service.ask("key");
      ledger.note("key", told);
      order.push(told.kind === "answer" ? told.status : told.kind);
    };
    const copies = () => Promise.all(Array.from({ length: COPIES }, copy));
    await copies();
    await later;

    expect(runs).toBe(1);
    expect(watch.seen()).toEqual([]);
    expect(watch.looks()).toBeGreaterThan(20);
    expect(order).toEqual([...Array(2 * COPIES - 1).fill(409), 201]);
    expect(ledger.counts()).toMatchObject({ first: 1, in_progress: 2 * COPIES - 1, wrong: 0 });
    expect(ledger.faults(await database.found(["key"]))).toEqual([]);
  });
});
