import { endsConnection } from "./classify.ts";

/** Whoever asked has long been told that the store is out of reach: what waited longer must not be sent any more. */
export const LONGEST_CHECK_OUT_MS = 2_000;

/** Node turns longer ones into 1 ms. */
export const LONGEST_TIMER_MS = 2_147_483_647;

/** What is known of a lent connection's end, whichever way it is heard of. */
export interface Breaking {
  readonly broken: () => Error | undefined;
  readonly breaks: (error: unknown) => void;
  /** Rejects once the connection is broken; never resolves. */
  readonly untilBroken: Promise<never>;
  /** An answer, unless the connection breaks before it comes; an error that ends the connection breaks it. */
  readonly watched: <T>(asked: Promise<T>) => Promise<T>;
}

export function breaking(): Breaking {
  let broken: Error | undefined;
  let reject: (error: Error) => void = () => {};
  const untilBroken = new Promise<never>((_, rejected) => {
    reject = rejected;
  });
  untilBroken.catch(() => {}); // `broken` keeps the error for whoever does not wait for this
  const breaks = (error: unknown) => {
    broken ??= error instanceof Error ? error : new Error(String(error));
    reject(broken);
  };
  const watched = async <T>(asked: Promise<T>): Promise<T> => {
    try {
      return await Promise.race([asked, untilBroken]);
    } catch (error) {
      if (endsConnection(error)) breaks(error);
      throw error;
    }
  };
  return { broken: () => broken, breaks, untilBroken, watched };
}

/** A server that never answers keeps no connection: past this it counts as broken. Returns what calls that off. */
export function breakAfter({ breaks }: Pick<Breaking, "breaks">, ms: number | null): () => void {
  if (ms === null) return () => {};
  const silent = () => breaks(new Error(`PostgreSQL had not answered within ${Math.round(ms)} ms`));
  const timer = setTimeout(silent, Math.min(ms, LONGEST_TIMER_MS));
  return () => clearTimeout(timer);
}
