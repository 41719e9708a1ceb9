import type { KeyRecord, RecordState } from "../core/record.ts";
import { codec } from "../engine/codec.ts";
import type { Context } from "../engine/context.ts";
import type { Awaitable } from "../engine/returned.ts";
import { ConfigurationError } from "../errors.ts";
import type { Reply } from "./exchange.ts";
import * as replies from "./replies.ts";

/** What of a record a route's `authorizeReplay` is shown: whose it is and what it is about, and nothing of the answer. */
export interface ReplayView {
  readonly principal: string;
  readonly operation: string;
  readonly state: RecordState;
  readonly correlationId: string | null;
  /** When the first request came, and when the attempt began that brought the outcome; by the store's clock. */
  readonly createdAt: Date;
  readonly claimedAt: Date;
  /** What `open` of an operation returned; `null` for any other route. */
  readonly reference: unknown;
}

/** Whether the caller of this request may be told what stands under its key. */
export type AuthorizeReplay<HostRequest> = (record: ReplayView, request: HostRequest) => Awaitable<boolean>;

/** Gives a reply that tells of a record, where the caller may have it. */
export type Authorise = (record: KeyRecord | null, reply: () => Reply) => Promise<Reply>;

/** Anything but a clear yes gives nothing away; anything but a clear no is told to the listeners as well. */
export function authorising<Tx>(
  { emit }: Context<Tx>,
  ask: ((record: ReplayView) => unknown) | null,
): Authorise {
  return async (record, reply) => {
    if (ask === null || record === null) return reply();
    const { operation, identity } = record;
    const allowed = await answerOf(ask, record);
    switch (allowed.kind) {
      case "yes":
        return reply();
      case "no":
        emit({ type: "replay_refused", operation, identity });
        return replies.forbidden();
      case "failed":
        emit({ type: "failure", what: `authorising a replay of ${operation}`, error: allowed.error });
        return replies.unauthorised();
    }
  };
}

type Allowed = { readonly kind: "yes" | "no" } | { readonly kind: "failed"; readonly error: unknown };

async function answerOf(ask: (record: ReplayView) => unknown, record: KeyRecord): Promise<Allowed> {
  try {
    const answer = await ask(viewOf(record));
    if (typeof answer === "boolean") return { kind: answer ? "yes" : "no" };
    return { kind: "failed", error: new ConfigurationError("authorizeReplay", "must return true or false") };
  } catch (error) {
    return { kind: "failed", error };
  }
}

function viewOf({ identity, operation, state, correlationId, ...record }: KeyRecord): ReplayView {
  const { createdAt, claimedAt, reference } = record;
  return {
    ...{ principal: identity.principal, operation, state, correlationId },
    ...{ createdAt: new Date(createdAt), claimedAt: new Date(claimedAt) },
    reference: reference === null ? null : codec<unknown>(`the reference of ${operation}`).decode(reference),
  };
}
