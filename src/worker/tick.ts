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

/** One tick of the reconciler, for the operations that this engine knows. */
export async function reconcile<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
): Promise<Reconciled> {
  const reconciled = await engine.context.driver.drive(reconcileFlow(engine));
  await engine.store.beat("reconciler");
  return reconciled;
}
