import {
  createEngine as createCore,
  durationOf,
  type EngineSettings,
  type Engine as EngineWithoutWorkers,
} from "../engine/engine.ts";
import { ConfigurationError } from "../errors.ts";
import type { Settling, Store, TransactionalStore } from "../stores/store.ts";
import { tellOfNoUpkeep } from "./upkeep.ts";
import { startWorkers, type Workers } from "./workers.ts";

/** The one engine behind every door, with the workers that look after what crashes leave. */
export interface Engine<Tx = never, Settles extends Settling = Settling>
  extends EngineWithoutWorkers<Tx, Settles> {
  /** Runs sweeper, reconciler and purge in this process until they are stopped, or the engine is closed. */
  readonly start: () => Workers;
}

export function createEngine<Tx, Settles extends Settling>(
  options: EngineSettings & { readonly store: TransactionalStore<Tx, Settles> },
): Engine<Tx, Settles>;
export function createEngine<Tx = never, Settles extends Settling = never>(
  options: EngineSettings & { readonly store: Store },
): Engine<Tx, Settles>;
export function createEngine<Tx, Settles extends Settling>(
  options: EngineSettings & { readonly store: Store },
): Engine<Tx, Settles> {
  const core = createCore<Tx, Settles>(options);
  let running: Workers | null = null;
  let closed = false;
  tellOfNoUpkeep(core, () => running !== null);
  return {
    ...core,
    start: () => {
      if (closed) throw new ConfigurationError("start", "comes too late: the engine is closed");
      if (running !== null) throw new ConfigurationError("start", "was called already: the workers run");
      const workers = startWorkers(core);
      running = workers;
      return {
        stop: async (within) => {
          await workers.stop(within);
          if (running === workers) running = null;
        },
      };
    },
    close: async ({ drain = DRAIN_MS } = {}) => {
      const within = durationOf("drain", drain);
      closed = true;
      await Promise.all([core.close({ drain }), running?.stop({ within })]);
    },
  };
}

/** Proxies and orchestrators kill what has not ended by then. */
const DRAIN_MS = 10_000;
