import type { Awaitable } from "../stores/store.ts";

/** How the programmer's own function settled. */
export type Settled<T> =
  | { readonly kind: "returned"; readonly value: T }
  | { readonly kind: "threw"; readonly error: unknown }
  /** The attempt's time was up, or its key lost, before the function settled; `late` is `null` where it never began. */
  | { readonly kind: "aborted"; readonly reason: unknown; readonly late: Promise<T> | null };

/** Waits for a function as long as its attempt may run. */
export async function settled<T>(work: () => Awaitable<T>, signal: AbortSignal): Promise<Settled<T>> {
  if (signal.aborted) return { kind: "aborted", reason: signal.reason, late: null };
  const running = new Promise<T>((resolve) => resolve(work()));
  const ended = running.then(
    (value): Settled<T> => ({ kind: "returned", value }),
    (error: unknown): Settled<T> => ({ kind: "threw", error }),
  );
  const aborted = new Promise<Settled<T>>((resolve) => {
    const giveUp = () => resolve({ kind: "aborted", reason: signal.reason, late: running });
    signal.addEventListener("abort", giveUp, { once: true });
  });
  return await Promise.race([ended, aborted]);
}
