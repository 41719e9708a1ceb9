import { BALANCES, checkBooks, transfersSince } from "./transfers.mjs";
import { NOTE } from "./work.mjs";

/** The one table that all flows of the smallest effect write to. */
export const DOMAIN_TABLE = `create table effects (
  id integer primary key,
  call integer not null,
  note text not null,
  created_at text not null default current_timestamp
)`;

/** The smallest effect, on a connection or the handle of a transaction; returns the number of its row. */
export function smallest(connection, call) {
  return statement(connection, "insert into effects (call, note) values (?, ?) returning id").get(call, NOTE)
    .id;
}

/** What any handler does that has more than one statement. */
export function inTransaction(connection, work) {
  connection.exec("begin immediate");
  const value = work(connection);
  connection.exec("commit");
  return value;
}

/** The numbers of the calls, from one on, whose effect is there; throws where the books do not add up. */
export function writtenCalls(connection, first) {
  const transfers = connection.prepare(transfersSince(first)).all();
  checkBooks({ accounts: statement(connection, BALANCES).all(), transfers });
  const rows = statement(connection, "select call from effects where call >= ?").all(first);
  return [...rows, ...transfers].map(({ call }) => Number(call));
}

/** A statement that its connection prepares once: preparing costs more than most of them. */
export function statement(connection, sql) {
  const known = statements.get(connection) ?? new Map();
  statements.set(connection, known);
  if (!known.has(sql)) known.set(sql, connection.prepare(sql));
  return known.get(sql);
}

const statements = new WeakMap();
