import { ConfigurationError, StoreUnavailable } from "../../errors.ts";
import type { UnitEnd } from "../store.ts";
import { row, type SqliteConnection } from "./connection.ts";
import { isBusy } from "./faults.ts";

/** A connection of the store's own, opened when it is first needed and again after a failure that left it in doubt. */
export interface Session {
  open(): SqliteConnection;
  /** The connection as it is now, for its name in an error; null where there is none. */
  current(): SqliteConnection | null;
  /** Runs `work` between BEGIN IMMEDIATE and its end; a throw leaves nothing behind. */
  immediately<T>(work: (connection: SqliteConnection) => UnitEnd<T>): T;
  /** Gives the connection up with whatever is open on it. */
  drop(): void;
  /** Drops it for good. */
  close(): void;
}

/** Opens its connection with `connect`, and makes it keep what it acknowledges. */
export function session(connect: () => SqliteConnection): Session {
  let connection: SqliteConnection | null = null;
  let closed = false;
  const open = () => {
    if (closed) throw new StoreUnavailable("This SQLite store was closed. Make another one.");
    connection ??= opened(connect);
    return connection;
  };
  const drop = () => {
    const dropped = connection;
    connection = null;
    if (dropped !== null) abandon(dropped);
  };
  return {
    open,
    current: () => connection,
    drop,
    immediately: (work) => immediately(open(), work, drop),
    close: () => {
      closed = true;
      drop();
    },
  };
}

/** Runs `work` in one transaction that takes the write lock before it reads anything. */
export function immediately<T>(
  connection: SqliteConnection,
  work: (connection: SqliteConnection) => UnitEnd<T>,
  whenBroken: () => void,
): T {
  connection.exec("BEGIN IMMEDIATE");
  try {
    const end = work(connection);
    if (end.kind === "commit") connection.exec("COMMIT");
    else rollBack(connection, whenBroken);
    return end.value;
  } catch (error) {
    rollBack(connection, whenBroken);
    throw error;
  }
}

/** Makes a connection keep what it acknowledges, and wait for nobody longer than the event loop can bear. */
export function prepareConnection(connection: SqliteConnection): void {
  connection.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  const { journal_mode: mode } = row(connection, "PRAGMA journal_mode = WAL");
  if (mode !== "wal") {
    const reason = `must open a file with a write-ahead log, and this database stays at journal_mode ${mode}`;
    throw new ConfigurationError("connect", `${reason} (databases in memory and on some network drives do)`);
  }
  // After WAL and not before: with the switch some drivers fall back to NORMAL, which loses acknowledged commits.
  connection.exec("PRAGMA synchronous = FULL");
  connection.exec("PRAGMA foreign_keys = ON");
}

/**
 * How long SQLite itself may sleep on a lock, which stops the whole process: enough for one commit of another process;
 * the asynchronous tries do the rest.
 */
const BUSY_TIMEOUT_MS = 10;

function opened(connect: () => SqliteConnection): SqliteConnection {
  const connection = reached(connect);
  try {
    prepareConnection(connection);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

function reached(connect: () => SqliteConnection): SqliteConnection {
  try {
    return connect();
  } catch (error) {
    if (isBusy(error)) throw error;
    const said = error instanceof Error ? error.message : String(error);
    throw new StoreUnavailable(`The SQLite file could not be opened (${said}). See what \`connect\` opens.`, {
      cause: error,
    });
  }
}

/** A driver may keep a connection, and its locks, alive in the background: so whatever is open is rolled back first. */
function abandon(connection: SqliteConnection): void {
  rollBack(connection, () => {});
  connection.close();
}

function rollBack(connection: SqliteConnection, whenBroken: () => void): void {
  try {
    connection.exec("ROLLBACK");
  } catch {
    whenBroken(); // SQLite ended it by itself, or cannot: in either case only a new connection surely starts clean
  }
}
