import type { Attempt } from "../engine/attempt.ts";
import { createEffectsBegin, type EffectsBegin } from "../engine/beginning.ts";
import type { Context } from "../engine/context.ts";
import { createEffects, type Effect, undeclaredEffect } from "../engine/effects.ts";
import { createGate, type Gate } from "../engine/gate.ts";
import type { DeclaredStep } from "../engine/settler.ts";
import { ConfigurationError } from "../errors.ts";

/** What a handler is handed of its attempt beside the transaction, by what its route says of its effects. */
export interface AttemptDoors {
  readonly effect: Effect;
  readonly effectsBegin: EffectsBegin;
  readonly downstreamKey: (step: string) => string;
}

/** How the handlers of one route use their doors. */
export interface DoorUse {
  readonly steps: ReadonlyMap<string, DeclaredStep>;
  readonly maxRunMs: number;
  /** The handler says when its effects begin. */
  readonly begins: boolean;
}

/** The doors of one attempt, and what its ending must wait for; `null` where nothing is written in between. */
export function doorsOf<Tx>(
  context: Context<Tx>,
  attempt: Attempt<Tx>,
  { steps, maxRunMs, begins }: DoorUse,
): AttemptDoors & { readonly gate: Gate | null } {
  const { downstreamKey } = attempt;
  const plain = { effect: undeclaredEffect, effectsBegin: notSaid, downstreamKey, gate: null };
  if (begins) {
    const gate = createGate(context, attempt);
    return { ...plain, gate, effectsBegin: createEffectsBegin(context, attempt, gate) };
  }
  if (attempt.record().effects !== "declared") return plain;
  return { ...plain, ...createEffects({ context, attempt, steps, maxRunMs }) };
}

/** Of a request that has no record: nothing can be marked, and there is nothing to say. */
export const NO_DOORS: AttemptDoors = {
  effect: () => Promise.reject(unprotected()),
  effectsBegin: async () => {},
  downstreamKey: () => {
    throw unprotected();
  },
};

function unprotected(): ConfigurationError {
  const reason =
    '"declared" marks each effect on the record of a key, and this request has none; serve safe methods by a handler of their own';
  return new ConfigurationError("effects", reason);
}

function notSaid(): Promise<never> {
  const reason = "must be true for effectsBegin() to be there: a crash before it is judged by that";
  return Promise.reject(new ConfigurationError("effectsBegin", reason));
}
