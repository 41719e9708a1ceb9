import type { Answer, KeyRecord } from "../core/record.ts";
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
  /** `null` where the provider cannot be asked; a throw means that it could not be reached. */
  readonly look: ((record: KeyRecord) => Promise<Sighting>) | null;
  /** `cancelled` proves that nothing will happen under this generation; `null` where the provider cannot cancel. */
  readonly cancel: ((record: KeyRecord) => Promise<Cancelling>) | null;
  /** Writes the domain's final rows and makes the answer, inside the transaction that finishes the record. */
  readonly finish: (tx: Tx, record: KeyRecord, result: Uint8Array) => Awaitable<Answer>;
  /** Marks the domain's rows when nothing happened, inside the transaction that releases the record. */
  readonly abandon: (tx: Tx, record: KeyRecord) => Awaitable<void>;
}

export type Cancelling =
  | { readonly kind: "cancelled" }
  | { readonly kind: "found"; readonly result: Uint8Array };
