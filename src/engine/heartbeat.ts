import { renew, touch } from "../core/transition.ts";
import { OutcomeUnknown } from "../errors.ts";
import type { Context } from "./context.ts";
import type { Holding } from "./holding.ts";

/**
 * Keeps an attempt's lease alive from a third of its length on, until the attempt may run no longer. Tells the attempt
 * when its time is up, when a renewal finds the key taken, and when the lease ended on our own clock, whether its timers rang
 * by then or not. Returns the stop.
 */
export function keepAlive<Tx>(context: Context<Tx>, holding: Holding, maxRunMs: number): () => void {
  const { policy, runtime, emit } = context;
  let stopped = false;
  const beat = async () => {
    if (holding.aborting.isAborted()) return;
    const judgedDead = await renewLease(context, holding, () => stopped);
    if (stopped) return;
    if (judgedDead) return holding.lose("A worker judged this attempt dead; its result may still count.");
    cancelBeat = runtime.after(policy.heartbeatMs, beats);
  };
  const beats = () => {
    beat().catch((error: unknown) => {
      emit({ type: "failure", what: `renewing the lease of ${holding.held().operation}`, error });
      if (!stopped) cancelBeat = runtime.after(policy.heartbeatMs, beats);
    });
  };
  let cancelLease = () => {};
  const { leaseLeftMs, leaseIsOver, timeIsUp } = judgedByTheClock(context, holding, maxRunMs);
  const watchLease = () => {
    const leftMs = leaseLeftMs();
    if (leftMs <= 0) return leaseIsOver();
    cancelLease = runtime.after(leftMs, watchLease);
  };
  let cancelBeat = runtime.after(policy.heartbeatMs, beats);
  watchLease();
  const cancelLimit = runtime.after(maxRunMs, timeIsUp);
  return () => {
    stopped = true;
    holding.aborting.judgedBy(() => {});
    cancelBeat();
    cancelLease();
    cancelLimit();
  };
}

/** The ends of an attempt's time, heard of by its timers, and by whoever asks before they rang. */
function judgedByTheClock<Tx>({ runtime }: Context<Tx>, holding: Holding, maxRunMs: number) {
  const timeEndMs = runtime.monotonicMs() + maxRunMs;
  const leaseLeftMs = () => holding.leaseEndMs() - runtime.monotonicMs();
  const leaseIsOver = () => holding.lose("The lease ended before it could be renewed.");
  const timeIsUp = () =>
    holding.aborting.abort(new OutcomeUnknown(`The work did not end within ${maxRunMs} ms.`));
  holding.aborting.judgedBy(() => {
    if (leaseLeftMs() <= 0) leaseIsOver();
    else if (runtime.monotonicMs() >= timeEndMs) timeIsUp();
  });
  return { leaseLeftMs, leaseIsOver, timeIsUp };
}

/** True when the record says that a worker no longer counts on this attempt. */
async function renewLease<Tx>(
  context: Context<Tx>,
  holding: Holding,
  stopped: () => boolean,
): Promise<boolean> {
  const { policy, runtime } = context;
  return await holding.serially(async () => {
    if (stopped()) return false;
    const sentMs = runtime.monotonicMs();
    const written = await holding.write((record) => {
      const change = { writeId: runtime.newId(), leaseMs: policy.leaseMs };
      return record.state === "in_progress" ? renew(record, change) : touch(record, change);
    });
    if (written.kind === "lost" || written.record.state !== "in_progress") return true;
    holding.extendLease(sentMs);
    return false;
  });
}
