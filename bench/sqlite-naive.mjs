import { inTransaction, statement } from "./sqlite-domain.mjs";
import { answerOf, naiveClaim, naiveCompletion, newKey } from "./work.mjs";

/** The table that people make for their keys. */
export const NAIVE_TABLE = `create table idempotency_keys (
  principal text not null,
  key text not null,
  operation text not null,
  fingerprint text not null,
  state text not null default 'in_progress',
  status integer,
  headers text,
  body text,
  created_at text not null default current_timestamp,
  completed_at text,
  primary key (principal, key)
)`;

/** The flow that people write: two commits, and a crash between them locks the key for good. */
export function naiveCall(connection, effect) {
  const claim = naiveClaim(newKey());
  const { changes } = statement(connection, CLAIM).run(...claim);
  if (Number(changes) !== 1) throw new Error("A new key was taken.");
  return inTransaction(connection, () => {
    const answer = answerOf(effect(connection));
    statement(connection, COMPLETE).run(...naiveCompletion(answer), ...claim.slice(0, 2));
    return answer;
  });
}

/** Makes a completed row about as large as a record of ours; returns how to read it by its primary key. */
export function plainRow(connection, bytes) {
  const claim = naiveClaim(newKey());
  const key = claim.slice(0, 2);
  statement(connection, CLAIM).run(...claim);
  statement(connection, COMPLETE).run(...naiveCompletion(answerOf(1)), ...key);
  const missing = Math.max(0, bytes - bytesIn(connection, "idempotency_keys"));
  statement(connection, PAD).run(" ".repeat(missing), ...key);
  const select = () => {
    const row = statement(connection, SELECT).get(...key);
    if (row === undefined) throw new Error("The plain row is not there.");
    return row;
  };
  return { select, bytes: bytesIn(connection, "idempotency_keys") };
}

/** The bytes of the values in the largest row of a table. */
export function bytesIn(connection, table) {
  const columns = connection.prepare(`pragma table_info(${table})`).all();
  const sizes = columns.map(({ name }) => `ifnull(octet_length(${name}), 0)`);
  return connection.prepare(`select max(${sizes.join(" + ")}) as bytes from ${table}`).get().bytes;
}

const WHERE = "where principal = ? and key = ?";
const CLAIM = `insert into idempotency_keys (principal, key, operation, fingerprint)
  values (?, ?, ?, ?) on conflict do nothing`;
const COMPLETE = `update idempotency_keys
  set state = 'completed', status = ?, headers = ?, body = ?, completed_at = current_timestamp ${WHERE}`;
const SELECT = `select * from idempotency_keys ${WHERE}`;
const PAD = `update idempotency_keys set body = body || ? ${WHERE}`;
