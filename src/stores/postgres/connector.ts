import type { PostgresClient, PostgresResult } from "./client.ts";

/** A statement and its parameters, each named with its type (`$1::bytea`); every column that it returns is text. */
export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** A row as the server worded it: no type parser and no setting of the session has touched it. */
export type RawRow = Readonly<Record<string, unknown>>;

/** Sends one statement, and throws only errors that `classify` has seen. */
export type Ask = (statement: Statement) => Promise<readonly RawRow[]>;

/** What of a driver the store needs; `Tx` is the handle that its users know. */
export interface Connector<Tx> {
  readonly schema: string | null;
  /**
   * Lends one connection, and takes it back however the work ends. Where `withinMs` is over, nobody waits any more: the
   * connection counts as broken, so that a server which never answers does not keep it.
   */
  lend<T>(work: (link: Link<Tx>) => Promise<T>, withinMs: number | null): Promise<T>;
  /** Statements on a handle that somebody else holds, inside whatever transaction it is in. */
  inside(tx: Tx): Ask;
  /** Where a handle leads to; only for messages to people. */
  clientOf(tx: Tx): PostgresClient | null;
  /** Stops listening to what is not the store's own. */
  close(): void;
}

/** A lent connection, and what broke it. */
export interface Link<Tx> {
  readonly handle: Tx;
  /** One statement, one trip. */
  readonly ask: Ask;
  /** Several statements without parameters in one trip; the first error skips the rest and is thrown as it came. */
  readonly script: (text: string) => Promise<readonly PostgresResult[]>;
  readonly classify: (error: unknown) => unknown;
  readonly classifyCommit: (error: unknown) => unknown;
  readonly broken: () => Error | undefined;
  readonly breaks: (error: unknown) => void;
  /** Rejects once the connection is broken; never resolves. */
  readonly untilBroken: Promise<never>;
}
