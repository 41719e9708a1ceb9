import type { Engine } from "../engine/engine.ts";
import type { Settling } from "../stores/store.ts";
import { type Reconciled, reconcileFlow } from "./reconciler.ts";
import { type Swept, sweepFlow } from "./sweeper.ts";

/** One tick of the sweeper on this engine's store. */
export async function sweep<Tx, Settles extends Settling>(engine: Engine<Tx, Settles>): Promise<Swept> {
  const swept = await engine.context.driver.drive(sweepFlow(engine.context));
  await engine.store.beat("sweeper");
  return swept;
}

/** One tick of the purge: removes a batch of records whose retention is over, and says how many went. */
export async function purge<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  limit: number = PURGED_AT_ONCE,
): Promise<number> {
  const gone = await engine.store.purge(limit);
  await engine.store.beat("purge");
  return gone;
}

/** Short enough that nobody waits for it; the next tick goes on. */
const PURGED_AT_ONCE = 1_000;

/** One tick of the reconciler, for the operations that this engine knows. */
export async function reconcile<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
): Promise<Reconciled> {
  const reconciled = await engine.context.driver.drive(reconcileFlow(engine));
  await engine.store.beat("reconciler");
  return reconciled;
}
