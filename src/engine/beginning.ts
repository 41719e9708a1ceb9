import { BEGIN_STEP, BEGUN } from "../core/begun.ts";
import { checkpoint } from "../core/transition.ts";
import type { Attempt } from "./attempt.ts";
import type { Context } from "./context.ts";
import type { Gate } from "./gate.ts";

/** Says that effects may be made from now on; resolves once that is on record, and throws where they may not. */
export type EffectsBegin = () => Promise<void>;

export function createEffectsBegin<Tx>(
  { runtime }: Context<Tx>,
  attempt: Attempt<Tx>,
  gate: Gate,
): EffectsBegin {
  let begun = false;
  const write = () =>
    attempt.checkpoint((record) =>
      checkpoint(record, { writeId: runtime.newId(), step: BEGIN_STEP, mark: BEGUN }),
    );
  return async () => {
    gate.refuseClosed("the beginning of effects");
    if (begun) return;
    await gate.during(write);
    begun = true;
    gate.refuseClosed("the beginning of effects");
  };
}
