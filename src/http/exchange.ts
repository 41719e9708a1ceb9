import type { Answer } from "../core/record.ts";

/** One request as the guard needs it, whatever framework it came through. */
export interface Exchange {
  readonly method: string;
  /**
   * As the host routed by it, without the query: what the host takes for one path is one path here, and what it tells
   * apart, a parameter of the route say, makes another request.
   */
  readonly path: string;
  /** What the host matched, such as `/orders/:id/pay`; `null` where it cannot say. Names the operation to people. */
  readonly pattern: string | null;
  /** As sent, without the question mark. */
  readonly query: string;
  /** Every line of a header, in order; none where it is absent. A host that joins lines hands on what it has. */
  readonly header: (name: string) => readonly string[];
  /**
   * The body's bytes, unread by anyone else; the handler can still read it afterwards. One that turns out to be longer
   * than `maxBytes` need not be read to its end: what is handed back is longer then, too.
   */
  readonly body: (maxBytes: number) => Promise<Uint8Array>;
  /** Calls `listener` once the client is gone, at once where it is already; returns what stops the listening. */
  readonly onHungUp: (listener: () => void) => () => void;
}

/** What a host sends: bytes that were kept, or that say why there is no answer. */
export type Reply = Answer & { readonly body: Uint8Array };

/** A header of an answer, its name in lower case. */
export type Header = readonly [name: string, value: string];

export const KEY_HEADER = "idempotency-key";
export const REPLAYED_HEADER = "idempotent-replayed";
export const EXPIRES_HEADER = "idempotency-expires";
export const STATUS_HEADER = "idempotency-status";

/** RFC 9110, 9.2.1: requests that ask for no change need no protection. */
export function isSafe(method: string): boolean {
  return SAFE.has(method.toUpperCase());
}

const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);
