import type { PoolClient } from "pg";
import { seen } from "../../src/core/transition.ts";
import { createEngine, type Engine } from "../../src/engine/engine.ts";
import { NotRun } from "../../src/engine/not-run.ts";
import type { TransactionalStore } from "../../src/stores/store.ts";
import { purge, reconcile, sweep } from "../../src/worker/tick.ts";
import type { SeededRandom } from "../support/seed.ts";
import { begun, completedFrom, renewed } from "./postgres-server.ts";
import { claimOf, httpIdentity } from "./sample.ts";

type Store = TransactionalStore<PoolClient, "async">;

export interface StormOptions {
  /** Each as one process has it; all on one database, which has a table `effects (key text)`. */
  readonly stores: readonly Store[];
  readonly random: SeededRandom;
  readonly steps: number;
  /** How many steps are under way at a time. */
  readonly atOnce: number;
}

/** How many records the workers moved. */
export interface Upkeep {
  readonly swept: number;
  readonly purged: number;
}

/** Does what a store is there for, in an order that chance draws; throws whatever a caller would not expect. */
export async function storm({ stores, random, steps, atOnce }: StormOptions): Promise<Upkeep> {
  const engines = stores.map((store) => createEngine({ store, sweepGrace: 1, storeTimeout: 20_000 }));
  let upkeep: Upkeep = { swept: 0, purged: 0 };
  const tick = async () => {
    const { swept, purged } = await tickOf(random.pick(engines));
    upkeep = { swept: upkeep.swept + swept, purged: upkeep.purged + purged };
  };
  const kinds = [
    (number: number) => call(random.pick(engines), `call ${number % (steps / 8)}`),
    (number: number) => leave(random.pick(stores), number),
    (number: number) => endUnits(random.pick(stores), number),
    (number: number) => failUnits(random.pick(stores), number),
    () => look(random.pick(stores)),
    tick,
  ];
  let started = 0;
  const work = async () => {
    while (started < steps) {
      started += 1;
      await random.pick(kinds)(started);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  await tick();
  return upkeep;
}

/** Commits an effect with its record, or is told that another call is doing so. */
async function call(engine: Engine<PoolClient, "async">, key: string): Promise<void> {
  const request = { operation: "storm", principal: "alice", key };
  try {
    await engine.runInTransaction(request, async (tx) => {
      await tx.query("insert into effects (key) values ($1)", [key]);
      return key;
    });
  } catch (error) {
    if (!(error instanceof NotRun && error.code === "in_progress")) throw error;
  }
}

/** Leaves something to the sweeper and something to the purge. */
async function leave(store: Store, number: number): Promise<void> {
  await store.insert(claimOf(httpIdentity(`stale ${number}`), { leaseMs: 1 }));
  const record = await begun(store, `ended ${number}`);
  await store.replace(seen(record), completedFrom(record, 0), "wait");
}

/** One unit that is kept and one that is not, each with every lock that the store takes. */
async function endUnits(store: Store, number: number): Promise<void> {
  for (const kind of ["commit", "rollback"] as const) {
    const record = await begun(store, `${kind} ${number}`);
    await store.transaction(async (tx) => {
      const within = store.within(tx);
      const identity = httpIdentity(`claimed by ${kind} ${number}`);
      await within.tryClaim(identity);
      await within.insert(claimOf(identity));
      await within.replace(seen(record), renewed(record), "never");
      return { kind, value: undefined };
    });
  }
}

/** One unit that the server refuses to go on with, and one that its programmer does. */
async function failUnits(store: Store, number: number): Promise<void> {
  const failures = [
    (tx: PoolClient) => tx.query("select 1 / 0"),
    () => Promise.reject(new Error("of the unit's own")),
  ];
  for (const failure of failures) {
    const unit = store.transaction(async (tx) => {
      await store.within(tx).tryClaim(httpIdentity(`failed ${number}`));
      await failure(tx);
      return { kind: "commit", value: undefined };
    });
    await unit.then(
      () => Promise.reject(new Error("A unit that failed was committed.")),
      (error: Error) => {
        if (!/division by zero|of the unit's own/.test(error.message)) throw error;
      },
    );
  }
}

async function look(store: Store): Promise<void> {
  const identity = httpIdentity("looked at");
  await store.check();
  await store.read(identity);
  await store.list({ limit: 10, principal: "alice" });
  await store.due({ kind: "looks", limit: 10 });
  await store.count();
  await store.audit({ identity, actor: "a person", action: "look", reason: "", before: null, after: null });
  await store.audits(identity);
  await store.beats();
}

async function tickOf(engine: Engine<PoolClient, "async">): Promise<Upkeep> {
  const { released } = await sweep(engine);
  await reconcile(engine);
  return { swept: released, purged: (await purge(engine)).purged };
}
