import { onTestFinished } from "vitest";
import { createEngine } from "../../../src/engine/engine.ts";
import { protect } from "../../../src/http/hono.ts";
import { sendsCommit, startPostgresProxy } from "../../support/postgres-wire.ts";
import { until } from "../../support/processes.ts";
import { seededRandom } from "../../support/seed.ts";
import { CUTS, type Cut, cutting } from "./cutting.ts";
import { freshEffectsDatabase } from "./effects-database.ts";
import { type Counts, openLedger } from "./ledger.ts";
import { startLoad } from "./load.ts";
import { insertEffect, openPool, openStore, type PostgresStore } from "./postgres-stores.ts";
import { askedIn, type Service, startService } from "./service.ts";

export interface CutOptions {
  /** At least so many cuts of each kind. */
  readonly cutsOfEach: number;
  /** What the engines are given in the place of the store. */
  readonly wrapped?: (store: PostgresStore) => PostgresStore;
  readonly commits: "one" | "two";
}

/** What came of a run. */
export interface CutRun {
  readonly faults: readonly string[];
  readonly counts: Counts;
  readonly keys: number;
  readonly cuts: Readonly<Record<Cut, number>>;
}

const ENGINES = 3;
const CLIENTS = 12;
/** Of a hundred COMMITs so many are cut; in the worst weather some units lose every try that they have. */
const WEATHERS = [40, 95];
/** It takes some seconds. */
const ENOUGH_WITHIN_MS = 90_000;

/** A commit takes a while, so that it is still under way when whoever was cut off asks what became of it. */
const SLOW_COMMITS = `
  CREATE FUNCTION take_a_while() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.05); RETURN NULL; END';
  CREATE CONSTRAINT TRIGGER slow_commit AFTER INSERT ON effects
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION take_a_while()`;

/** Lets engines commit effects through a wire on which COMMITs are cut, until there were enough cuts of each kind. */
export async function commitThroughCuts({ cutsOfEach, commits, wrapped }: CutOptions): Promise<CutRun> {
  const random = seededRandom();
  const database = await freshEffectsDatabase("PostgreSQL");
  onTestFinished(database.remove);
  await openPool({ connectionString: database.url }).query(SLOW_COMMITS);
  const proxy = await startPostgresProxy(database.url);
  onTestFinished(proxy.close);
  const services = await Promise.all(
    Array.from({ length: ENGINES }, () => {
      const store = openStore(openPool({ connectionString: proxy.url(database.url), max: 5 }));
      return serve(wrapped?.(store) ?? store, commits);
    }),
  );
  for (const rule of cutting({ random, hundredths: WEATHERS, at: sendsCommit })) proxy.plan(rule);
  const ledger = openLedger();
  const ask = (key: string) => random.pick(services).ask(key);
  const load = startLoad({ ask, clients: CLIENTS, random, ledger });
  onTestFinished(load.stop);
  await until(() => CUTS.every((kind) => proxy.happened(kind) >= cutsOfEach), {
    withinMs: ENOUGH_WITHIN_MS,
  });
  proxy.heal();
  await load.finish({ withinMs: 30_000 });
  const keys = ledger.keys();
  const faults = ledger.faults(await database.found(keys));
  const [before, after, swallowed] = CUTS.map(proxy.happened);
  const cuts = { cut_before: before ?? 0, cut_after: after ?? 0, swallow_reply: swallowed ?? 0 };
  return { faults, keys: keys.length, counts: ledger.counts(), cuts };
}

async function serve(store: PostgresStore, commits: CutOptions["commits"]): Promise<Service> {
  const engine = createEngine({ store });
  const options = { principal: () => "alice", effects: "transaction", commits } as const;
  const handle = protect(engine, options, async (c, attempt) => {
    const asked = await askedIn(c);
    return await attempt.transaction(async (tx) => {
      return { status: 201, json: { id: await insertEffect(tx, { ...asked, attempt: attempt.number }) } };
    });
  });
  const service = await startService(handle);
  onTestFinished(service.close);
  return service;
}
