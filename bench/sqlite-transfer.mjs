import { statement } from "./sqlite-domain.mjs";
import { ACCOUNTS, AMOUNT_CENTS, checkCovered, inOrder, OPENING_CENTS, partiesOf } from "./transfers.mjs";
import { NOTE } from "./work.mjs";

/** The tables of the transfers, with accounts that have something to transfer. */
export const TRANSFER_TABLES = `
create table accounts (id integer primary key, balance integer not null);
create table transfers (
  id integer primary key,
  call integer not null,
  debtor integer not null,
  creditor integer not null,
  amount integer not null,
  note text not null,
  created_at text not null default current_timestamp
);
create table entries (
  id integer primary key,
  transfer integer not null,
  account integer not null,
  amount integer not null
);
insert into accounts (id, balance)
  with recursive numbers (id) as (select 1 union all select id + 1 from numbers where id < ${ACCOUNTS})
  select id, ${OPENING_CENTS} from numbers`;

/** A double-entry transfer, in a transaction that holds SQLite's one lock; returns the number of its row. */
export function transfer(tx, call) {
  const { debtor, creditor } = partiesOf(call);
  checkCovered(statement(tx, LOOK).all(...inOrder({ debtor, creditor })), debtor);
  statement(tx, CHANGE).run(-AMOUNT_CENTS, debtor);
  statement(tx, CHANGE).run(AMOUNT_CENTS, creditor);
  const { id } = statement(tx, TRANSFER).get(call, debtor, creditor, AMOUNT_CENTS, NOTE);
  statement(tx, ENTRY).run(id, debtor, -AMOUNT_CENTS);
  statement(tx, ENTRY).run(id, creditor, AMOUNT_CENTS);
  return id;
}

const LOOK = "select id, balance from accounts where id in (?, ?) order by id";
const CHANGE = "update accounts set balance = balance + ? where id = ?";
const TRANSFER = `insert into transfers (call, debtor, creditor, amount, note)
  values (?, ?, ?, ?, ?) returning id`;
const ENTRY = "insert into entries (transfer, account, amount) values (?, ?, ?)";
