import type { Settling } from "oncekey";
import { type AnswerInit, type Engine, type Operation, operation } from "oncekey";
import type { BankClient } from "./bank-client.ts";
import type { Database } from "./database/database.ts";
import type { Unit } from "./database/statement.ts";
import { formatAmount } from "./domain/money.ts";
import {
  abandonSettlement,
  concludeSettlement,
  type Decision,
  type Opening,
  openSettlement,
  type SettlementOrder,
  viewOfSettlement,
} from "./domain/settlement.ts";

/** What the operation works with. */
export interface SettlingParts<Tx, Settles extends Settling> {
  readonly engine: Engine<Tx, Settles>;
  readonly database: Database<Tx, Settles>;
  readonly bank: BankClient;
  readonly newId: () => string;
}

/** Settles an order at the bank, once per key: a pending row, the bank's decision, and the answer that tells it. */
export function settlingOperation<Tx, Settles extends Settling>({
  engine,
  database: { within },
  bank,
  newId,
}: SettlingParts<Tx, Settles>): Operation<SettlementOrder> {
  return operation<Tx, Settles, SettlementOrder, Reference, Decision>(engine, {
    name: "POST /settlements",
    provider: "keyed",
    open: (tx, { input, reference, attempt: { recordId } }) =>
      within(tx, opened({ id: reference?.settlement ?? newId(), recordId }, input)),
    perform: ({ input, attempt }) => bank.pay(paymentOf(input), attempt.downstreamKey, attempt.signal),
    finish: (tx, { reference, result }) => within(tx, concluded(reference.settlement, result)),
    look: ({ attempt }) => bank.find(attempt.downstreamKey),
    cancel: ({ attempt }) => bank.cancel(attempt.downstreamKey),
    abandon: (tx, { reference }) => within(tx, abandonSettlement(reference.settlement)),
  });
}

interface Reference {
  readonly settlement: string;
}

function* opened(opening: Opening, order: SettlementOrder): Unit<Reference> {
  yield* openSettlement(opening, order);
  return { settlement: opening.id };
}

function* concluded(id: string, decision: Decision): Unit<AnswerInit> {
  const json = viewOfSettlement(yield* concludeSettlement(id, decision));
  switch (decision.status) {
    case "settled":
      return { status: 201, headers: { location: `/settlements/${id}` }, json };
    case "declined":
      return { status: 402, json };
  }
}

function paymentOf({ amount, currency, debtor, creditor, reference }: SettlementOrder) {
  return { amount: formatAmount(amount, currency), currency, debtor, creditor, reference };
}
