/**
 * Tells once that an attempt's time is up or its key lost. Of an `AbortSignal`, which costs as much to make as the rest
 * of an attempt, nothing is made until the programmer's part asks for it.
 */
export interface Aborting {
  /** The first reason counts; listeners hear of it at once, those of the signal first. */
  readonly abort: (reason: Error) => void;
  readonly isAborted: () => boolean;
  /** `null` as long as nothing has aborted. */
  readonly reason: () => Error | null;
  /** Returns what stops the listening; one that comes after the abort hears nothing. */
  readonly onAbort: (listener: () => void) => () => void;
  readonly signal: () => AbortSignal;
  /** Asked whenever somebody wants to know: a process that stood still hears of a reply before it hears of its timers. */
  readonly judgedBy: (judge: () => void) => void;
}

export function createAborting(): Aborting {
  let aborted: Error | null = null;
  let controller: AbortController | null = null;
  let judge = nothing;
  let listeners: readonly (() => void)[] = NOBODY;
  const abort = (reason: Error) => {
    if (aborted !== null) return;
    aborted = reason;
    controller?.abort(reason);
    for (const listener of listeners) listener();
  };
  const onAbort = (listener: () => void) => {
    listeners = [...listeners, listener];
    return () => {
      listeners = listeners.filter((other) => other !== listener);
    };
  };
  const signal = () => {
    if (controller !== null) return controller.signal;
    controller = new AbortController();
    if (aborted !== null) controller.abort(aborted);
    return controller.signal;
  };
  const reason = () => {
    if (aborted === null) judge();
    return aborted;
  };
  const judgedBy = (by: () => void) => {
    judge = by;
  };
  return { abort, isAborted: () => reason() !== null, reason, onAbort, signal, judgedBy };
}

function nothing(): void {}

/** Where an object keeps what its `signal` is made of. */
export const ABORTING: unique symbol = Symbol("oncekey.aborting");

/**
 * Gives an object a `signal` of its own that is made when it is read. By one descriptor for all of them: a getter that is
 * written into an object gives each a shape of its own, which keeps it until the next full collection of garbage.
 */
export function addSignal<T extends { readonly [ABORTING]: Aborting }>(
  target: T,
): asserts target is T & { readonly signal: AbortSignal } {
  Object.defineProperty(target, "signal", SIGNAL);
}

const SIGNAL: PropertyDescriptor & ThisType<{ readonly [ABORTING]: Aborting }> = {
  enumerable: true,
  get() {
    return this[ABORTING].signal();
  },
};

const NOBODY: readonly (() => void)[] = [];
