import type { InProgress, RecordWrite } from "../core/record.ts";
import { touch } from "../core/transition.ts";
import { LeaseLost } from "../errors.ts";
import type { Context } from "./context.ts";
import type { Held, Written } from "./ending.ts";
import type { Holding } from "./holding.ts";

/** What an attempt writes between its claim and its ending, in its own order of writes. */
export interface Checkpoints {
  /**
   * Writes a version that must stand before the work goes on; throws where it does not, and where a worker has judged
   * the attempt dead. Gives up after the store timeout.
   */
  readonly checkpoint: (next: (record: InProgress) => RecordWrite) => Promise<void>;
  /** Writes what was learnt of a call that was made, after the attempt's end as well. */
  readonly learn: (next: (record: Held) => RecordWrite) => Promise<Written>;
}

export function checkpointsOf<Tx>({ runtime, policy }: Context<Tx>, holding: Holding): Checkpoints {
  const standing = (next: (record: InProgress) => RecordWrite) => (record: Held) =>
    record.state === "in_progress" ? next(record) : touch(record, { writeId: runtime.newId() });
  return {
    checkpoint: async (next) => {
      const written = await holding.serially(() => {
        const aborted = holding.aborting.reason();
        if (aborted !== null) throw aborted;
        return holding.write(standing(next), policy.storeTimeoutMs);
      });
      if (written.kind === "written" && written.record.state === "in_progress") return;
      if (written.kind === "written")
        holding.lose("A worker judged this attempt dead; its result may still count.");
      throw lostBy(holding.aborting.reason());
    },
    learn: (next) => holding.serially(() => holding.write(next)),
  };
}

function lostBy(reason: Error | null): LeaseLost {
  return reason instanceof LeaseLost
    ? reason
    : new LeaseLost("The key was lost before this could be written.");
}
