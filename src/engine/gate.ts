import { LeaseLost, OncekeyError } from "../errors.ts";
import { ABORTING } from "./aborting.ts";
import { type Attempt, type Ended, heldFor, type NotOurs } from "./attempt.ts";
import type { Context } from "./context.ts";

/** Between what a handler still has written and the ending of its attempt: neither may overlook the other. */
export interface Gate {
  /** Something that is written for the attempt; the ending waits for it. */
  readonly during: <T>(write: () => Promise<T>) => Promise<T>;
  /** Throws once the attempt is over, its time up or its key lost: nothing new may begin. */
  readonly refuseClosed: (what: string) => void;
  /** The attempt is ending, or has ended. */
  readonly closed: () => boolean;
  /** Ends the attempt once nothing is being written any more, and waits for it as long as an answer may be held. */
  readonly ended: (end: () => Promise<Ended | NotOurs>) => Promise<Ended | NotOurs>;
}

export function createGate<Tx>(context: Context<Tx>, attempt: Attempt<Tx>): Gate {
  const pending = new Set<Promise<unknown>>();
  let closed = false;
  return {
    during: async (write) => {
      const writing = write();
      pending.add(writing);
      try {
        return await writing;
      } finally {
        pending.delete(writing);
      }
    },
    refuseClosed: (what) => {
      const { operation, number, [ABORTING]: aborting } = attempt;
      if (!closed && !aborting.isAborted()) return;
      const reason = aborting.reason();
      if (reason instanceof LeaseLost) throw reason;
      const why = closed ? "has ended" : "has no time left";
      const message = `Attempt ${number} of ${operation} ${why}; ${what} was refused, and nothing was called for it.`;
      throw new OncekeyError("attempt_ended", message);
    },
    closed: () => closed,
    ended: (end) => {
      closed = true;
      const ending = async () => {
        while (pending.size > 0) await Promise.allSettled(pending);
        return await end();
      };
      return heldFor(context, attempt.operation, ending());
    },
  };
}
