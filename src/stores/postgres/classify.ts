import { ConfigurationError, OncekeyError, StoreContention, StoreUnavailable } from "../../errors.ts";
import type { PostgresClient } from "./client.ts";

/** Where an error came from, as far as a message needs it. */
export interface Origin {
  /** `null` where no connection could be had. */
  readonly client: PostgresClient | null;
  readonly schema: string | null;
}

/** What an error says about the statement that it answers. */
type Meaning =
  /** The database gave way to another transaction; nothing was applied. */
  | "contention"
  /** No answer, or one that says nothing about the statement. */
  | "unavailable"
  /** A table, a column or the schema is not there. */
  | "schema"
  /** The role lacks a right. */
  | "forbidden"
  /** Any other complaint of the database, or a fault of a program's; it says by itself what is wrong. */
  | "other";

/** The one place that turns what PostgreSQL or its driver threw into an error of ours; what is none of ours stays as it is. */
export function classify(error: unknown, origin: Origin): unknown {
  if (error instanceof OncekeyError) return error;
  switch (meaningOf(error)) {
    case "contention":
      return new StoreContention(
        `PostgreSQL gave way to a concurrent transaction: ${said(error)}. Nothing was applied; send it again.`,
        { cause: error },
      );
    case "unavailable":
      return new StoreUnavailable(unavailableMessage(error, origin), { cause: error });
    case "schema":
      return schemaMissing(`${said(error)}.`, origin, error);
    case "forbidden": {
      const advice =
        "Grant the role SELECT, INSERT, UPDATE and DELETE on the oncekey_ tables, USAGE on the sequence, EXECUTE on the functions.";
      return new OncekeyError("configuration", `${said(error)}. ${advice}`, { cause: error });
    }
    case "other":
      return error;
  }
}

/** The error of a connection that could not be had, whatever stood in its way: a URL that is none, too. */
export function classifyConnect(error: unknown, schema: string | null): unknown {
  const origin = { client: null, schema };
  const classified = classify(error, origin);
  if (classified instanceof OncekeyError || sqlState(error) !== null) return classified;
  return new StoreUnavailable(unavailableMessage(error, origin), { cause: error });
}

/** The error of a COMMIT whose answer did not come: nobody knows what became of the transaction. */
export function classifyCommit(error: unknown, origin: Origin): unknown {
  // Whatever kept the answer away, a fault of the driver's too: only the server can say that nothing was applied.
  if (sqlState(error) !== null && meaningOf(error) !== "unavailable") return classify(error, origin);
  const open = "COMMIT had been sent, so it is open whether the transaction was applied";
  const advice = "Repeat the same write: its write id tells what became of it.";
  return new StoreUnavailable(`${open} (${said(error)}). ${advice}`, { cause: error });
}

/** The tables are not there or too old; names the command that makes them, without the password. */
export function schemaMissing(reason: string, origin: Origin, cause?: unknown): OncekeyError {
  const schema = origin.schema === null ? "" : ` --schema ${origin.schema}`;
  const command = `oncekey migrate ${urlOf(origin.client)}${schema}`;
  const message = `Oncekey's tables are missing or of another version: ${reason} Run: ${command}`;
  return new OncekeyError("schema_missing", message, cause === undefined ? undefined : { cause });
}

/** The server must not be written to. */
export function readOnly(reason: string): ConfigurationError {
  return new ConfigurationError("pool", `leads to a server that ${reason}; claims must go to the primary`);
}

/** The SQLSTATE of an error, or of the one that it wraps; `null` where the server said nothing. */
export function sqlState(error: unknown): string | null {
  for (
    let cause = error, depth = 0;
    cause instanceof Error && depth < DEEPEST_CAUSE;
    cause = cause.cause, depth += 1
  ) {
    if ("code" in cause && typeof cause.code === "string" && SQLSTATE.test(cause.code)) return cause.code;
  }
  return null;
}

/** True where the server said these words with this SQLSTATE; a layer that wraps its error may quote the statement, too. */
export function isSaid(error: unknown, state: string, words: RegExp): boolean {
  for (
    let cause = error, depth = 0;
    cause instanceof Error && depth < DEEPEST_CAUSE;
    cause = cause.cause, depth += 1
  ) {
    if (sqlState(cause) === state && words.test(cause.message)) return true;
  }
  return false;
}

/** True when the connection is of no use after this error; the answer to a statement, bad news too, leaves it usable. */
export function endsConnection(error: unknown): boolean {
  const state = sqlState(error);
  return state === null || CONNECTION_ENDED.test(state);
}

/** Under READ COMMITTED it does not occur. */
export const SERIALIZATION_FAILURE = "40001";

/** Drivers and query builders wrap once or twice; the limit is against circles. */
const DEEPEST_CAUSE = 5;

/** Its classes, since names of socket errors (`EPIPE`) have five letters too. */
const SQLSTATE = /^(?:\d[\dA-Z]|F0|HV|P0|XX)[\dA-Z]{3}$/;

/** Serialization failure, deadlock, lock not available. */
const CONTENTION = /^(?:40001|40P01|55P03)$/;

/** Connection errors, shut-down and restart, and the time-outs by which a server ends a session. */
const CONNECTION_ENDED = /^(?:08...|57P0[1-5]|25P03|25P04)$/;

/**
 * Besides: completion unknown, cancelled (a statement time-out), resources spent, system error, not let in, no such
 * database, and a server that became read-only under us (a failover).
 */
const UNAVAILABLE = /^(?:40003|57014|53...|58...|28...|3D000|25006)$/;

/** No such table, schema, column or function, no such unique index. */
const SCHEMA = /^(?:42P01|3F000|42703|42883|42P10)$/;

const FORBIDDEN = "42501";

function meaningOf(error: unknown): Meaning {
  const state = sqlState(error);
  if (state === null) return isProgramFault(error) ? "other" : "unavailable";
  if (CONNECTION_ENDED.test(state) || UNAVAILABLE.test(state)) return "unavailable";
  if (CONTENTION.test(state)) return "contention";
  if (SCHEMA.test(state)) return "schema";
  return state === FORBIDDEN ? "forbidden" : "other";
}

/** What JavaScript throws where a program is wrong, the driver's or ours: sending it again would not help. */
function isProgramFault(error: unknown): boolean {
  return [TypeError, RangeError, ReferenceError, SyntaxError].some((fault) => error instanceof fault);
}

function unavailableMessage(error: unknown, { client }: Origin): string {
  if (client === null) return `No connection to PostgreSQL could be had: ${said(error)}. Nothing was sent.`;
  const doubt = "A write that was under way may have been applied all the same";
  return `PostgreSQL did not answer: ${said(error)}. ${doubt}; repeat it to find out.`;
}

function said(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  // Node words a refused connection to several addresses as an error without a message.
  const code = error instanceof Error && "code" in error ? String(error.code) : "no reason given";
  return message === "" ? code : message.replace(/\.$/, "");
}

function urlOf(client: PostgresClient | null): string {
  if (client === null) return "postgres://…";
  const { host = "localhost", port, user, database = "" } = client;
  const bracketed = host.includes(":") ? `[${host}]` : encodeURIComponent(host);
  const authority = `${user === undefined ? "" : `${encodeURIComponent(user)}@`}${bracketed}`;
  return `postgres://${authority}${port === undefined ? "" : `:${port}`}/${encodeURIComponent(database)}`;
}
