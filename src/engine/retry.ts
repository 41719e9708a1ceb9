import { StoreContention, StoreUnavailable } from "../errors.ts";
import { type ClockCommand, clock, type PauseCommand, pause } from "./command.ts";

/** How long and how often a write is repeated: the same write, so that a lost reply does no harm. */
export interface Budget {
  /** On our own monotonic clock. */
  readonly untilMs: number;
  readonly tries: number;
}

/** Short at first, because contention is over in milliseconds; bounded, because a dead store is not. */
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 1_000;

/**
 * Carries `attempt` out again while the store is out of reach or in contention and the budget lasts. Every other
 * error, and the last one of a spent budget, is thrown. A budget may depend on how far things have come.
 */
export function* persist<C, T>(
  allowed: Budget | (() => Budget),
  attempt: () => Generator<C, T, void>,
): Generator<C | ClockCommand | PauseCommand, T, void> {
  for (let tried = 1; ; tried++) {
    try {
      return yield* attempt();
    } catch (error) {
      const budget = typeof allowed === "function" ? allowed() : allowed;
      if (!passes(error) || tried >= budget.tries) throw error;
      const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tried - 1));
      if ((yield* clock()) + pauseMs >= budget.untilMs) throw error;
      yield* pause(pauseMs);
    }
  }
}

/** True for the failures of a store that another try of the same write may overcome. */
export function passes(error: unknown): error is StoreUnavailable | StoreContention {
  return error instanceof StoreUnavailable || error instanceof StoreContention;
}
