import { NOTE } from "./work.mjs";

/** The one table that all flows write to. */
export const DOMAIN_TABLE = `create table effects (
  id bigint generated always as identity primary key,
  call bigint not null,
  note text not null,
  created_at timestamptz not null default now()
)`;

/** The effect, through a pool, a client or the handle of a transaction; resolves to the number of its row. */
export async function effect(through, call) {
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

/** The numbers of the calls, from one on, whose effect is there. */
export async function writtenCalls(pool, first) {
  const { rows } = await pool.query("select call from effects where call >= $1", [first]);
  return rows.map(({ call }) => Number(call));
}
