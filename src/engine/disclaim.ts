import type { InProgress, RecordWrite } from "../core/record.ts";
import { hasInherited } from "../core/step.ts";
import { type Doubt, doubt, release, renounce, seen } from "../core/transition.ts";
import { judgeOpenMarks } from "../core/verdict.ts";
import type { Asked } from "./claim.ts";
import { type Flow, insert, replace } from "./command.ts";
import type { Context } from "./context.ts";
import { createQueue } from "./queue.ts";
import { type Budget, persist } from "./retry.ts";

/** Takes back, in the background, a claim that was given up because nobody heard whether it had been applied. */
export type Disclaim = (asked: Asked, untilMs: number) => void;

/** Enough for a short outage; in a long one the lease and the sweeper judge what is left. */
const MOST_WAITING = 1_000;

/**
 * Nothing ran under such a claim, and only this process knows it: left alone it would count as an attempt that died. One
 * is taken back after the other, so that a store that comes back is not met by all of them at once.
 */
export function createDisclaim<Tx>(context: Pick<Context<Tx>, "driver" | "policy" | "emit">): Disclaim {
  const { driver, policy, emit } = context;
  const queue = createQueue();
  let waiting = 0;
  const takeBack = async (asked: Asked, untilMs: number) => {
    const budget = { untilMs, tries: Number.POSITIVE_INFINITY };
    try {
      await driver.drive(disclaimFlow(asked, policy.releasedRetentionMs, budget));
    } catch (error) {
      emit({ type: "failure", what: `taking back a claim of ${asked.claim.operation}`, error });
    } finally {
      waiting -= 1;
    }
  };
  return (asked, untilMs) => {
    if (waiting >= MOST_WAITING) return;
    waiting += 1;
    void queue(() => takeBack(asked, untilMs));
  };
}

/**
 * An insert under the same owner settles whether the claim had been applied; where it had not, the key is left released,
 * so that the claim finds it taken when it arrives after all.
 */
function* disclaimFlow(asked: Asked, retainMs: number, budget: Budget): Flow<void> {
  const renounced = renounce(asked.claim, { retainMs });
  const { record } = yield* persist(budget, () => insert(renounced));
  if (record.state !== "in_progress" || record.owner !== asked.claim.owner) return;
  const write = unused(record, asked, retainMs);
  yield* persist(budget, () => replace(seen(record), write, "wait"));
}

/** Nothing was done under this claim; what an earlier attempt may have done is as much in doubt as before. */
function unused(record: InProgress, { newId, heldRetainMs }: Asked, retainMs: number): RecordWrite {
  const doubted = doubtOfEarlier(record);
  if (doubted !== null) return doubt(record, { writeId: newId(), doubt: doubted, heldRetainMs });
  return release(record, { writeId: newId(), retainMs });
}

/** The doubt that a claim took over with its record and that nothing has ended; `null` where there is none. */
export function doubtOfEarlier(record: InProgress): Doubt | null {
  if (!hasInherited(record)) return null;
  const verdict = judgeOpenMarks(record, "The next attempt was given up before it did anything.");
  return verdict.kind === "doubt" ? verdict.doubt : null;
}
