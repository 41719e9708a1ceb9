import type { Awaitable } from "../stores/store.ts";
import { isPromise } from "./command.ts";

/**
 * Runs a flow as far as its commands answer at once, and on with promises from the first that does not. That is how
 * one unit serves SQLite, whose transactions must not wait, and the others.
 */
export function step<C, T>(
  flow: Generator<C, T, void>,
  perform: (command: C) => Awaitable<void>,
): Awaitable<T> {
  const reached = untilItWaits(flow, flow.next(), perform);
  return reached.done === true ? reached.value : stepOn(flow, reached.value, perform);
}

async function stepOn<C, T>(
  flow: Generator<C, T, void>,
  first: PromiseLike<void>,
  perform: (command: C) => Awaitable<void>,
): Promise<T> {
  let waitedFor = first;
  for (;;) {
    const reached = untilItWaits(flow, await resumed(flow, waitedFor), perform);
    if (reached.done === true) return reached.value;
    waitedFor = reached.value;
  }
}

/** What the flow does next, told how its command ended; one that throws has ended. */
async function resumed<C, T>(
  flow: Generator<C, T, void>,
  waitedFor: PromiseLike<void>,
): Promise<IteratorResult<C, T>> {
  try {
    await waitedFor;
  } catch (error) {
    return flow.throw(error);
  }
  return flow.next();
}

/** Goes on with a flow until its end, or until it waits for a promise. */
function untilItWaits<C, T>(
  flow: Generator<C, T, void>,
  from: IteratorResult<C, T>,
  perform: (command: C) => Awaitable<void>,
): IteratorResult<PromiseLike<void>, T> {
  let next = from;
  while (next.done !== true) {
    let performed: Awaitable<void>;
    try {
      performed = perform(next.value);
    } catch (error) {
      next = flow.throw(error);
      continue;
    }
    if (isPromise(performed)) return { done: false, value: performed };
    next = flow.next();
  }
  return next;
}
