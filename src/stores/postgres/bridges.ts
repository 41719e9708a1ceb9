import { LONGEST_CHECK_OUT_MS, LONGEST_TIMER_MS } from "./breaking.ts";
import type { PgPool, PooledClient, PostgresClient } from "./client.ts";
import type { Connector, RawRow } from "./connector.ts";
import { named } from "./named.ts";
import { pgConnector } from "./pg.ts";
import { postgresJsConnector } from "./postgres-js.ts";
import type { PostgresJsHandle, PostgresJsSql } from "./postgres-js-pool.ts";
import { transact } from "./session.ts";
import type { TransactionSource } from "./through-unit.ts";

/** Units get a client of this pool of `pg`. */
export function fromPg<Client extends PostgresClient & PooledClient>(
  pool: PgPool<Client>,
): TransactionSource<Client> {
  return throughConnector(pgConnector<Client>(pool, null));
}

/**
 * Units get a reserved `sql` of postgres.js. Not by its `begin`: that ends the process (3.4) when the server ends the
 * connection while the work does something else.
 */
export function fromPostgresJs<Handle extends PostgresJsHandle>(
  sql: PostgresJsSql<Handle>,
): TransactionSource<Handle> {
  return throughConnector(postgresJsConnector(sql, null));
}

function throughConnector<Tx>(connector: Connector<Tx>): TransactionSource<Tx> {
  return {
    open: (work, bounds) =>
      transact(connector, bounds, async (tx) => ({ kind: "commit", value: await work(tx) })),
    send: (tx, text) => connector.inside(tx)({ text, values: [] }),
    close: () => connector.close(),
  };
}

/** The part of a Kysely that is used; `Tx` is its `Transaction<DB>`. */
export interface KyselyLike<Tx extends KyselyTransaction> {
  transaction(): {
    setIsolationLevel(level: "read committed"): {
      execute<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
    };
  };
}

interface KyselyTransaction {
  /** Plugins may rename columns and parse values. */
  withoutPlugins(): { executeQuery(query: KyselyQuery): Promise<{ readonly rows: readonly unknown[] }> };
}

/** As Kysely's `CompiledQuery.raw` makes it. */
interface KyselyQuery {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  readonly query: {
    readonly kind: "RawNode";
    readonly sqlFragments: readonly string[];
    readonly parameters: readonly never[];
  };
  readonly queryId: { readonly queryId: string };
}

/** Units get a `Transaction<DB>` of Kysely. */
export function fromKysely<Tx extends KyselyTransaction>(db: KyselyLike<Tx>): TransactionSource<Tx> {
  return {
    open: (work) => db.transaction().setIsolationLevel("read committed").execute(work),
    send: async (tx, sql) => {
      const query = { kind: "RawNode", sqlFragments: [sql], parameters: [] } as const;
      const { rows } = await tx
        .withoutPlugins()
        .executeQuery({ sql, parameters: [], query, queryId: { queryId: "oncekey" } });
      return namedRows(rows);
    },
    // Newer ones see by themselves that COMMIT was answered with ROLLBACK, and say it without a SQLSTATE.
    databaseError: (error) =>
      error instanceof Error && error.name === "AbortedTransactionError"
        ? Object.assign(new Error(error.message, { cause: error }), { code: "25P02" })
        : error,
  };
}

/** The part of a Drizzle database (0.40 or later) that is used; `Tx` is what its `transaction` hands out. */
export interface DrizzleLike<Tx extends DrizzleTransaction> {
  transaction<T>(
    work: (tx: Tx) => Promise<T>,
    config: { readonly isolationLevel: "read committed" },
  ): Promise<T>;
}

interface DrizzleTransaction {
  execute(query: string): PromiseLike<unknown>;
}

/** Units get the `tx` of Drizzle, over `pg` or postgres.js. */
export function fromDrizzle<Tx extends DrizzleTransaction>(db: DrizzleLike<Tx>): TransactionSource<Tx> {
  return {
    open: (work) => db.transaction(work, { isolationLevel: "read committed" }),
    send: async (tx, text) => namedRows(rowsIn(await tx.execute(text))),
  };
}

/** The part of a Knex that is used; `Tx` is its `Knex.Transaction`. */
export interface KnexLike<Tx extends KnexTransaction> {
  transaction<T>(
    work: (tx: Tx) => Promise<T>,
    config: { readonly isolationLevel: "read committed" },
  ): Promise<T>;
}

interface KnexTransaction {
  raw(text: string): PromiseLike<unknown>;
}

/** Units get a `Knex.Transaction`. */
export function fromKnex<Tx extends KnexTransaction>(knex: KnexLike<Tx>): TransactionSource<Tx> {
  return {
    open: (work) => knex.transaction(work, { isolationLevel: "read committed" }),
    // A bare question mark would be a placeholder, also in the quoted name of a schema.
    send: async (tx, text) => namedRows(rowsIn(await tx.raw(text.replaceAll("?", "\\?")))),
  };
}

/** Drivers answer with a list of rows, or with an object that holds one. */
function rowsIn(answer: unknown): readonly unknown[] {
  if (Array.isArray(answer)) return answer;
  if (typeof answer === "object" && answer !== null && "rows" in answer && Array.isArray(answer.rows))
    return answer.rows;
  throw new TypeError("The layer answered with something else than rows.");
}

/** postgres.js can begin a result with holes. */
function namedRows(rows: readonly unknown[]): readonly RawRow[] {
  return rows.flatMap((row) => (typeof row === "object" && row !== null ? [named(Object.entries(row))] : []));
}

/** The part of a Prisma client that is used; `Tx` is its `Prisma.TransactionClient`. */
export interface PrismaLike<Tx extends PrismaTransaction> {
  $transaction<T>(
    work: (tx: Tx) => Promise<T>,
    options: {
      readonly isolationLevel: "ReadCommitted";
      readonly maxWait: number;
      readonly timeout: number;
    },
  ): Promise<T>;
}

interface PrismaTransaction {
  $queryRawUnsafe(text: string): PromiseLike<unknown>;
}

/** Units get a `Prisma.TransactionClient`. */
export function fromPrisma<Tx extends PrismaTransaction>(client: PrismaLike<Tx>): TransactionSource<Tx> {
  return {
    open: (work, { longestMs }) =>
      client.$transaction(work, {
        ...{ isolationLevel: "ReadCommitted", maxWait: LONGEST_CHECK_OUT_MS },
        timeout: Math.min(Math.ceil(longestMs ?? LONGEST_TIMER_MS), LONGEST_TIMER_MS),
      }),
    send: async (tx, text) => namedRows(rowsIn(await tx.$queryRawUnsafe(text))),
    databaseError: prismaError,
  };
}

/** Prisma puts what the database said into `meta`, or into a `cause` that is no error. */
function prismaError(error: unknown): unknown {
  const adapter = at(at(error, "meta"), "driverAdapterError");
  const said = at(adapter, "cause") ?? at(error, "cause");
  const code = at(said, "originalCode") ?? at(at(error, "meta"), "code") ?? conflictIn(error);
  if (typeof code !== "string") return error;
  const message = at(said, "originalMessage") ?? at(error, "message");
  return Object.assign(new Error(String(message), { cause: error }), { code });
}

/** A write conflict or a deadlock that Prisma words itself. */
function conflictIn(error: unknown): string | undefined {
  return at(error, "code") === "P2034" ? "40001" : undefined;
}

function at(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
