import type { RecordState } from "../core/record.ts";
import type { Attempt } from "./attempt.ts";
import type { Context } from "./context.ts";

/** What became of a record by something that its attempt learnt after it was given up. */
export interface LateMove {
  readonly from: RecordState;
  readonly to: RecordState;
  readonly reason: string;
}

/** Tells the listeners of it. */
export function tellLate<Tx>(
  { emit }: Context<Tx>,
  { operation, identity, number }: Attempt<Tx>,
  move: LateMove,
): void {
  emit({ type: "transition", by: "attempt", operation, identity, attempt: number, ...move });
}
