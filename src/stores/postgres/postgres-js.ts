import { type Breaking, breakAfter, breaking } from "./breaking.ts";
import { classify, classifyCommit } from "./classify.ts";
import type { PostgresResult } from "./client.ts";
import type { Connector, Link, RawRow, Statement } from "./connector.ts";
import { inlined } from "./literal.ts";
import { named } from "./named.ts";
import {
  isConnection,
  type PostgresJsConnection,
  type PostgresJsHandle,
  type PostgresJsSql,
  type Reservation,
  reservations,
} from "./postgres-js-pool.ts";
import { lostUnsent } from "./session.ts";

/** The store on postgres.js: each statement is a simple query, one trip, with nothing prepared and nothing described. */
export function postgresJsConnector<Handle extends PostgresJsHandle>(
  sql: PostgresJsSql<Handle>,
  schema: string | null,
): Connector<Handle> {
  const reserve = reservations(sql, schema);
  return {
    schema,
    lend: async (work, withinMs) => borrow(await reserve(), schema, { work, withinMs }),
    inside: (handle) => async (statement) => {
      try {
        return rowsOf(await send(handle, inlined(statement)));
      } catch (error) {
        throw classify(error, { client: null, schema });
      }
    },
    clientOf: () => null,
    close: () => {},
  };
}

async function borrow<Handle extends PostgresJsHandle, T>(
  reservation: Reservation<Handle>,
  schema: string | null,
  { work, withinMs }: { work: (link: Link<Handle>) => Promise<T>; withinMs: number | null },
): Promise<T> {
  const watch = watchOver(reservation.handle);
  const inTime = breakAfter(watch, withinMs);
  try {
    return await work(linkTo(reservation.handle, watch, schema));
  } finally {
    inTime();
    if (watch.broken() === undefined) reservation.giveBack(watch.release());
    else {
      watch.terminate();
      reservation.dropped();
    }
  }
}

/** What is known of the connection that a reservation leads to. */
interface Watch extends Breaking {
  readonly send: (text: string) => Promise<unknown>;
  /** Stops watching it, and hands it back where it is known. */
  readonly release: () => PostgresJsConnection | null;
  readonly terminate: () => void;
}

/**
 * postgres.js tells nobody when a reserved connection ends. It even sends later statements of the reservation to whoever
 * uses that connection next, or ends the process because there is no socket. So the connection is asked for its end.
 */
function watchOver(handle: PostgresJsHandle): Watch {
  const ends = breaking();
  let connection: PostgresJsConnection | null = null;
  let isClosed = false;
  const carriedBy = (carrier: unknown) => {
    if (connection !== null || !isConnection(carrier)) return;
    connection = carrier;
    carrier.onclose = (error) => {
      isClosed = true;
      ends.breaks(error);
    };
  };
  return {
    ...ends,
    send: async (text) => {
      const broken = ends.broken();
      if (broken !== undefined) throw lostUnsent(broken);
      if (connection === null && text.length > LONGEST_TELLING) {
        send(handle, "", carriedBy).catch(() => {}); // whatever is wrong, the next one says it
      }
      return await send(handle, text, carriedBy);
    },
    release: () => {
      if (connection !== null) connection.onclose = null;
      return connection;
    },
    terminate: () => {
      if (!isClosed) connection?.terminate();
    },
  };
}

/** What is longer may fill the socket, and then postgres.js does not tell by which connection it went: nothing goes first. */
const LONGEST_TELLING = 4_096;

function linkTo<Handle extends PostgresJsHandle>(
  handle: Handle,
  { broken, breaks, untilBroken, watched, send }: Watch,
  schema: string | null,
): Link<Handle> {
  const origin = { client: null, schema };
  return {
    ...{ handle, breaks, untilBroken, broken },
    ask: async (statement: Statement) => {
      try {
        return rowsOf(await watched(send(inlined(statement))));
      } catch (error) {
        throw classify(error, origin);
      }
    },
    script: async (text) => resultsOf(await watched(send(text))),
    classify: (error) => classify(error, origin),
    classifyCommit: (error) => classifyCommit(error, origin),
  };
}

/** Values come as bytes, so that neither a type parser nor a transform of the user's has touched them. */
async function send(
  handle: PostgresJsHandle,
  text: string,
  carriedBy: (connection: unknown) => void = () => {},
): Promise<unknown> {
  const onexecute = (connection: unknown) => {
    carriedBy(connection);
    return true as const;
  };
  return await handle.unsafe(text, [], { prepare: false, onexecute }).raw();
}

function rowsOf(answer: unknown): readonly RawRow[] {
  return resultsOf(answer).flatMap(({ rows }) => rows);
}

/**
 * One result for each statement that returned rows or came first; the tag of one that returned none takes the place of
 * its forerunner's, so that the last result bears the tag of the last statement.
 */
function resultsOf(answer: unknown): readonly PostgresResult[] {
  if (isResult(answer)) return [resultOf(answer)];
  if (!Array.isArray(answer)) throw new TypeError("postgres.js answered with something else than results.");
  return answer.filter(isResult).map(resultOf);
}

interface RawResult extends Iterable<unknown> {
  readonly command: string | null;
  readonly columns: unknown;
}

function isResult(value: unknown): value is RawResult {
  return Array.isArray(value) && "command" in value && "columns" in value;
}

/** Behind a statement that failed after its rows, at its commit, postgres.js (3.4) begins the next result with holes. */
function resultOf(result: RawResult): PostgresResult {
  const names = Array.isArray(result.columns) ? result.columns.map(({ name }) => String(name)) : [];
  const rows = [...result].flatMap((row) =>
    Array.isArray(row) ? [named(names.map((name, at) => [name, textOf(row[at])] as const))] : [],
  );
  return { command: result.command ?? "", rowCount: rows.length, rows };
}

function textOf(value: unknown): string | null {
  return value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : null;
}
