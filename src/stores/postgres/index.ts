import { type Duration, parseDuration } from "../../core/policy.ts";
import type { Identity } from "../../core/record.ts";
import { ConfigurationError } from "../../errors.ts";
import type {
  AuditEntry,
  Capabilities,
  DueQuery,
  ListQuery,
  TransactionalStore,
  WorkerName,
} from "../store.ts";
import type { PgPool, PooledClient, PostgresClient, PostgresPool } from "./client.ts";
import type { Ask, Connector } from "./connector.ts";
import { count, due, list } from "./listing.ts";
import { audit, audits, beat, beats } from "./log.ts";
import { check, type SchemaOptions, schemaName } from "./migrate.ts";
import { pgConnector } from "./pg.ts";
import { postgresJsConnector } from "./postgres-js.ts";
import type { PostgresJsHandle, PostgresJsSql } from "./postgres-js-pool.ts";
import { purge } from "./purge.ts";
import { autocommit, SHORT } from "./session.ts";
import { type Tables, tablesIn } from "./tables.ts";
import type { TransactionSource } from "./through-unit.ts";
import { type Capped, ownUnits, unitsThrough } from "./units.ts";
import { MAX_RECORD_BYTES, verbs } from "./verbs.ts";

export {
  type DrizzleLike,
  fromDrizzle,
  fromKnex,
  fromKysely,
  fromPg,
  fromPostgresJs,
  fromPrisma,
  type KnexLike,
  type KyselyLike,
  type PrismaLike,
} from "./bridges.ts";
export type { PooledClient, PostgresClient, PostgresPool, PostgresQuery, PostgresResult } from "./client.ts";
export { migrate, printMigrations, type SchemaOptions } from "./migrate.ts";
export { type Migration, migrations } from "./migrations.ts";
export type { PostgresJsHandle, PostgresJsSql } from "./postgres-js-pool.ts";
export type { TransactionSource } from "./through-unit.ts";

interface PostgresStoreSettings extends SchemaOptions {
  /**
   * A transaction may sit idle for as long as its attempt's lease lasts, then the server ends its session; this makes it
   * shorter. A process that is paused inside one holds the record's row, and nobody could find out what became of it.
   */
  readonly idleInTransactionTimeout?: Duration;
}

export interface PostgresStoreOptions<Client extends PostgresClient = PostgresClient>
  extends PostgresStoreSettings {
  /** Yours, and yours to end. A small one of its own keeps completions from queueing behind handlers. */
  readonly pool: PostgresPool<Client>;
}

export interface PostgresJsStoreOptions<Handle extends PostgresJsHandle = PostgresJsHandle>
  extends PostgresStoreSettings {
  /** What `postgres()` of postgres.js 3.4 made: yours, and yours to end. Better one of the store's own. */
  readonly sql: PostgresJsSql<Handle>;
}

/** Units are opened by a layer of yours; all else goes through `pool` or `sql`, to the same database. */
export type PostgresBridgeOptions<Tx> = (PostgresStoreOptions | PostgresJsStoreOptions) & {
  /** By `fromKysely(db)`, `fromDrizzle(db)`, `fromKnex(knex)`, `fromPrisma(client)`, or by an object of your own. */
  readonly transactions: TransactionSource<Tx>;
};

/**
 * Keeps records in PostgreSQL 13 or later, through a pool of `pg` or a `sql` of postgres.js that is yours; behind a pooler
 * in transaction mode too. `Client` is what the units of `transaction` receive: the pool's own, unless `transactions` says
 * where they come from.
 */
export function postgresStore<Tx>(options: PostgresBridgeOptions<Tx>): TransactionalStore<Tx, "async">;
export function postgresStore<Handle extends PostgresJsHandle>(
  options: PostgresJsStoreOptions<Handle>,
): TransactionalStore<Handle, "async">;
export function postgresStore<Client extends PostgresClient & PooledClient>(
  options: PostgresStoreSettings & { readonly pool: PgPool<Client> },
): TransactionalStore<Client, "async">;
export function postgresStore<Client extends PostgresClient = PostgresClient>(
  options: PostgresStoreOptions<Client>,
): TransactionalStore<Client, "async">;
export function postgresStore<Tx>(
  options: PostgresBridgeOptions<Tx> | PostgresJsStoreOptions | PostgresStoreOptions,
):
  | TransactionalStore<Tx, "async">
  | TransactionalStore<PostgresJsHandle, "async">
  | TransactionalStore<PostgresClient, "async"> {
  refuseUnusable(options);
  const name = schemaName(options.schema);
  return "sql" in options
    ? storeOn(postgresJsConnector(options.sql, name), options)
    : storeOn(pgConnector(options.pool, name), options);
}

/** For plain JavaScript, whose mistakes would show at the first request only. */
function refuseUnusable(options: object): void {
  const has = (field: string, ...members: readonly string[]) => {
    const given: unknown = Reflect.get(options, field);
    const isThere = (typeof given === "object" && given !== null) || typeof given === "function";
    return isThere && members.every((member) => Reflect.get(given, member) !== undefined);
  };
  if ("sql" in options && !has("sql", "reserve", "unsafe", "options"))
    throw new ConfigurationError("sql", "must be what postgres() of postgres.js made");
  if (!("sql" in options) && !has("pool", "connect", "on", "totalCount"))
    throw new ConfigurationError(
      "pool",
      "must be a pool of pg: new Pool({ connectionString }), not a client and no URL",
    );
  if ("transactions" in options && !has("transactions", "open", "send"))
    throw new ConfigurationError(
      "transactions",
      "must be what fromKysely(db), fromDrizzle(db), fromKnex(knex) … made",
    );
}

function storeOn<Own, Tx>(
  connector: Connector<Own>,
  options: PostgresStoreSettings & { readonly transactions?: TransactionSource<Tx> },
): TransactionalStore<Own, "async"> | TransactionalStore<Tx, "async"> {
  const tables = tablesIn(connector.schema);
  const ask = autocommit(connector);
  const capped = idleCap(options.idleInTransactionTimeout);
  const source = options.transactions;
  const records = recordsIn(connector, ask, tables);
  if (source === undefined)
    return {
      ...records,
      ...ownUnits(connector, tables, capped),
      close: async () => connector.close(),
    };
  return {
    ...records,
    ...unitsThrough({ source, ask, tables, schema: connector.schema }, capped),
    close: async () => {
      source.close?.();
      connector.close();
    },
  };
}

/** All but the units. */
function recordsIn<Own>(connector: Connector<Own>, ask: Ask, tables: Tables) {
  return {
    ...{ name: "postgres", capabilities: CAPABILITIES, settles: "async" as const },
    ...verbs(ask, tables),
    due: (query: DueQuery) => due(ask, tables, query),
    list: (query: ListQuery) => list(ask, tables, query),
    count: () => count(ask, tables),
    purge: (limit: number) => purge(ask, tables, limit),
    audit: (entry: AuditEntry) => audit(ask, tables, entry),
    audits: (identity: Identity) => audits(ask, tables, identity),
    beat: (worker: WorkerName) => beat(ask, tables, worker),
    beats: () => beats(ask, tables),
    check: () => check(connector, tables),
  };
}

const CAPABILITIES: Capabilities = {
  transactions: true,
  durable: true,
  nativeExpiry: false,
  timePrecisionMs: 1,
  maxRecordBytes: MAX_RECORD_BYTES,
};

/** What a caller asks for, as far as the user's own cap allows. */
function idleCap(timeout: Duration | undefined): Capped {
  if (timeout === undefined) return (bounds = SHORT) => bounds;
  const duration = parseDuration(timeout);
  if (duration.kind === "bad")
    throw new ConfigurationError("idleInTransactionTimeout", `must be ${duration.reason}`);
  return ({ idleMs } = SHORT) => ({ idleMs: Math.min(idleMs, duration.ms) });
}
