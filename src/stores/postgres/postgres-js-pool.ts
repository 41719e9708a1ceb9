import { ConfigurationError, StoreUnavailable } from "../../errors.ts";
import { LONGEST_CHECK_OUT_MS } from "./breaking.ts";
import { classifyConnect } from "./classify.ts";

/** The part of a `sql` of postgres.js that the store uses; `Handle` is what `reserve` gives, usable as a template tag. */
export interface PostgresJsSql<Handle extends PostgresJsHandle = PostgresJsHandle> {
  reserve(): Promise<Handle & PostgresJsReserved>;
  unsafe(text: string, parameters: never[], options: UnsafeOptions): PostgresJsQuery;
  readonly options: { readonly max: number };
}

/** What is left of it inside a transaction: a template tag that can also send a text as it is. */
export interface PostgresJsHandle {
  (...template: never[]): unknown;
  unsafe(text: string, parameters: never[], options: UnsafeOptions): PostgresJsQuery;
}

interface PostgresJsReserved {
  release(): void;
}

/** A text that is not sent before it is waited for. */
export interface PostgresJsQuery {
  /** Leaves the values as bytes: no type parser and no transform of the user's touches them. */
  raw(): PromiseLike<unknown>;
}

/** `onexecute` is how postgres.js's own `begin` learns which connection carries a statement; its types leave it out. */
export interface UnsafeOptions {
  readonly prepare: false;
  readonly onexecute: (connection: unknown) => true;
}

/** The part of a connection of postgres.js that its `begin` uses, too. */
export interface PostgresJsConnection {
  /** Told once when the socket has closed; from then on the connection may become somebody else's. */
  onclose?: ((error: Error) => void) | null;
  terminate(): void;
}

export function isConnection(value: unknown): value is PostgresJsConnection {
  return typeof value === "object" && value !== null && "terminate" in value && "execute" in value;
}

/** What was reserved and who is told of its end. */
export interface Reservation<Handle> {
  readonly handle: Handle;
  /** Back among the free ones. */
  readonly giveBack: (connection: PostgresJsConnection | null) => void;
  /** Nobody may use it any more. */
  readonly dropped: () => void;
}

const ADVICE = "Give the store a postgres() of its own, large enough";

/**
 * Reserves connections, each within two seconds or not at all. A new one is opened by a plain statement: postgres.js
 * (3.4) forgets a `reserve` that has to open one where it may not fetch types, and where opening fails it keeps the
 * request, answers it later with a connection that then belongs to nobody, and so runs out of them.
 */
export function reservations<Handle extends PostgresJsHandle>(
  sql: PostgresJsSql<Handle>,
  schema: string | null,
): () => Promise<Reservation<Handle>> {
  const seats = seatsFor(sql.options.max);
  const free = new Set<PostgresJsConnection>();
  const openOne = opener(sql, isFree);
  return async () => {
    const askedMs = performance.now();
    const leave = await seats();
    try {
      while (free.size === 0) await inTime(openOne(), askedMs);
      for (const next of [...free].slice(0, 1)) free.delete(next);
      const asked = sql.reserve();
      const reserved = await inTime(asked, askedMs, () => asked.then(({ release }) => release()));
      return {
        handle: reserved,
        giveBack: (connection) => {
          reserved.release();
          if (connection !== null) isFree(connection);
          leave();
        },
        dropped: leave,
      };
    } catch (error) {
      leave();
      throw classifyConnect(error, schema);
    }
  };

  function isFree(connection: PostgresJsConnection): void {
    free.add(connection);
    connection.onclose = () => void free.delete(connection);
  }
}

/** Opens one connection more and leaves it to postgres.js; what cannot be opened soon is not asked for again and again. */
function opener(
  sql: PostgresJsSql,
  isFree: (connection: PostgresJsConnection) => void,
): () => Promise<unknown> {
  const opening = new Set<Promise<void>>();
  return () => {
    if (opening.size >= sql.options.max) return Promise.race(opening);
    const opened = open();
    opening.add(opened);
    const over = () => void opening.delete(opened);
    opened.then(over, over);
    return opened;
  };

  async function open(): Promise<void> {
    let connection: unknown;
    const onexecute = (carrier: unknown) => {
      connection = carrier;
      return true as const;
    };
    await sql.unsafe("SELECT 1", [], { prepare: false, onexecute }).raw();
    if (!isConnection(connection)) throw unknownVersion();
    isFree(connection);
  }
}

/** What this file relies on besides the documentation is not there. */
function unknownVersion(): ConfigurationError {
  return new ConfigurationError(
    "sql",
    "must be what postgres() of postgres.js 3.4 made; this is another version",
  );
}

/** Waits for `work` until two seconds after `sinceMs`; `abandon` looks after what comes later. */
async function inTime<T>(work: Promise<T>, sinceMs: number, abandon?: () => Promise<void>): Promise<T> {
  const leftMs = LONGEST_CHECK_OUT_MS - (performance.now() - sinceMs);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(resolve, Math.max(0, leftMs), "late");
  });
  try {
    const first = await Promise.race([work.then((value) => ({ value })), late]);
    if (first !== "late") return first.value;
    abandon?.().catch(() => {}); // what was not had need not be given back
    throw tooLate();
  } finally {
    clearTimeout(timer);
  }
}

/** At most as many at a time as there are connections, first come, first served; resolves with what ends the turn. */
function seatsFor(max: number): () => Promise<() => void> {
  if (!Number.isInteger(max) || max < 1)
    throw new ConfigurationError(
      "sql",
      "must be made by postgres() with a whole number of connections as `max`",
    );
  const waiting = new Set<() => void>();
  let taken = 0;
  const leave = () => {
    const [next] = waiting;
    if (next === undefined) taken -= 1;
    else {
      waiting.delete(next);
      next();
    }
  };
  return async () => {
    if (taken < max) taken += 1;
    else await turn();
    return leave;
  };

  function turn(): Promise<void> {
    return new Promise((resolve, reject) => {
      const sit = () => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        waiting.delete(sit);
        reject(tooLate());
      }, LONGEST_CHECK_OUT_MS);
      waiting.add(sit);
    });
  }
}

function tooLate(): StoreUnavailable {
  return new StoreUnavailable(
    `No connection was free within ${LONGEST_CHECK_OUT_MS} ms. Nothing was sent. ${ADVICE}.`,
  );
}
