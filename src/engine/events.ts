import type { Finality } from "../core/finality.ts";
import type { Identity, RecordState } from "../core/record.ts";
import type { WorkerName } from "../stores/store.ts";

/** How one keyed request ended as far as the key goes; the label of `oncekey_requests_total`. */
export type Outcome =
  | "claimed"
  | "replayed"
  | "in_progress_conflict"
  | "fingerprint_mismatch"
  | "stale_reclaimed"
  | "outcome_unknown"
  | "response_not_stored"
  | "key_expired"
  | "key_missing"
  | "key_invalid"
  | "store_unavailable"
  | "unprotected";

export type EngineEvent =
  /** `observed`: counted only, on a route that runs unprotected until it is switched on. */
  | {
      readonly type: "request";
      readonly operation: string;
      readonly outcome: Outcome;
      readonly observed?: boolean;
    }
  /** A key came again with another request. No client is told what differs. */
  | {
      readonly type: "mismatch";
      readonly operation: string;
      readonly identity: Identity;
      /** Of the record that stands. */
      readonly attempt: number;
      /**
       * The top-level members of its JSON document that the first request had otherwise, or had not: none where the
       * method, the path, the query or a header differs. `null` where it cannot be told.
       */
      readonly members: readonly string[] | null;
      /** How many members the first request had that this one has not; their names are not kept. */
      readonly missing: number;
      readonly observed: boolean;
    }
  /** An attempt found that it no longer owns its key. */
  | {
      readonly type: "lease_lost";
      readonly operation: string;
      readonly identity: Identity;
      readonly attempt: number;
    }
  /** A worker, a duplicate, an ending or a person moved a record. */
  | {
      readonly type: "transition";
      readonly by: "attempt" | "duplicate" | "sweeper" | "reconciler" | "person";
      readonly operation: string;
      readonly identity: Identity;
      readonly attempt: number;
      readonly from: RecordState;
      readonly to: RecordState;
      readonly reason: string;
    }
  /** `onAmbiguous` turned an outcome that nobody knows into another run, or kept its error as the answer. */
  | {
      readonly type: "ambiguity_overridden";
      readonly policy: "rerun" | "replay";
      readonly operation: string;
      readonly identity: Identity;
      readonly attempt: number;
    }
  /** An effect that was proved not to have happened seems to have happened all the same: a person should look. */
  | {
      readonly type: "contradiction";
      readonly operation: string;
      readonly identity: Identity;
      readonly attempt: number;
      readonly reason: string;
    }
  /** A route's `finality` said of an answer what is on record speaks against: it was not heard. */
  | {
      readonly type: "finality_refused";
      readonly operation: string;
      readonly identity: Identity;
      readonly attempt: number;
      readonly said: Finality;
      readonly reason: string;
    }
  /** A caller was not told what stands under its key: the route's `authorizeReplay` said no. */
  | { readonly type: "replay_refused"; readonly operation: string; readonly identity: Identity }
  /** Something failed that no caller is waiting for; `what` says what was being done. */
  | { readonly type: "failure"; readonly what: string; readonly error: unknown }
  /** A handler with `effects: "transaction"` ended normally without calling `transaction`. */
  | { readonly type: "transaction_unused"; readonly operation: string; readonly identity: Identity }
  /** An attempt with `effects: "transaction"` wrote through a watched handle that is not its transaction's. */
  | {
      readonly type: "write_outside_transaction";
      readonly operation: string;
      readonly identity: Identity;
      /** The beginning of its text, without the values that go with it. */
      readonly statement: string;
    }
  /** Keys are claimed on a store that nobody looks after: these workers were never seen on it, or not lately. */
  | {
      readonly type: "no_upkeep";
      readonly store: string;
      readonly missing: readonly WorkerName[];
      /** What follows from it and what to do, in words. */
      readonly advice: string;
    }
  | {
      readonly type: "record_corrupt";
      readonly operation: string;
      readonly identity: Identity;
      readonly error: unknown;
    };

export type Listener = (event: EngineEvent) => void;

export interface Events {
  readonly emit: Listener;
  /** Returns what stops the listening. */
  readonly subscribe: (listener: Listener) => () => void;
}

/** Tells every listener. One that throws stops neither the others nor the request; the others are told of its failure. */
export function createEvents(first: readonly Listener[]): Events {
  const listeners = new Set<Listener>(first);
  const tell = (event: EngineEvent, thrown: Listener | null) => {
    for (const listener of listeners) {
      if (listener === thrown) continue;
      try {
        listener(event);
      } catch (error) {
        if (thrown === null) tell({ type: "failure", what: "telling a listener", error }, listener);
      }
    }
  };
  return {
    emit: (event) => tell(event, null),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
