import { BALANCES, checkBooks, transfersSince } from "./transfers.mjs";
import { NOTE } from "./work.mjs";

/** The one table that all flows of the smallest effect write to. */
export const DOMAIN_TABLE = `create table effects (
  id bigint generated always as identity primary key,
  call bigint not null,
  note text not null,
  created_at timestamptz not null default now()
)`;

/** The smallest effect, through a pool, a client or the handle of a transaction; resolves to the number of its row. */
export async function smallest(through, call) {
  const text = "insert into effects (call, note) values ($1, $2) returning id";
  const { rows } = await through.query(text, [call, NOTE]);
  return rows[0].id;
}

/** What any handler does that has more than one statement. */
export async function inTransaction(pool, work) {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const value = await work(client);
    await client.query("commit");
    return value;
  } finally {
    client.release();
  }
}

/** The numbers of the calls, from one on, whose effect is there; rejects where the books do not add up. */
export async function writtenCalls(pool, first) {
  const { rows: accounts } = await pool.query(BALANCES);
  const { rows: transfers } = await pool.query(transfersSince(first));
  checkBooks({ accounts, transfers });
  const { rows } = await pool.query("select call from effects where call >= $1", [first]);
  return [...rows, ...transfers].map(({ call }) => Number(call));
}
