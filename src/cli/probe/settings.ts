import type { HeaderLine } from "./answer-reader.ts";

/** A URL, and whether it may be beyond this machine. */
export interface Target {
  readonly url: URL;
  readonly mayLeave: boolean;
}

/** What a probe is told. */
export interface ProbeSettings {
  readonly target: Target;
  readonly method: string;
  readonly keyHeader: string;
  readonly body: Buffer;
  /** Null: none was given and none could be made of `body`. */
  readonly otherBody: Buffer | null;
  /** Of the first principal; what describes the body included. */
  readonly headers: readonly HeaderLine[];
  /** Of the second principal, in place of those of the first that have the same names; null: there is none. */
  readonly otherHeaders: readonly HeaderLine[] | null;
  /** The URL that must not get the first one's answer. */
  readonly otherPath: Target;
  /** Further URLs whose answers are looked at as replays: empty, binary, refusals. */
  readonly also: readonly Target[];
  /** Null: effects cannot be seen. */
  readonly counting: Counting | null;
  readonly copies: number;
  readonly rounds: number;
  readonly requestTimeoutMs: number;
  readonly timeLimitMs: number;
}

/** Where the number of effects so far can be read. */
export interface Counting {
  readonly target: Target;
  readonly headers: readonly HeaderLine[];
  /** A JSON pointer to a number, or to an array whose members are counted; "" is the whole document. */
  readonly pointer: string;
  /** Waited before each reading, for effects that come after their answer. */
  readonly settleMs: number;
}
