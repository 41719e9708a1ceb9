import type { Engine } from "../engine/engine.ts";
import type { WorkerName } from "../stores/store.ts";

/** How often each worker comes by; the purge keeps the sweeper's rhythm. */
export function intervalsOf({ policy }: Pick<Engine, "policy">): Readonly<Record<WorkerName, number>> {
  const { sweepIntervalMs, reconcileIntervalMs } = policy;
  return { sweeper: sweepIntervalMs, reconciler: reconcileIntervalMs, purge: sweepIntervalMs };
}
