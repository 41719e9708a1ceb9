import type { Learnt } from "../core/learning.ts";
import type { Answer, KeyRecord, ProviderKind } from "../core/record.ts";
import type { Awaitable } from "../stores/store.ts";

/** What asking the provider brought; results are encoded, so that a record can keep them. */
export type Sighting =
  | { readonly kind: "found"; readonly result: Uint8Array }
  | { readonly kind: "not_found" }
  | { readonly kind: "pending" };

/** How an operation can be ended by any process that knows its name. */
export interface Settler<Tx> {
  /** The operation's one external effect. */
  readonly step: string;
  /** `null` where the provider cannot be asked; a throw means that it could not be reached. The signal ends the waiting. */
  readonly look: ((record: KeyRecord, signal: AbortSignal) => Promise<Sighting>) | null;
  /** `cancelled` proves that nothing will happen under this generation; `null` where the provider cannot cancel. */
  readonly cancel: ((record: KeyRecord, signal: AbortSignal) => Promise<Cancelling>) | null;
  /** Writes the domain's final rows and makes the answer, inside the transaction that finishes the record. */
  readonly finish: (tx: Tx, record: KeyRecord, result: Uint8Array) => Awaitable<Answer>;
  /** Marks the domain's rows when nothing happened, inside the transaction that releases the record. */
  readonly abandon: (tx: Tx, record: KeyRecord) => Awaitable<void>;
}

export type Cancelling =
  | { readonly kind: "cancelled" }
  | { readonly kind: "found"; readonly result: Uint8Array };

/**
 * One step of a route or a function with `effects: "declared"`, as any process knows it that knows its operation. There is
 * nothing to finish: what is learnt goes onto the step's mark, and once no call is in doubt the record is released, so
 * that the next request goes on where the dead attempt stopped.
 */
export interface DeclaredStep {
  readonly provider: ProviderKind;
  /** How long it deduplicates by our key (`repeatable`). */
  readonly keyTtlMs: number | null;
  /** How long after the claim it takes our request (`query`). */
  readonly validForMs: number | null;
  /** `null` where the provider cannot be asked; a throw means that it could not be reached. */
  readonly look: ((attempt: StepAttempt) => Promise<StepSighting>) | null;
  /** `cancelled` proves that nothing will happen under this generation; `null` where the provider cannot cancel. */
  readonly cancel: ((attempt: StepAttempt) => Promise<StepCancelling>) | null;
}

/** The attempt of a step as its provider is asked about it. */
export interface StepAttempt {
  readonly number: number;
  readonly downstreamKey: string;
}

type Ended = Extract<Learnt, { readonly kind: "finished" | "refused" }>;

export type StepSighting = Ended | { readonly kind: "not_found" | "pending" };

export type StepCancelling = Ended | { readonly kind: "cancelled" };
