import { type Row, type Statement, sql, textIn, textOrNullIn, type Unit } from "../database/statement.ts";
import { currencyIn } from "./account.ts";
import { type Currency, formatAmount } from "./money.ts";

/** What a caller asks the service to settle at the bank. */
export interface SettlementOrder {
  readonly owner: string;
  /** In minor units. */
  readonly amount: bigint;
  readonly currency: Currency;
  readonly debtor: string;
  readonly creditor: string;
  readonly reference: string;
}

/**
 * `pending` until the bank's word is kept; `abandoned` once it is proved that the bank did nothing, and pending again
 * when the same key is sent once more.
 */
export type SettlementStatus = "pending" | "settled" | "declined" | "abandoned";

/** A settlement as it stands. */
export interface Settlement extends SettlementOrder {
  readonly id: string;
  readonly status: SettlementStatus;
  /** The bank's name for what it decided. */
  readonly externalReference: string | null;
}

/** What the bank decided, for ever. */
export interface Decision {
  readonly status: "settled" | "declined";
  readonly externalReference: string;
}

/** A settlement as clients see it. */
export interface SettlementView {
  readonly id: string;
  readonly status: SettlementStatus;
  readonly amount: string;
  readonly currency: string;
  readonly debtor: string;
  readonly creditor: string;
  readonly reference: string;
  readonly externalReference: string | null;
}

/** Which row is opened, and of which key. */
export interface Opening {
  readonly id: string;
  /** The record of the key. */
  readonly recordId: Uint8Array;
}

/** Writes the pending row; a later attempt under the same key uses the row of the earlier one, for what it asks for. */
export function* openSettlement({ id, recordId }: Opening, order: SettlementOrder): Unit<void> {
  const { owner, amount, currency, debtor, creditor, reference } = order;
  yield sql`INSERT INTO settlements (id, record_id, owner, status, amount, currency, debtor, creditor, reference)
    VALUES (${id}, ${recordId}, ${owner}, 'pending', ${amount}, ${currency}, ${debtor}, ${creditor}, ${reference})
    ON CONFLICT (id) DO UPDATE SET record_id = excluded.record_id, status = 'pending', amount = excluded.amount,
      currency = excluded.currency, debtor = excluded.debtor, creditor = excluded.creditor,
      reference = excluded.reference`;
}

/** Writes what the bank decided; hands back the settlement as it then stands. */
export function* concludeSettlement(id: string, { status, externalReference }: Decision): Unit<Settlement> {
  yield sql`UPDATE settlements SET status = ${status}, external_reference = ${externalReference} WHERE id = ${id}`;
  const [row] = yield settlements(sql`id = ${id}`);
  if (row === undefined) throw new Error(`The settlement ${id} is gone although its key is still in use.`);
  return settlementIn(row);
}

/** Writes that nothing happened. */
export function* abandonSettlement(id: string): Unit<void> {
  yield sql`UPDATE settlements SET status = 'abandoned' WHERE id = ${id} AND status = 'pending'`;
}

/** The caller's own settlement; anybody else's is as if it did not exist. */
export function* findSettlement({ id, owner }: Pick<Settlement, "id" | "owner">): Unit<Settlement | null> {
  const [row] = yield settlements(sql`id = ${id} AND owner = ${owner}`);
  return row === undefined ? null : settlementIn(row);
}

/** The caller's own settlements, the newest first, and of very many only the newest. */
export function* listSettlements(owner: string): Unit<readonly Settlement[]> {
  const rows = yield settlements(sql`owner = ${owner} ORDER BY number DESC LIMIT ${LONGEST_LIST}`);
  return rows.map(settlementIn);
}

export function viewOfSettlement(settlement: Settlement): SettlementView {
  const { id, status, amount, currency, debtor, creditor, reference, externalReference } = settlement;
  const written = formatAmount(amount, currency);
  return { id, status, amount: written, currency, debtor, creditor, reference, externalReference };
}

const LONGEST_LIST = 1_000n;

function settlements(where: Statement): Statement {
  return sql`SELECT id, owner, status, CAST(amount AS TEXT) AS amount, currency, debtor, creditor, reference,
    external_reference FROM settlements WHERE ${where}`;
}

function settlementIn(row: Row): Settlement {
  return {
    id: textIn(row, "id"),
    owner: textIn(row, "owner"),
    status: statusIn(row),
    amount: BigInt(textIn(row, "amount")),
    currency: currencyIn(row),
    debtor: textIn(row, "debtor"),
    creditor: textIn(row, "creditor"),
    reference: textIn(row, "reference"),
    externalReference: textOrNullIn(row, "external_reference"),
  };
}

function statusIn(row: Row): SettlementStatus {
  const status = textIn(row, "status");
  switch (status) {
    case "pending":
    case "settled":
    case "declined":
    case "abandoned":
      return status;
  }
  throw new TypeError(`A settlement has the status ${status}, which this release does not know.`);
}
