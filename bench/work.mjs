import { createHash, randomUUID } from "node:crypto";

/** What every flow does for a call, so that none does less than another: one row for the effect, and this answer. */
export const NOTE = "a transfer, as long as such a row tends to be: from DE02 1203 0000 0000 2020 51";

/** What a call is about; the naive flow digests it, as a guard against a key used twice needs. */
const INPUT = {
  amount: "100.00",
  currency: "EUR",
  debtor: "DE01",
  creditor: "DE02",
  reference: "order 7",
};

export function answerOf(row) {
  return {
    id: Number(row),
    status: "booked",
    amount: INPUT.amount,
    currency: INPUT.currency,
    at: 1_800_000_000_000,
  };
}

/** Keys are as random as those of clients: they meet the index everywhere. */
export function newKey() {
  return randomUUID();
}

/** A request of the engine under a key. */
export function requestOf(key) {
  return { operation: "transfer", principal: PRINCIPAL, key, input: INPUT };
}

/** The record of the naive flow: what is known when it is claimed, and when it is completed. */
export function naiveClaim(key) {
  return [
    PRINCIPAL,
    key,
    "POST /transfers",
    createHash("sha256").update(JSON.stringify(INPUT)).digest("hex"),
  ];
}

export function naiveCompletion(answer) {
  return [201, JSON.stringify({ "content-type": "application/json" }), JSON.stringify(answer)];
}

/** The number of calls that prepare something, and belong to no round. */
export const PREPARING = 0;

const PRINCIPAL = "acct_7f3c19";
