import type { Awaitable } from "../stores/store.ts";
import type { Aborting } from "./aborting.ts";

/** How the programmer's own function settled. */
export type Settled<T> =
  | { readonly kind: "returned"; readonly value: T }
  | { readonly kind: "threw"; readonly error: unknown }
  /** The attempt's time was up, or its key lost, before the function settled; `late` is `null` where it never began. */
  | { readonly kind: "aborted"; readonly reason: unknown; readonly late: Promise<T> | null };

/** Waits for a function as long as its attempt may run. */
export function settled<T>(work: () => Awaitable<T>, aborting: Aborting): Promise<Settled<T>> {
  if (aborting.isAborted())
    return Promise.resolve({ kind: "aborted", reason: aborting.reason(), late: null });
  const running = new Promise<T>((resolve) => resolve(work()));
  return new Promise((resolve) => {
    const abort = () => resolve({ kind: "aborted", reason: aborting.reason(), late: running });
    // What the function did before its first wait may have aborted it already.
    if (aborting.isAborted()) abort();
    aborting.onAbort(abort);
    running.then(
      (value) => resolve({ kind: "returned", value }),
      (error: unknown) => resolve({ kind: "threw", error }),
    );
  });
}
