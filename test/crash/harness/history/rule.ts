import type { Case } from "./cases.ts";

/** As the contract numbers them. */
export type Guarantee = `G${1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12}`;

/** One thing that must be so of every key. */
export interface Rule {
  readonly guarantee: Guarantee;
  readonly promise: string;
  /** A sentence about the key for whatever is not so. */
  readonly faults: (one: Case) => readonly string[];
}
