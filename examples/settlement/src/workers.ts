/** Work that is done again and again. */
export interface Repeated {
  /** Starts no further round and waits for the one that runs. */
  readonly stop: () => Promise<void>;
}

/** Runs rounds from now on, each `intervalMs` after the end of the one before; a failed one is told and does no more. */
export function repeat({
  round,
  intervalMs,
  tell,
}: {
  readonly round: () => Promise<unknown>;
  readonly intervalMs: number;
  readonly tell: (error: unknown) => void;
}): Repeated {
  const waitMs = Math.min(intervalMs, LONGEST_TIMER_MS);
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let running = Promise.resolve();
  const run = async () => {
    try {
      await round();
    } catch (error) {
      tell(error);
    }
    if (!stopped) timer = setTimeout(next, waitMs);
  };
  const next = () => {
    running = run();
  };
  next();
  return {
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}

/** A longer timer would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
