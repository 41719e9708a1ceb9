import { NotPerformed, OncekeyError, StoreContention, StoreUnavailable } from "../../errors.ts";
import type { Awaitable, UnitEnd } from "../store.ts";
import {
  classify,
  classifyCommit,
  classifyConnect,
  endsConnection,
  SERIALIZATION_FAILURE,
  sqlState,
} from "./classify.ts";
import type { PooledClient, PostgresClient, PostgresPool, PostgresResult } from "./client.ts";

/** A statement and its parameters; every column that it returns is text. */
export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** A row as the server worded it: no type parser and no setting of the session has touched it. */
export type RawRow = Readonly<Record<string, unknown>>;

/** Sends one statement, and throws only errors that `classify` has seen. */
export type Ask = (statement: Statement) => Promise<readonly RawRow[]>;

/** Where the store's statements go. */
export interface Database<Client extends PostgresClient> {
  readonly pool: PostgresPool<Client>;
  readonly schema: string | null;
  /** How long a transaction may sit idle before the server ends its session. */
  readonly idleInTransactionMs: number;
}

/**
 * Each statement in a transaction of its own, one trip. Where the session's default isolation is stricter than READ
 * COMMITTED, a claim that loses can fail with 40001; the same statement is then sent again in a READ COMMITTED
 * transaction, where it cannot.
 */
export function autocommit<Client extends PostgresClient>(database: Database<Client>): Ask {
  return async (statement) => {
    try {
      return await borrow(database, (link) => ask(link, statement));
    } catch (error) {
      if (!(error instanceof StoreContention) || sqlState(error) !== SERIALIZATION_FAILURE) throw error;
    }
    return transact(database, async (client) => {
      return { kind: "commit", value: await asking(client, database.schema)(statement) };
    });
  };
}

/** Statements on a connection that somebody else holds, inside whatever transaction it is in. */
export function asking(client: PostgresClient, schema: string | null): Ask {
  return async (statement) => {
    try {
      return (await send(client, statement)).rows;
    } catch (error) {
      throw classify(error, { client, schema });
    }
  };
}

/** Runs `work` in one transaction at READ COMMITTED, and ends it as `work` says; a throw rolls it back. */
export function transact<Client extends PostgresClient, T>(
  database: Database<Client>,
  work: (client: Client) => Awaitable<UnitEnd<T>>,
): Promise<T> {
  return borrow(database, async (link) => {
    await ask(link, begin(database.idleInTransactionMs));
    const end = await perform(link, work);
    switch (end.kind) {
      case "commit":
        await commit(link);
        return end.value;
      case "rollback":
        await rollBack(link);
        return end.value;
    }
  });
}

/**
 * Lets the process outlive connections that the server ends while they are nobody's; returns the stop. An idle one is out
 * of the pool when it is told of. A new one may end together with its beginning, before whoever it is lent to can
 * listen; its first statement then says what happened.
 */
export function outliveConnections<Client extends PostgresClient>(pool: PostgresPool<Client>): () => void {
  const begun = (client: PooledClient) => void client.on("error", outlived);
  pool.on("error", outlived);
  pool.on("connect", begun);
  return () => {
    pool.off("error", outlived);
    pool.off("connect", begun);
  };
}

/** There is nothing to do; without a listener the event would end the process. */
function outlived(): void {}

/** A borrowed connection, and what broke it. */
interface Link<Client extends PostgresClient> {
  readonly client: Client & PooledClient;
  readonly schema: string | null;
  readonly broken: () => Error | undefined;
  readonly breaks: (error: unknown) => void;
  /** Rejects once the connection is broken; never resolves. */
  readonly untilBroken: Promise<never>;
}

async function borrow<Client extends PostgresClient, T>(
  { pool, schema }: Database<Client>,
  work: (link: Link<Client>) => Promise<T>,
): Promise<T> {
  const client = await checkOut(pool, schema);
  let broken: Error | undefined;
  let reject: (error: Error) => void = () => {};
  const untilBroken = new Promise<never>((_, rejected) => {
    reject = rejected;
  });
  untilBroken.catch(() => {}); // `broken` keeps the error for whoever does not wait for this
  const breaks = (error: unknown) => {
    broken ??= error instanceof Error ? error : new Error(String(error));
    reject(broken);
  };
  // A lent client that fails while no query of its is under way emits an error; without a listener that ends the process.
  client.on("error", breaks);
  client.off("error", outlived);
  try {
    return await work({ client, schema, broken: () => broken, breaks, untilBroken });
  } finally {
    client.release(broken);
    client.off("error", breaks);
  }
}

/** Whoever asked has long been told that the store is out of reach: what waited longer must not be sent any more. */
const LONGEST_CHECK_OUT_MS = 2_000;

async function checkOut<Client extends PostgresClient>(pool: PostgresPool<Client>, schema: string | null) {
  const askedMs = performance.now();
  const client = await lent(pool, schema);
  const waitedMs = performance.now() - askedMs;
  if (waitedMs <= LONGEST_CHECK_OUT_MS) return client;
  client.release();
  const advice = "Give the store a pool of its own, large enough, with a connectionTimeoutMillis";
  throw new StoreUnavailable(
    `A connection was free after ${Math.round(waitedMs)} ms only. Nothing was sent. ${advice}.`,
  );
}

async function lent<Client extends PostgresClient>(pool: PostgresPool<Client>, schema: string | null) {
  try {
    return await pool.connect();
  } catch (error) {
    throw classifyConnect(error, schema);
  }
}

async function ask<Client extends PostgresClient>(link: Link<Client>, statement: Statement) {
  try {
    return (await send(link.client, statement)).rows;
  } catch (error) {
    if (endsConnection(error)) link.breaks(error);
    throw classify(error, link);
  }
}

/** An unnamed statement (behind a pooler the next one may reach another session), its answer left as text. */
function send(client: PostgresClient, { text, values }: Statement): Promise<PostgresResult> {
  return client.query({ text, values: [...values], types: { getTypeParser: () => String } });
}

/**
 * One trip. Whoever is paused inside a transaction holds the record's row, which hides it from the workers; the
 * time-out bounds that. SET LOCAL, since behind a pooler a session is not ours.
 */
function begin(idleInTransactionMs: number): Statement {
  const isolation = "BEGIN ISOLATION LEVEL READ COMMITTED";
  const text = `${isolation}; SET LOCAL idle_in_transaction_session_timeout = ${idleInTransactionMs}`;
  return { text, values: [] };
}

/** Work that never returns does not keep its connection: the server ends an idle transaction, and that ends the wait. */
async function perform<Client extends PostgresClient, T>(
  link: Link<Client>,
  work: (client: Client) => Awaitable<UnitEnd<T>>,
): Promise<UnitEnd<T>> {
  try {
    return await Promise.race([work(link.client), link.untilBroken]);
  } catch (error) {
    await rollBack(link);
    throw whatEnded(error, link);
  }
}

/** A connection that is lost takes its transaction with it, so that this is rolled back either way. */
async function rollBack<Client extends PostgresClient>(link: Link<Client>): Promise<void> {
  if (link.broken() !== undefined) return;
  try {
    await link.client.query("ROLLBACK");
  } catch (error) {
    link.breaks(error);
  }
}

/** What the caller of a unit must know when it threw: its own error, unless the database had the last word. */
function whatEnded<Client extends PostgresClient>(error: unknown, link: Link<Client>): unknown {
  const broken = link.broken();
  if (error instanceof OncekeyError && !(error instanceof StoreUnavailable)) return error;
  if (broken !== undefined) return lostBeforeCommit(broken, error);
  const classified = classify(error, link);
  return classified instanceof StoreContention ? classified : error;
}

async function commit<Client extends PostgresClient>(link: Link<Client>): Promise<void> {
  const broken = link.broken();
  if (broken !== undefined) throw lostBeforeCommit(broken, broken);
  const { command } = await sendCommit(link);
  if (command === "COMMIT") return;
  throw new NotPerformed(
    "PostgreSQL rolled the transaction back instead of committing it, because a statement inside it had failed and " +
      "its error was caught. Let database errors leave the unit, or put a savepoint around what may fail.",
  );
}

async function sendCommit<Client extends PostgresClient>(link: Link<Client>): Promise<PostgresResult> {
  try {
    return await link.client.query("COMMIT");
  } catch (error) {
    if (endsConnection(error)) link.breaks(error);
    throw classifyCommit(error, link);
  }
}

function lostBeforeCommit(broken: Error, cause: unknown): StoreUnavailable {
  const what = `The connection was lost inside a transaction: ${broken.message}`;
  return new StoreUnavailable(`${what}. COMMIT had not been sent, so nothing of it was applied.`, { cause });
}
