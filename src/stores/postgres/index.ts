import { type Duration, parseDuration } from "../../core/policy.ts";
import { ConfigurationError } from "../../errors.ts";
import type { Capabilities, TransactionalStore, UnitBounds } from "../store.ts";
import type { PostgresClient, PostgresPool } from "./client.ts";
import { fenced } from "./fenced.ts";
import { count, due, list } from "./listing.ts";
import { audit, audits, beat, beats } from "./log.ts";
import { check, type SchemaOptions, schemaName } from "./migrate.ts";
import { pgConnector } from "./pg.ts";
import { purge } from "./purge.ts";
import { autocommit, SHORT, transact } from "./session.ts";
import { tablesIn } from "./sql.ts";
import { MAX_RECORD_BYTES, tryClaim, verbs } from "./verbs.ts";

export type { PooledClient, PostgresClient, PostgresPool, PostgresQuery, PostgresResult } from "./client.ts";
export { migrate, printMigrations, type SchemaOptions } from "./migrate.ts";
export { type Migration, migrations } from "./migrations.ts";

export interface PostgresStoreOptions<Client extends PostgresClient = PostgresClient> extends SchemaOptions {
  /** Yours, and yours to end. A small one of its own keeps completions from queueing behind handlers. */
  readonly pool: PostgresPool<Client>;
  /**
   * A transaction may sit idle for as long as its attempt's lease lasts, then the server ends its session; this makes it
   * shorter. A process that is paused inside one holds the record's row, and nobody could find out what became of it.
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
  idleInTransactionTimeout,
}: PostgresStoreOptions<Client>): TransactionalStore<Client, "async"> {
  const name = schemaName(schema);
  const tables = tablesIn(name);
  const connector = pgConnector(pool, name);
  const capped = idleCap(idleInTransactionTimeout);
  const ask = autocommit(connector);
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
    check: () => check(connector, tables),
    close: async () => connector.close(),
    transaction: (work, bounds) => transact(connector, capped(bounds), work),
    fenced: (ground, work, bounds) => fenced({ connector, tables }, { ground, work, bounds: capped(bounds) }),
    within: (tx) => {
      const inside = connector.inside(tx);
      return { ...verbs(inside, tables), tryClaim: (identity) => tryClaim(inside, name, identity) };
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

/** What a caller asks for, as far as the user's own cap allows. */
function idleCap(timeout: Duration | undefined): (bounds?: UnitBounds) => UnitBounds {
  if (timeout === undefined) return (bounds = SHORT) => bounds;
  const duration = parseDuration(timeout);
  if (duration.kind === "bad")
    throw new ConfigurationError("idleInTransactionTimeout", `must be ${duration.reason}`);
  return ({ idleMs } = SHORT) => ({ idleMs: Math.min(idleMs, duration.ms) });
}
