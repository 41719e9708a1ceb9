import { type Duration, parseDuration } from "../../core/policy.ts";
import { ConfigurationError } from "../../errors.ts";
import type { Capabilities, TransactionalStore } from "../store.ts";
import type { PostgresClient, PostgresPool } from "./client.ts";
import { count, due, list } from "./listing.ts";
import { audit, audits, beat, beats } from "./log.ts";
import { check, type SchemaOptions, schemaName } from "./migrate.ts";
import { purge } from "./purge.ts";
import { asking, autocommit, outliveConnections, transact } from "./session.ts";
import { tablesIn } from "./sql.ts";
import { MAX_RECORD_BYTES, tryClaim, verbs } from "./verbs.ts";

export type { PooledClient, PostgresClient, PostgresPool, PostgresQuery, PostgresResult } from "./client.ts";
export { migrate, printMigrations, type SchemaOptions } from "./migrate.ts";
export { type Migration, migrations } from "./migrations.ts";

export interface PostgresStoreOptions<Client extends PostgresClient = PostgresClient> extends SchemaOptions {
  /** Yours, and yours to end. A small one of its own keeps completions from queueing behind handlers. */
  readonly pool: PostgresPool<Client>;
  /**
   * How long a transaction of the store's may sit idle before the server ends its session (10 s). A process that is
   * paused inside one holds the record's row, and nobody could find out what became of it.
   */
  readonly idleInTransactionTimeout?: Duration;
}

/**
 * Keeps records in PostgreSQL 13 or later, through a pool of `pg` that is yours; behind a pooler in transaction mode
 * too. `Client` is the type that the units of `transaction` receive: `postgresStore<PoolClient>({ pool })`.
 */
export function postgresStore<Client extends PostgresClient = PostgresClient>({
  pool,
  schema,
  idleInTransactionTimeout = "10s",
}: PostgresStoreOptions<Client>): TransactionalStore<Client, "async"> {
  const database = {
    pool,
    schema: schemaName(schema),
    idleInTransactionMs: settled(idleInTransactionTimeout),
  };
  const tables = tablesIn(database.schema);
  const ask = autocommit(database);
  const stopListening = outliveConnections(pool);
  return {
    name: "postgres",
    capabilities: CAPABILITIES,
    settles: "async",
    ...verbs(ask, tables),
    due: (query) => due(ask, tables, query),
    list: (query) => list(ask, tables, query),
    count: () => count(ask, tables),
    purge: (limit) => purge(ask, tables, limit),
    audit: (entry) => audit(ask, tables, entry),
    audits: (identity) => audits(ask, tables, identity),
    beat: (worker) => beat(ask, tables, worker),
    beats: () => beats(ask, tables),
    check: () => check(database, tables),
    close: async () => stopListening(),
    transaction: (work) => transact(database, work),
    within: (tx) => {
      const inside = asking(tx, database.schema);
      return {
        ...verbs(inside, tables),
        tryClaim: (identity) => tryClaim(inside, database.schema, identity),
      };
    },
  };
}

const CAPABILITIES: Capabilities = {
  transactions: true,
  durable: true,
  nativeExpiry: false,
  timePrecisionMs: 1,
  maxRecordBytes: MAX_RECORD_BYTES,
};

function settled(timeout: Duration): number {
  const duration = parseDuration(timeout);
  if (duration.kind === "bad")
    throw new ConfigurationError("idleInTransactionTimeout", `must be ${duration.reason}`);
  return Math.min(duration.ms, LONGEST_SETTING_MS);
}

/** A setting of PostgreSQL is an integer of 32 bits. */
const LONGEST_SETTING_MS = 2_147_483_647;
