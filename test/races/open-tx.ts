import type { KeyRecord } from "../../src/core/record.ts";

/** A row of the user's own, of whatever a transaction of the user's did. */
export interface Row {
  readonly scope: string;
  readonly attempt: number;
  readonly what: string;
}

/** A transaction as the database sees it: what it wrote, and what it holds until it ends. */
export interface OpenTx {
  readonly rows: Row[];
  readonly writes: Map<string, KeyRecord>;
  readonly held: Set<string>;
  readonly claims: Set<string>;
  state: "open" | "committed" | "rolled back";
  /** Whoever waits for its end. */
  readonly waiting: (() => void)[];
}

/** Somebody's open transaction is in the way of a statement that waits. */
export interface Blocked {
  readonly kind: "blocked";
  readonly by: OpenTx;
}
