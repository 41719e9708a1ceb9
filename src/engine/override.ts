import type { Identity, RecordState } from "../core/record.ts";
import { openMarks, repeatableUntil } from "../core/step.ts";
import type { Store } from "../stores/store.ts";
import type { BeginRequest } from "./begin.ts";
import type { Moved } from "./claim.ts";
import type { EngineEvent } from "./events.ts";
import type { Runtime } from "./runtime.ts";

/** What a route's `onAmbiguous` did about an outcome that nobody knows. */
export interface Override {
  readonly policy: "rerun" | "replay";
  readonly operation: string;
  readonly identity: Identity;
  readonly attempt: number;
  readonly before: RecordState;
  readonly after: RecordState;
}

/** Counts an override for the listeners, and writes it to the store's audit. Never throws: a failure is told to them too. */
export type TellOverride = (override: Override) => Promise<void>;

const REASONS = {
  rerun: "The programmer said that an outcome nobody knows is to run again.",
  replay: "The programmer said that an outcome nobody knows is to be answered with its error.",
} as const;

export function createTellOverride(world: {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly storeTimeoutMs: number;
  readonly emit: (event: EngineEvent) => void;
}): TellOverride {
  const { store, runtime, storeTimeoutMs, emit } = world;
  return async ({ policy, operation, identity, attempt, before, after }) => {
    emit({ type: "ambiguity_overridden", policy, operation, identity, attempt });
    const bound = runtime.timer(storeTimeoutMs);
    const late = bound.expired.then(() => {
      throw new Error(`The store took no audit within ${storeTimeoutMs} ms.`);
    });
    const action = `${policy}_after_ambiguous`;
    const entry = { identity, actor: "policy", action, reason: REASONS[policy], before, after };
    try {
      await Promise.race([store.audit(entry), late]);
    } catch (error) {
      emit({ type: "failure", what: `auditing ${action} of ${operation}`, error });
    } finally {
      bound.cancel();
    }
  };
}

/** The moves of a claim that nothing but the programmer's `rerun` allowed. */
export function rerunsOf(
  { onAmbiguous, identity }: BeginRequest,
  moved: readonly Moved[],
): readonly Override[] {
  if (onAmbiguous !== "rerun") return [];
  return moved
    .filter(({ from, to }) => from === "unknown" && !isAllowedAnyway(to))
    .map(({ from, to: { operation, attempt, state } }) => {
      return { policy: "rerun", operation, identity, attempt, before: from, after: state };
    });
}

function isAllowedAnyway({ steps, claimedAt }: Moved["to"]): boolean {
  const open = openMarks(steps);
  return open.length > 0 && claimedAt < repeatableUntil(open);
}
