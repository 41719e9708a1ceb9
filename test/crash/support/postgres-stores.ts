import { Pool, type PoolClient, type PoolConfig } from "pg";
import { onTestFinished } from "vitest";
import { postgresStore } from "../../../src/stores/postgres/index.ts";
import type { TransactionalStore } from "../../../src/stores/store.ts";
import type { Effect } from "./ledger.ts";

export type PostgresStore = TransactionalStore<PoolClient, "async">;

/** A pool that ends with its test. */
export function openPool(config: PoolConfig): Pool {
  const pool = new Pool(config);
  onTestFinished(async () => {
    pool.on("error", () => {}); // the server may have a last word while its database is dropped
    await pool.end();
  });
  return pool;
}

/** A store on a pool of its own, or on the one that is given; it ends with its test. */
export function openStore(pool: Pool): PostgresStore {
  const store = postgresStore<PoolClient>({ pool });
  onTestFinished(store.close);
  return store;
}

/** Writes an effect through whatever leads to its table; gives its id. */
export async function insertEffect(
  through: Pick<PoolClient, "query">,
  { key, attempt, note }: Omit<Effect, "id">,
): Promise<string> {
  const text = "INSERT INTO effects (key, attempt, note) VALUES ($1, $2, $3) RETURNING id";
  const { rows } = await through.query(text, [key, attempt, note]);
  return String(rows[0]?.id);
}
