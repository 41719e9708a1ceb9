import type { Engine } from "../engine/engine.ts";
import type { Settling, WorkerName } from "../stores/store.ts";
import { intervalsOf } from "./intervals.ts";

/**
 * Runs a tick and says on the store that its worker is at work: when it has ended well, and at each interval of a tick
 * that takes longer. One that takes too long counts as hanging, and is not spoken for any more.
 */
export async function atWork<T, Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  worker: WorkerName,
  tick: () => Promise<T>,
): Promise<T> {
  const { store, context } = engine;
  const { runtime, emit } = context;
  const untilMs = runtime.monotonicMs() + LONGEST_TICK_MS;
  const failed = (error: unknown) => emit({ type: "failure", what: `a beat of the ${worker}`, error });
  let beaten: Promise<void> = Promise.resolve();
  let cancel = () => {};
  const beatLater = () => {
    cancel = runtime.after(intervalsOf(engine)[worker], () => {
      if (runtime.monotonicMs() >= untilMs) return;
      beaten = store.beat(worker).then(beatLater, failed);
    });
  };
  beatLater();
  try {
    const done = await tick();
    cancel();
    await store.beat(worker);
    return done;
  } finally {
    await beaten;
    cancel(); // a beat that was under way has set the next one
  }
}

/** A tick with much to do, or with a provider that hangs, comes back within this. */
const LONGEST_TICK_MS = 60_000;
