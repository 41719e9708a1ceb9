import { NotPerformed, OncekeyError, StoreContention, StoreUnavailable } from "../../errors.ts";
import { endedInside, lent, unitIsOver } from "../lent.ts";
import type { Awaitable, UnitBounds, UnitEnd } from "../store.ts";
import { SERIALIZATION_FAILURE, sqlState } from "./classify.ts";
import type { PostgresResult } from "./client.ts";
import type { Ask, Connector, Link } from "./connector.ts";
import { BEGUN, idleBound, isEndedInside, stillIn } from "./same-transaction.ts";

/**
 * Each statement in a transaction of its own, one trip. Where the session's default isolation is stricter than READ
 * COMMITTED, a claim that loses can fail with 40001; the same statement is then sent again in a READ COMMITTED
 * transaction, where it cannot.
 */
export function autocommit<Tx>(connector: Connector<Tx>): Ask {
  return async (statement) => {
    try {
      return await connector.lend((link) => link.ask(statement), LONGEST_ANSWER_MS);
    } catch (error) {
      if (!(error instanceof StoreContention) || sqlState(error) !== SERIALIZATION_FAILURE) throw error;
    }
    return transact(connector, { ...SHORT, longestMs: LONGEST_ANSWER_MS }, async (tx) => {
      return { kind: "commit", value: await connector.inside(tx)(statement) };
    });
  };
}

/** Longer than any lock that a lone statement may wait for; whoever asked has given up long before. */
const LONGEST_ANSWER_MS = 120_000;

/** For units that wait for nothing but the server. */
export const SHORT: UnitBounds = { idleMs: 10_000 };

/** Runs `work` in one transaction at READ COMMITTED, and ends it as `work` says; a throw rolls it back. */
export function transact<Tx, T>(
  connector: Connector<Tx>,
  { longestMs = null, ...bounds }: SessionBounds,
  work: (tx: Tx) => Awaitable<UnitEnd<T>>,
): Promise<T> {
  const worked = async (link: Link<Tx>) => {
    const [begun, end] = await working(link, async () => {
      const [, first] = await opened(link, `${BEGIN}; SELECT ${BEGUN}, ${idleBound(idleSetting(bounds))}`);
      return [String(first?.rows[0]?.["begun"]), await perform(link, work)] as const;
    });
    if (end.kind === "commit") await closed(link, `SELECT 1 AS one WHERE ${stillIn(begun)}; COMMIT`);
    else await rollBack(link);
    return end.value;
  };
  return connector.lend(worked, longestMs);
}

export interface SessionBounds extends UnitBounds {
  /** How long the connection may be lent in all; without it as long as the work takes. */
  readonly longestMs?: number | null;
}

/** Carries out what stands between the lending of a connection and the end of its transaction; a throw rolls it back. */
export async function working<Tx, T>(link: Link<Tx>, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await rollBack(link);
    throw whatEnded(error, link);
  }
}

/** Begins a transaction; the statements that follow in its first message wait for READ COMMITTED's own snapshot each. */
export const BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED";

/**
 * Whoever is paused inside a transaction holds the record's row, which hides it from the workers; the time-out bounds
 * that. For this transaction only, since behind a pooler a session is not ours.
 */
export function idleSetting({ idleMs }: UnitBounds): number {
  return Math.min(Math.max(1, Math.ceil(idleMs)), LONGEST_SETTING_MS);
}

/** A setting of PostgreSQL is an integer of 32 bits. */
const LONGEST_SETTING_MS = 2_147_483_647;

/** Sends the script that begins a transaction. */
export async function opened<Tx>(link: Link<Tx>, script: string): Promise<readonly PostgresResult[]> {
  try {
    return await link.script(script);
  } catch (error) {
    throw link.classify(error);
  }
}

/**
 * Work that never returns does not keep its connection: the server ends an idle transaction, and that ends the wait. What
 * the work still sends when it is over would reach whoever has the connection next; its handle refuses to.
 */
export async function perform<Tx, T>(link: Link<Tx>, work: (tx: Tx) => Awaitable<T>): Promise<T> {
  let isOver = false;
  const refusal = () => {
    const broken = link.broken();
    if (broken !== undefined) return lostUnsent(broken);
    return isOver ? unitIsOver() : undefined;
  };
  try {
    return await Promise.race([work(lent(link.handle, refusal)), link.untilBroken]);
  } finally {
    isOver = true;
  }
}

export function lostUnsent(broken: Error): StoreUnavailable {
  const what = `The connection was lost: ${broken.message}. This was not sent.`;
  return new StoreUnavailable(what, { cause: broken });
}

/** A connection that is lost takes its transaction with it, so that this is rolled back either way. */
export async function rollBack<Tx>(link: Link<Tx>): Promise<void> {
  if (link.broken() !== undefined) return;
  try {
    await link.script("ROLLBACK");
  } catch (error) {
    link.breaks(error);
  }
}

/** Sends the script that ends with COMMIT; returns the answers to what stands before it, once it is committed. */
export async function closed<Tx>(link: Link<Tx>, script: string): Promise<readonly PostgresResult[]> {
  const broken = link.broken();
  if (broken !== undefined) throw lostBeforeCommit(broken, broken);
  const results = await sendLast(link, script);
  if (results.at(-1)?.command === "COMMIT") return results;
  throw notCommitted();
}

async function sendLast<Tx>(link: Link<Tx>, script: string): Promise<readonly PostgresResult[]> {
  try {
    return await link.script(script);
  } catch (error) {
    await rollBack(link);
    if (isEndedInside(error)) throw endedInside();
    throw sqlState(error) === FAILED_TRANSACTION ? notCommitted() : link.classifyCommit(error);
  }
}

/** A statement in a transaction in which an earlier one had failed. */
export const FAILED_TRANSACTION = "25P02";

export function notCommitted(): NotPerformed {
  return new NotPerformed(
    "PostgreSQL rolled the transaction back instead of committing it, because a statement inside it had failed and " +
      "its error was caught. Let database errors leave the unit, or put a savepoint around what may fail.",
  );
}

/** What the caller of a unit must know when it threw: its own error, unless the database had the last word. */
function whatEnded<Tx>(error: unknown, link: Link<Tx>): unknown {
  const broken = link.broken();
  if (error instanceof OncekeyError && !(error instanceof StoreUnavailable)) return error;
  if (broken !== undefined) return lostBeforeCommit(broken, error);
  const classified = link.classify(error);
  return classified instanceof StoreContention ? classified : error;
}

/** One that says so already stays as it is. */
export function lostBeforeCommit(broken: Error, cause: unknown): StoreUnavailable {
  if (broken instanceof StoreUnavailable && broken.message.endsWith(NOT_SENT)) return broken;
  const what = `The connection was lost inside a transaction: ${broken.message}`;
  return new StoreUnavailable(`${what}. ${NOT_SENT}`, { cause });
}

const NOT_SENT = "COMMIT had not been sent, so nothing of it was applied.";
