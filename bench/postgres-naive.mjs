import { inTransaction } from "./postgres-domain.mjs";
import { answerOf, naiveClaim, naiveCompletion, newKey } from "./work.mjs";

/** The table that people make for their keys. */
export const NAIVE_TABLE = `create table idempotency_keys (
  principal text not null,
  key text not null,
  operation text not null,
  fingerprint text not null,
  state text not null default 'in_progress',
  status integer,
  headers jsonb,
  body text,
  created_at timestamptz not null default now(),
  completed_at timestamptz,
  primary key (principal, key)
)`;

/**
 * The flow that people write: four statements around the effect, and a crash between the first and the last locks the
 * key for good.
 */
export async function naiveCall(pool, effect) {
  const claim = naiveClaim(newKey());
  const { rowCount } = await pool.query(CLAIM, claim);
  if (rowCount !== 1) throw new Error("A new key was taken.");
  return inTransaction(pool, async (client) => {
    const answer = answerOf(await effect(client));
    await client.query(COMPLETE, [...claim.slice(0, 2), ...naiveCompletion(answer)]);
    return answer;
  });
}

/** Makes a completed row about as large as a record of ours; resolves to how to read it by its primary key. */
export async function plainRow(pool, bytes) {
  const claim = naiveClaim(newKey());
  const key = claim.slice(0, 2);
  await pool.query(CLAIM, claim);
  await pool.query(COMPLETE, [...key, ...naiveCompletion(answerOf(1))]);
  const missing = bytes - (await plainBytes(pool, key));
  await pool.query(PAD, [...key, Math.max(0, missing)]);
  const select = async () => {
    const { rows } = await pool.query(SELECT, key);
    if (rows.length !== 1) throw new Error("The plain row is not there.");
    return rows[0];
  };
  return { select, bytes: await plainBytes(pool, key) };
}

async function plainBytes(pool, key) {
  const { rows } = await pool.query(BYTES, key);
  return rows[0].bytes;
}

const WHERE = "where principal = $1 and key = $2";
const CLAIM = `insert into idempotency_keys (principal, key, operation, fingerprint)
  values ($1, $2, $3, $4) on conflict do nothing returning key`;
const COMPLETE = `update idempotency_keys
  set state = 'completed', status = $3, headers = $4, body = $5, completed_at = now() ${WHERE}`;
const SELECT = `select * from idempotency_keys ${WHERE}`;
const PAD = `update idempotency_keys set body = body || repeat(' ', $3::integer) ${WHERE}`;
const BYTES = `select pg_column_size(idempotency_keys.*) as bytes from idempotency_keys ${WHERE}`;
