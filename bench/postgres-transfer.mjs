import { ACCOUNTS, AMOUNT_CENTS, checkCovered, inOrder, OPENING_CENTS, partiesOf } from "./transfers.mjs";
import { NOTE } from "./work.mjs";

/** The tables of the transfers, with accounts that have something to transfer. */
export const TRANSFER_TABLES = `
create table accounts (id bigint primary key, balance bigint not null);
create table transfers (
  id bigint generated always as identity primary key,
  call bigint not null,
  debtor bigint not null,
  creditor bigint not null,
  amount bigint not null,
  note text not null,
  created_at timestamptz not null default now()
);
create table entries (
  id bigint generated always as identity primary key,
  transfer bigint not null,
  account bigint not null,
  amount bigint not null
);
insert into accounts (id, balance) select id, ${OPENING_CENTS} from generate_series(1, ${ACCOUNTS}) as id;
analyze accounts`;

/** A double-entry transfer, in a transaction of a client or a handle; resolves to the number of its row. */
export async function transfer(tx, call) {
  const { debtor, creditor } = partiesOf(call);
  const locked = await tx.query(LOCK, inOrder({ debtor, creditor }));
  checkCovered(locked.rows, debtor);
  await tx.query(CHANGE, [debtor, -AMOUNT_CENTS]);
  await tx.query(CHANGE, [creditor, AMOUNT_CENTS]);
  const { rows } = await tx.query(TRANSFER, [call, debtor, creditor, AMOUNT_CENTS, NOTE]);
  const [{ id }] = rows;
  await tx.query(ENTRY, [id, debtor, -AMOUNT_CENTS]);
  await tx.query(ENTRY, [id, creditor, AMOUNT_CENTS]);
  return id;
}

const LOCK = "select id, balance from accounts where id in ($1, $2) order by id for update";
const CHANGE = "update accounts set balance = balance + $2 where id = $1";
const TRANSFER = `insert into transfers (call, debtor, creditor, amount, note)
  values ($1, $2, $3, $4, $5) returning id`;
const ENTRY = "insert into entries (transfer, account, amount) values ($1, $2, $3)";
