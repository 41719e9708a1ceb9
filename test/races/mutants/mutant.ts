import type { Database } from "../database.ts";
import type { Violation } from "../judge.ts";
import type { Kind } from "../kinds.ts";

/** One text of a built file that is put in the place of another; it must stand there once. */
export interface Edit {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** One promise of the protocol that is not kept, everything else being the engine that ships. */
export interface Mutant {
  readonly name: string;
  /** What goes wrong, as the end of "An engine whose …". */
  readonly fault: string;
  readonly edits?: readonly Edit[];
  /** What a store does in its place. */
  readonly flaw?: (right: Database) => Database;
  /** The kind on which it is quickly found, tried in every run. */
  readonly foundOn: Kind;
  /** Within how many schedules of that kind; 1,000 where nothing is said. */
  readonly within?: number;
  /** Why it cannot be told from the right engine, where it cannot. */
  readonly equivalent?: string;
}

/** How a mutant fared on effects of one kind. */
export type Fared =
  | { readonly kind: "killed"; readonly after: number; readonly violation: Violation }
  | { readonly kind: "survived"; readonly schedules: number };
