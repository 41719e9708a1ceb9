import type { Unknown } from "../core/record.ts";
import { lookAgain, seen } from "../core/transition.ts";
import { createAborting } from "../engine/aborting.ts";
import { call, type Flow, replace } from "../engine/command.ts";
import type { Context } from "../engine/context.ts";
import { type Settled, settled } from "../engine/settled.ts";
import type { Settler, Sighting } from "../engine/settler.ts";

/** What asking about a record in doubt brought. */
export type Sighted =
  | Sighting
  | { readonly kind: "cancelled" }
  | { readonly kind: "unreachable"; readonly error: unknown }
  /** The worker had to stop before there was an answer. */
  | { readonly kind: "given_up" }
  | { readonly kind: "cannot_ask" }
  /** Somebody else took the record over. */
  | { readonly kind: "lost" };

/** How a record in doubt can be asked about. */
export type Asker<Tx> = Pick<Settler<Tx>, "look" | "cancel">;

/** Shorter than any lease of a look, and short enough that the others do not wait long for a provider that hangs. */
const LONGEST_ANSWER_MS = 10_000;

/**
 * What is kept already, else what the provider says; not found there means to cancel where that can be. Each call is
 * bounded below the lease, and the lease is renewed before a cancel, which only the record's owner may send.
 */
export function* sight<Tx>(
  context: Context<Tx>,
  { look, cancel }: Asker<Tx>,
  record: Unknown,
  signal: AbortSignal,
): Flow<{ readonly sighted: Sighted; readonly record: Unknown }> {
  const { operation, evidence } = record;
  if (evidence.result !== null) return { sighted: { kind: "found", result: evidence.result }, record };
  const bounds = { context, signal };
  const seenThere: Sighted =
    look === null
      ? { kind: "cannot_ask" }
      : yield* asked(bounds, `look for ${operation}`, (given) => look(record, given));
  const silent = seenThere.kind === "not_found" || seenThere.kind === "cannot_ask";
  if (!silent || cancel === null) return { sighted: seenThere, record };
  const held = yield* heldOn(context, record);
  if (held === null) return { sighted: { kind: "lost" }, record };
  return {
    sighted: yield* asked(bounds, `cancel ${operation}`, (given) => cancel(held, given)),
    record: held,
  };
}

/** What bounds the calls of a tick: their time, and the worker's own end. */
export interface CallBounds<Tx> {
  readonly context: Context<Tx>;
  readonly signal: AbortSignal;
}

export type Unanswered = Extract<Sighted, { readonly kind: "unreachable" | "given_up" }>;

/** Asks a provider and gives up in time; whatever stands in the way of an answer is a value. */
export function* asked<Tx, T>(
  { context: { runtime, policy }, signal }: CallBounds<Tx>,
  name: string,
  ask: (signal: AbortSignal) => Promise<T>,
): Flow<T | Unanswered> {
  const boundMs = Math.min(LONGEST_ANSWER_MS, policy.requestTimeoutMs);
  const timer = runtime.timer(boundMs);
  const answer = yield* call(name, () => bounded(ask, { timer: timer.expired, boundMs, signal }));
  timer.cancel();
  switch (answer.kind) {
    case "returned":
      return answer.value;
    case "threw":
      return { kind: "unreachable", error: answer.error };
    case "aborted":
      return signal.aborted ? { kind: "given_up" } : { kind: "unreachable", error: answer.reason };
  }
}

async function bounded<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  bounds: { readonly timer: Promise<void>; readonly boundMs: number; readonly signal: AbortSignal },
): Promise<Settled<T>> {
  const { timer, boundMs, signal } = bounds;
  const asking = createAborting();
  const stop = () => asking.abort(new Error("The worker had to stop.", { cause: signal.reason }));
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  void timer.then(() => asking.abort(new Error(`The provider did not answer within ${boundMs} ms.`)));
  try {
    return await settled(() => ask(asking.signal()), asking);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** A lease of its own for the next call; `null` where the record is no longer ours. */
export function* heldOn<Tx>({ runtime, policy }: Context<Tx>, record: Unknown): Flow<Unknown | null> {
  const { reason } = record.evidence;
  const change = { writeId: runtime.newId(), answered: false, nextLookInMs: policy.leaseMs, reason };
  const replaced = yield* replace(seen(record), lookAgain(record, change), "never");
  return replaced.kind === "replaced" && replaced.record.state === "unknown" ? replaced.record : null;
}
