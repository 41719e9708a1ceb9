import { setTimeout as sleep } from "node:timers/promises";
import {
  ConfigurationError,
  NotPerformed,
  OncekeyError,
  StoreContention,
  StoreUnavailable,
} from "../../errors.ts";
import { classify, classifyCommit, classifyConnect, endsConnection, sqlState } from "./classify.ts";
import type { Ask, RawRow } from "./connector.ts";
import { writeIdIn } from "./packed.ts";
import { FAILED_TRANSACTION, lostBeforeCommit, notCommitted, type SessionBounds } from "./session.ts";
import type { Tables } from "./tables.ts";
import { only } from "./verbs.ts";

/** A layer of the user's own that opens transactions on the database of the records: pg, an ORM, a query builder. */
export interface TransactionSource<Tx> {
  /**
   * Runs `work` once in a transaction at READ COMMITTED, whatever the default; commits when it resolves, rolls back and
   * rejects when it rejects. A layer with a time-out of its own must not end it before it sat idle for `idleMs`; after
   * `longestMs` in all nobody waits for it any more, so that a server which never answers need not keep its connection.
   */
  open<T>(work: (tx: Tx) => Promise<T>, bounds: SessionBounds): Promise<T>;
  /** Sends one statement without parameters; its columns are all text. */
  send(tx: Tx, text: string): Promise<readonly RawRow[]>;
  /** The database's own error, with its SQLSTATE as `code`, where the layer hides it deeper than in `cause`. */
  databaseError?(error: unknown): unknown;
  /** Stops listening to what is not its own. */
  close?(): void;
}

/** Where units go that a layer opens; `ask` is the store's own way to the database. */
export interface Through<Tx> {
  readonly source: TransactionSource<Tx>;
  readonly ask: Ask;
  readonly tables: Tables;
  readonly schema: string | null;
}

/** Sends a statement inside the unit; throws what `classify` has seen, and sends nothing once the layer has ended it. */
export type Say = (text: string) => Promise<readonly RawRow[]>;

/** What a unit does, and how it wants to end. */
export type Body<Tx, T> = (tx: Tx, say: Say) => Promise<Closing<T>>;

export type Closing<T> =
  /** Everything was said, and the database had nothing against it; the commit is the layer's. */
  | { readonly kind: "kept"; readonly value: T; readonly proof: Proof }
  /** Nothing of it is to stay; `after` tells the value once it is rolled back. */
  | { readonly kind: "left"; readonly after: () => Promise<T> };

/** What the database is asked by after the commit. */
export interface Proof {
  /** The transaction in which the last statement was carried out. */
  readonly xact: string;
  /** The version that it wrote, which a savepoint could have undone without the transaction. */
  readonly written: Written | null;
}

export interface Written {
  readonly id: Uint8Array;
  readonly writeId: string;
  /**
   * The owners of this version and of the one before, where a rival may replace it at once: a version of any other owner
   * came over it. `null` where only the write itself is proof.
   */
  readonly owners: readonly string[] | null;
}

/** The column by which a statement says which transaction it is in. */
export const XACT = "pg_current_xact_id()::text AS xact";

/**
 * One unit in a transaction that a layer opens. Its success is never the layer's word: several report one where the
 * database answered COMMIT with ROLLBACK. So the database itself is asked, outside, what became of the transaction.
 */
export async function unitThrough<Tx, T>(
  on: Through<Tx>,
  bounds: SessionBounds,
  body: Body<Tx, T>,
): Promise<T> {
  const run = runOf(on, body);
  const end = await ended(on.source, run.work, bounds);
  const { runs, course } = run.over();
  if (runs > 1 && course.kind !== "kept")
    throw layerFault("ran its work more than once; switch its retries off");
  switch (course.kind) {
    case "unopened":
      if (end.kind === "resolved") throw layerFault("resolved without having run its work");
      throw classifyConnect(meant(on.source, end.error), on.schema);
    case "working":
      if (end.kind === "resolved") throw layerFault("resolved while its work was still running");
      throw lostBeforeCommit(asError(end.error), end.error);
    case "failed":
      if (end.kind === "resolved") throw layerFault("resolved although its work had thrown");
      throw course.error;
    case "left":
      if (end.kind === "resolved") throw layerFault("resolved although its work was to be rolled back");
      return await course.after();
    case "kept":
      return await judged(on, course, { end, runs });
  }
}

/** Statements on a handle of the layer's, inside whatever transaction it is in. */
export function sayIn<Tx>({ source, schema }: Through<Tx>, tx: Tx): Say {
  return async (text) => {
    try {
      return await source.send(tx, text);
    } catch (error) {
      throw classify(meant(source, error), { client: null, schema });
    }
  };
}

type Course<T> =
  | Closing<T>
  | { readonly kind: "unopened" | "working" }
  | { readonly kind: "failed"; readonly error: unknown };

type End = { readonly kind: "resolved" } | { readonly kind: "rejected"; readonly error: unknown };

/** Leaves the layer's transaction, so that it rolls back. */
class Left extends Error {
  override readonly name = "Left";
}

async function ended<Tx>(
  source: TransactionSource<Tx>,
  work: (tx: Tx) => Promise<void>,
  bounds: SessionBounds,
): Promise<End> {
  try {
    await source.open(work, bounds);
    return { kind: "resolved" };
  } catch (error) {
    return { kind: "rejected", error };
  }
}

interface Run<Tx, T> {
  readonly work: (tx: Tx) => Promise<void>;
  /** The layer has ended the transaction: from now on nothing of ours is sent in it, and what is told here stays so. */
  readonly over: () => { readonly runs: number; readonly course: Course<T> };
}

function runOf<Tx, T>(on: Through<Tx>, body: Body<Tx, T>): Run<Tx, T> {
  let runs = 0;
  let isOver = false;
  let course: Course<T> = { kind: "unopened" };
  const takes = (next: Course<T>): void => {
    if (!isOver) course = next;
  };
  return {
    work: async (tx) => {
      runs += 1;
      if (runs > 1) throw new Left("This unit has run already.");
      takes({ kind: "working" });
      const inside = sayIn(on, tx);
      const say: Say = async (text) => {
        if (isOver) throw new StoreUnavailable("The layer ended the transaction while its work was running.");
        return await inside(text);
      };
      let closing: Closing<T>;
      try {
        closing = await body(tx, say);
      } catch (error) {
        takes({ kind: "failed", error: await whatFailed(on, say, error) });
        throw error;
      }
      takes(closing);
      if (isOver || closing.kind === "left") throw new Left("This unit is to be rolled back.");
    },
    over: () => {
      isOver = true;
      return { runs, course };
    },
  };
}

/**
 * What the caller of a unit must know when it threw: its own error, unless the database had the last word. Whether the
 * connection still stands, an error without a SQLSTATE does not say; a statement on it does.
 */
async function whatFailed<Tx>({ source, schema }: Through<Tx>, say: Say, error: unknown): Promise<unknown> {
  if (error instanceof OncekeyError && !(error instanceof StoreUnavailable)) return error;
  const said = meant(source, error);
  if (sqlState(said) === null ? !(await stands(say)) : endsConnection(said))
    return lostBeforeCommit(asError(said), error);
  const classified = classify(said, { client: null, schema });
  return classified instanceof StoreContention ? classified : error;
}

async function stands(say: Say): Promise<boolean> {
  try {
    await say("SELECT 1");
    return true;
  } catch (error) {
    return !endsConnection(error);
  }
}

/**
 * A unit that said everything: what the database says of its transaction is so, whatever the layer says. What a layer
 * rejects with tells only why a transaction was undone: it may stem from a step of its own after the COMMIT.
 */
async function judged<Tx, T>(
  on: Through<Tx>,
  { value, proof }: Extract<Closing<T>, { kind: "kept" }>,
  { end, runs }: { end: End; runs: number },
): Promise<T> {
  const fate = await fateOf(on, proof);
  switch (fate.kind) {
    case "committed":
      return value;
    case "aborted":
      if (runs > 1) throw layerFault("ran its work more than once; switch its retries off");
      throw end.kind === "resolved" ? notCommitted() : whyAborted(meant(on.source, end.error), on.schema);
    case "open":
      throw classifyCommit(new Error(fate.reason), { client: null, schema: on.schema });
  }
}

/** The error of a transaction that the database says it rolled back: the database's own words, where there are any. */
function whyAborted(refusal: unknown, schema: string | null): unknown {
  if (refusal instanceof NotPerformed || sqlState(refusal) === FAILED_TRANSACTION) return notCommitted();
  const classified = classifyCommit(refusal, { client: null, schema });
  if (!(classified instanceof StoreUnavailable)) return classified;
  const said = rootOf(refusal).message.replace(/\.$/, "");
  const what = `The transaction was rolled back instead of committed (${said})`;
  return new StoreUnavailable(`${what}. PostgreSQL says so itself: nothing of it was applied.`, {
    cause: refusal,
  });
}

/** What an error of ours was made from, since its own words may be doubts that are settled by now. */
function rootOf(error: unknown): Error {
  const { cause } = asError(error);
  return error instanceof StoreUnavailable && cause instanceof Error ? rootOf(cause) : asError(error);
}

type Fate = { readonly kind: "committed" | "aborted" } | { readonly kind: "open"; readonly reason: string };

/** A connection that was cut is noticed by the server soon, but not at once. */
const LOOKS_MS = [0, 5, 20, 50, 100, 200, 400];

/** Asks the database outside the unit, until it has made up its mind or a second is over. */
async function fateOf<Tx>({ ask, tables }: Through<Tx>, { xact, written }: Proof): Promise<Fate> {
  const text = `SELECT pg_xact_status($1::xid8) AS status, record.tail, record.owner
    FROM (VALUES (1)) AS one LEFT JOIN ${tables.records} AS record ON record.id = $2::bytea`;
  let reason = "the database has not ended it yet";
  try {
    for (const pauseMs of LOOKS_MS) {
      if (pauseMs > 0) await sleep(pauseMs);
      const raw = only(await ask({ text, values: [xact, written?.id ?? null] }));
      if (raw["status"] === "aborted") return { kind: "aborted" };
      if (raw["status"] !== "committed") continue;
      if (written === null || shows(raw, written)) return { kind: "committed" };
      reason = "the record does not show its write"; // or not yet: the snapshot is older than the status
    }
  } catch (error) {
    return { kind: "open", reason: `the database could not be asked: ${asError(error).message}` };
  }
  return { kind: "open", reason };
}

function shows({ tail, owner }: RawRow, written: Written): boolean {
  if (tail !== null && writeIdIn(tail) === written.writeId) return true;
  return written.owners !== null && typeof owner === "string" && !written.owners.includes(owner);
}

function layerFault(what: string): ConfigurationError {
  return new ConfigurationError(
    "transactions",
    `must run each unit once and tell how it ended; the layer ${what}`,
  );
}

function meant<Tx>(source: TransactionSource<Tx>, error: unknown): unknown {
  return source.databaseError?.(error) ?? error;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
