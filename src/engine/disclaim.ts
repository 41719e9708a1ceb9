import type { RecordWrite } from "../core/record.ts";
import { hasInherited } from "../core/step.ts";
import { type Doubt, doubt, release, renounce, seen, touch } from "../core/transition.ts";
import { judgeOpenMarks } from "../core/verdict.ts";
import type { Undo } from "./begin.ts";
import type { Asked } from "./claim.ts";
import { type Flow, insert, replace } from "./command.ts";
import type { Context } from "./context.ts";
import { type Held, ownedStill } from "./ending.ts";
import { createQueue } from "./queue.ts";
import { type Budget, persist } from "./retry.ts";

/** Takes back, in the background, a claim that was given up because nobody heard whether it had been applied. */
export type Disclaim = (asked: Asked, undo: Undo | null) => void;

/** Enough for a short outage; in a long one the lease and the sweeper judge what is left. */
const MOST_WAITING = 10_000;

/**
 * The caller did nothing under such a claim, and only this process knows it: left alone it would count as an attempt that
 * died. One is taken back after the other, so that a store that comes back is not met by all of them at once.
 */
export function createDisclaim<Tx>(
  context: Pick<Context<Tx>, "driver" | "policy" | "runtime" | "emit">,
): Disclaim {
  const { driver, policy, runtime, emit } = context;
  const queue = createQueue();
  let waiting = 0;
  const failed = ({ claim }: Asked, error: unknown) =>
    emit({ type: "failure", what: `taking back a claim of ${claim.operation}`, error });
  const takeBack = async (asked: Asked, undo: Undo | null) => {
    // From now, not from the request: what is to be taken back may have been applied, and its lease begun, only lately.
    const budget = { untilMs: runtime.monotonicMs() + policy.leaseMs, tries: Number.POSITIVE_INFINITY };
    try {
      const left = await driver.drive(disclaimFlow(asked, policy.releasedRetentionMs, budget, undo !== null));
      if (left !== null && undo !== null) await undo(left);
    } catch (error) {
      failed(asked, error);
    } finally {
      waiting -= 1;
    }
  };
  return (asked, undo) => {
    if (waiting >= MOST_WAITING) return failed(asked, new Error("Too many wait to be taken back."));
    waiting += 1;
    void queue(() => takeBack(asked, undo));
  };
}

/**
 * An insert under the same owner settles whether the claim had been applied; where it had not, the key is left released,
 * so that the claim finds it taken when it arrives after all. Returns an opened operation that is to be undone.
 */
function* disclaimFlow(asked: Asked, retainMs: number, budget: Budget, undoes: boolean): Flow<Held | null> {
  const renounced = renounce(asked.claim, { retainMs });
  const { record } = yield* persist(budget, () => insert(renounced));
  if (!ownedStill(record, asked.claim)) return null;
  if (undoes && record.reference !== null && !hasInherited(record)) return record;
  const write = unused(record, asked, retainMs);
  yield* persist(budget, () => replace(seen(record), write, "wait"));
  return null;
}

/** Nothing was done under this claim; what an earlier attempt may have done is as much in doubt as before. */
export function unused(record: Held, { newId, heldRetainMs }: Asked, retainMs: number): RecordWrite {
  const doubted = doubtOfEarlier(record);
  if (doubted === null) return release(record, { writeId: newId(), retainMs });
  if (record.state === "unknown") return touch(record, { writeId: newId() });
  return doubt(record, { writeId: newId(), doubt: doubted, heldRetainMs });
}

/** The doubt that a claim took over with its record and that nothing has ended; `null` where there is none. */
export function doubtOfEarlier(record: Held): Doubt | null {
  if (!hasInherited(record)) return null;
  const verdict = judgeOpenMarks(record, "The next attempt was given up before it did anything.");
  return verdict.kind === "doubt" ? verdict.doubt : null;
}
