import { StoreUnavailable } from "../../errors.ts";
import { breakAfter, breaking, LONGEST_CHECK_OUT_MS } from "./breaking.ts";
import { classify, classifyCommit, classifyConnect } from "./classify.ts";
import type { PooledClient, PostgresClient, PostgresPool, PostgresResult } from "./client.ts";
import type { Connector, Link, Statement } from "./connector.ts";

/** The store on a pool of `pg`, or on anything that answers like one. */
export function pgConnector<Client extends PostgresClient>(
  pool: PostgresPool<Client>,
  schema: string | null,
): Connector<Client> {
  const stopListening = outliveConnections(pool);
  return {
    schema,
    lend: (work, withinMs) => borrow(pool, schema, { work, withinMs }),
    inside: (client) => async (statement) => {
      try {
        return rowsOf(await send(client, statement));
      } catch (error) {
        throw classify(error, { client, schema });
      }
    },
    clientOf: (client) => client,
    close: stopListening,
  };
}

/**
 * Lets the process outlive connections that the server ends while they are nobody's; returns the stop. An idle one is out
 * of the pool when it is told of. A new one may end together with its beginning, before whoever it is lent to can
 * listen; its first statement then says what happened.
 */
function outliveConnections<Client extends PostgresClient>(pool: PostgresPool<Client>): () => void {
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

async function borrow<Client extends PostgresClient, T>(
  pool: PostgresPool<Client>,
  schema: string | null,
  { work, withinMs }: { work: (link: Link<Client>) => Promise<T>; withinMs: number | null },
): Promise<T> {
  const client = await checkOut(pool, schema);
  const link = linkTo<Client>(client, schema);
  // A lent client that fails while no query of its is under way emits an error; without a listener that ends the process.
  client.on("error", link.breaks);
  client.off("error", outlived);
  const inTime = breakAfter(link, withinMs);
  try {
    return await work(link);
  } finally {
    inTime();
    client.release(link.broken());
    client.off("error", link.breaks);
  }
}

function linkTo<Client extends PostgresClient>(client: Client, schema: string | null): Link<Client> {
  const origin = { client, schema };
  const { broken, breaks, untilBroken, watched } = breaking();
  return {
    ...{ handle: client, breaks, untilBroken, broken },
    ask: async (statement) => {
      try {
        return rowsOf(await watched(send(client, statement)));
      } catch (error) {
        throw classify(error, origin);
      }
    },
    script: async (text) => listed(await watched(send(client, { text, values: [] }))),
    classify: (error) => classify(error, origin),
    classifyCommit: (error) => classifyCommit(error, origin),
  };
}

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

/** An unnamed statement (behind a pooler the next one may reach another session), its answer left as text. */
function send(client: PostgresClient, { text, values }: Statement): Promise<PostgresResult> {
  return client.query({ text, values: [...values], types: AS_TEXT });
}

const AS_TEXT = { getTypeParser: () => String };

/** `pg` answers a message of several statements with a list of results, and one of a single statement with one. */
function listed(answer: PostgresResult): readonly PostgresResult[] {
  return Array.isArray(answer) ? answer : [answer];
}

function rowsOf({ rows }: PostgresResult) {
  return rows;
}
