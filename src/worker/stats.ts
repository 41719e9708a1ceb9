import type { Engine } from "../engine/engine.ts";
import type { Counts, Settling, WorkerName } from "../stores/store.ts";
import { type WorkerHealth, workersHealth } from "./health.ts";

/** What gauges show of a store: ages in milliseconds by the store's clock, `null` where there is no such record. */
export interface Stats extends Counts {
  readonly workers: Readonly<Record<WorkerName, WorkerHealth>>;
}

/**
 * Counts the records of an engine's store by state, with the ages of the oldest in progress, unknown, and expired but not
 * purged, and says whether workers are at work. PostgreSQL reads its whole table for it: ask once a minute, not at each
 * request. Throws `StoreUnavailable` where the store is out of reach.
 */
export async function stats<Tx, Settles extends Settling>(engine: Engine<Tx, Settles>): Promise<Stats> {
  const [counts, workers] = await Promise.all([engine.store.count(), workersHealth(engine)]);
  return { ...counts, workers };
}
