import { type Row, sql, textIn, type Unit } from "../database/statement.ts";
import { type Currency, formatAmount, isCurrency } from "./money.ts";

/** Money that belongs to one caller. */
export interface Account {
  readonly id: string;
  readonly owner: string;
  readonly currency: Currency;
  /** In minor units. */
  readonly balance: bigint;
}

/** An account as clients see it. */
export interface AccountView {
  readonly id: string;
  readonly owner: string;
  readonly currency: string;
  readonly balance: string;
}

/** Opens an account with what it holds. */
export function* openAccount({ id, owner, currency, balance }: Account): Unit<void> {
  yield sql`INSERT INTO accounts (id, owner, currency, opening_balance, balance)
    VALUES (${id}, ${owner}, ${currency}, ${balance}, ${balance})`;
}

/** The owner's account; anybody else's is as if it did not exist. */
export function* findAccount({ id, owner }: Pick<Account, "id" | "owner">): Unit<Account | null> {
  const [row] = yield sql`SELECT id, owner, currency, CAST(balance AS TEXT) AS balance
    FROM accounts WHERE id = ${id} AND owner = ${owner}`;
  return row === undefined ? null : accountIn(row);
}

/** The account that a row of `id`, `owner`, `currency` and `balance` (as text) holds. */
export function accountIn(row: Row): Account {
  return {
    id: textIn(row, "id"),
    owner: textIn(row, "owner"),
    currency: currencyIn(row),
    balance: BigInt(textIn(row, "balance")),
  };
}

/** The currency in a row, which was known when it was written. */
export function currencyIn(row: Row): Currency {
  const code = textIn(row, "currency");
  if (isCurrency(code)) return code;
  throw new TypeError(`A row has the currency ${code}, which this release does not know.`);
}

export function viewOfAccount({ id, owner, currency, balance }: Account): AccountView {
  return { id, owner, currency, balance: formatAmount(balance, currency) };
}
