import { locking, type Row, sql, textIn, type Unit } from "../database/statement.ts";
import { type Account, accountIn, currencyIn } from "./account.ts";
import { type Currency, formatAmount, MOST_MINOR_UNITS } from "./money.ts";

/** What a caller asks for: money from an account of the caller's to any account of the same currency. */
export interface TransferOrder {
  readonly from: string;
  readonly to: string;
  /** In minor units. */
  readonly amount: bigint;
  readonly currency: Currency;
}

/** A transfer that was made; there are no others. */
export interface Transfer extends TransferOrder {
  readonly id: string;
  /** Who asked for it. */
  readonly owner: string;
}

/** Why a transfer was refused; nothing was moved then. */
export interface Refusal {
  readonly kind: "refused";
  readonly code: "unknown_account" | "currency_mismatch" | "insufficient_funds" | "balance_too_large";
  readonly field: "from" | "to" | "amount" | "currency";
  readonly detail: string;
}

/** Moves the money: both balances and both entries, or nothing. */
export function* makeTransfer(transfer: Transfer): Unit<{ readonly kind: "made" } | Refusal> {
  const { id, owner, from, to, amount, currency } = transfer;
  const accounts = yield* lockAccounts([from, to]);
  const refusal = refusalOf(transfer, accounts);
  if (refusal !== null) return refusal;
  yield sql`UPDATE accounts SET balance = balance - ${amount} WHERE id = ${from}`;
  yield sql`UPDATE accounts SET balance = balance + ${amount} WHERE id = ${to}`;
  yield sql`INSERT INTO transfers (id, owner, from_account, to_account, amount, currency)
    VALUES (${id}, ${owner}, ${from}, ${to}, ${amount}, ${currency})`;
  yield sql`INSERT INTO entries (transfer_id, account_id, amount)
    VALUES (${id}, ${from}, ${-amount}), (${id}, ${to}, ${amount})`;
  return { kind: "made" };
}

/** The caller's own transfer; anybody else's is as if it did not exist. */
export function* findTransfer({ id, owner }: Pick<Transfer, "id" | "owner">): Unit<Transfer | null> {
  const [row] = yield sql`SELECT id, owner, from_account, to_account, currency, CAST(amount AS TEXT) AS amount
    FROM transfers WHERE id = ${id} AND owner = ${owner}`;
  return row === undefined ? null : transferIn(row);
}

/** A transfer as clients see it. */
export function viewOfTransfer({
  id,
  from,
  to,
  amount,
  currency,
}: Transfer): Readonly<Record<string, string>> {
  return { id, from, to, amount: formatAmount(amount, currency), currency };
}

/** Always in the order of their ids, or two opposite transfers would wait for each other. */
function* lockAccounts(ids: readonly string[]): Unit<ReadonlyMap<string, Account>> {
  const accounts = new Map<string, Account>();
  for (const id of [...ids].sort()) {
    const [row] = yield locking(sql`SELECT id, owner, currency, CAST(balance AS TEXT) AS balance
      FROM accounts WHERE id = ${id}`);
    if (row !== undefined) accounts.set(id, accountIn(row));
  }
  return accounts;
}

function refusalOf(
  { owner, from, to, amount, currency }: Transfer,
  accounts: ReadonlyMap<string, Account>,
): Refusal | null {
  const [payer, payee] = [accounts.get(from), accounts.get(to)];
  // Somebody else's account is as unknown to a payer as one that does not exist.
  if (payer === undefined || payer.owner !== owner)
    return refused("unknown_account", "from", "is no account of yours");
  if (payee === undefined) return refused("unknown_account", "to", "is no account");
  if (payer.currency !== currency || payee.currency !== currency) {
    return refused("currency_mismatch", "currency", "must be the currency of both accounts");
  }
  if (payer.balance < amount)
    return refused("insufficient_funds", "amount", "is more than the account holds");
  if (payee.balance + amount > MOST_MINOR_UNITS) {
    return refused("balance_too_large", "amount", "is more than the receiving account can take");
  }
  return null;
}

function refused(code: Refusal["code"], field: Refusal["field"], detail: string): Refusal {
  return { kind: "refused", code, field, detail };
}

function transferIn(row: Row): Transfer {
  return {
    id: textIn(row, "id"),
    owner: textIn(row, "owner"),
    from: textIn(row, "from_account"),
    to: textIn(row, "to_account"),
    amount: BigInt(textIn(row, "amount")),
    currency: currencyIn(row),
  };
}
