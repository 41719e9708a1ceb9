import { setTimeout as pause } from "node:timers/promises";
import { DatabaseError, type Pool, type PoolClient } from "pg";

/**
 * Ways to keep keys and settlements that one would write at first, in a schema as careful as the service's own: a
 * settlement has a unique foreign key to its key. Each loses a race that the service's own order of statements wins.
 */
export interface PlainOrder {
  readonly name: string;
  /** The SQLSTATE that its callers see. */
  readonly fails: string;
  /** What one copy of a request does; whatever the database refuses is thrown. */
  readonly settle: (client: PoolClient, key: string) => Promise<void>;
}

/** What came of many copies: the refusals by their SQLSTATE, and the keys that nobody has finished. */
export interface PlainOutcome {
  readonly refusals: Readonly<Record<string, number>>;
  readonly unfinished: number;
}

/** The tables of the plain orders; `tries` is where a careful loser notes that it was there. */
export const PLAIN_TABLES = `
  CREATE TABLE plain_keys (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL DEFAULT 'in_progress');
  CREATE TABLE plain_settlements (key_id BIGINT NOT NULL UNIQUE REFERENCES plain_keys (id));
  CREATE TABLE plain_tries (key_id BIGINT NOT NULL REFERENCES plain_keys (id))`;

export const plainOrders: readonly PlainOrder[] = [
  {
    name: "that looks for the key, then inserts key and settlement",
    fails: "23505",
    settle: async (client, key) => {
      if ((await client.query(FIND, [key])).rows.length > 0) return;
      await client.query("BEGIN");
      const { rows } = await client.query(`${CLAIM} RETURNING id`, [key]);
      await client.query("INSERT INTO plain_settlements VALUES ($1)", [rows[0].id]);
      await pause(BANK_MS);
      await client.query("UPDATE plain_keys SET status = 'completed' WHERE id = $1", [rows[0].id]);
      await client.query("COMMIT");
    },
  },
  {
    name: "whose losers note their try and lock the key, and whose winner inserts its settlement before it locks the key",
    fails: "40P01",
    settle: async (client, key) => {
      const claimed = await client.query(`${CLAIM} ON CONFLICT (key) DO NOTHING RETURNING id`, [key]);
      const won = claimed.rows.length > 0;
      if (won) await pause(BANK_MS);
      const [found] = won ? claimed.rows : (await client.query(FIND, [key])).rows;
      const child = won ? "plain_settlements" : "plain_tries";
      await client.query("BEGIN");
      await client.query(`INSERT INTO ${child} VALUES ($1)`, [found.id]);
      await client.query("SELECT status FROM plain_keys WHERE id = $1 FOR UPDATE", [found.id]);
      if (won) await client.query("UPDATE plain_keys SET status = 'completed' WHERE id = $1", [found.id]);
      await client.query("COMMIT");
    },
  },
];

/** Lets `copies` of one request race, once for each of `rounds` keys. */
export async function racePlainly(
  pool: Pool,
  { settle }: PlainOrder,
  { rounds, copies }: { readonly rounds: number; readonly copies: number },
): Promise<PlainOutcome> {
  const refusals: Record<string, number> = {};
  const copy = async (key: string) => {
    const client = await pool.connect();
    try {
      await settle(client, key);
    } catch (error) {
      if (!(error instanceof DatabaseError) || error.code === undefined) throw error;
      refusals[error.code] = (refusals[error.code] ?? 0) + 1;
      await client.query("ROLLBACK");
    } finally {
      client.release();
    }
  };
  for (let round = 0; round < rounds; round++) {
    await Promise.all(Array.from({ length: copies }, () => copy(`round-${round}`)));
  }
  const { rows } = await pool.query("SELECT count(*) FROM plain_keys WHERE status <> 'completed'");
  return { refusals, unfinished: Number(rows[0].count) };
}

const FIND = "SELECT id FROM plain_keys WHERE key = $1";
const CLAIM = "INSERT INTO plain_keys (key) VALUES ($1)";

/** As long as a quick bank takes. */
const BANK_MS = 5;
