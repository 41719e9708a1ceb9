import type { Hono } from "hono";
import type { AnswerInit, Settling } from "oncekey";
import { protect } from "oncekey/hono";
import type { Unit } from "../database/statement.ts";
import {
  findTransfer,
  makeTransfer,
  type Transfer,
  type TransferOrder,
  viewOfTransfer,
} from "../domain/transfer.ts";
import type { AppParts } from "./app.ts";
import { principalOf } from "./authentication.ts";
import { jsonBody, type Reading } from "./body.ts";
import { amountField, currencyField, invalid, membersOf, problemsOf, textField, valid } from "./fields.ts";
import { problemAnswer } from "./problem.ts";
import { type Own, shown } from "./shown.ts";

/** `POST /transfers` makes one, `GET /transfers/:id` shows it to whoever made it. */
export function mountTransfers<Tx, Settles extends Settling>(
  app: Hono,
  { engine, database, newId }: AppParts<Tx, Settles>,
): void {
  const body = jsonBody(readTransfer);
  app.post(
    "/transfers",
    body.checked,
    protect(engine, { principal: principalOf, effects: "transaction" }, (c, { transaction }) => {
      const transfer = { ...body.of(c), id: newId(), owner: principalOf(c) };
      return transaction((tx) => database.within(tx, answered(transfer)));
    }),
  );
  const find = (own: Own) => database.read(findTransfer(own));
  app.get("/transfers/:id", shown({ what: "transfer", find, view: viewOfTransfer }));
}

function* answered(transfer: Transfer): Unit<AnswerInit> {
  const made = yield* makeTransfer(transfer);
  switch (made.kind) {
    case "made":
      return {
        status: 201,
        headers: { location: `/transfers/${transfer.id}` },
        json: viewOfTransfer(transfer),
      };
    case "refused": {
      const { code, field, detail } = made;
      const title = "The transfer was refused";
      return problemAnswer({
        status: 422,
        code,
        title,
        detail: `${field} ${detail}.`,
        fields: [{ field, detail }],
      });
    }
  }
}

function readTransfer(body: unknown): Reading<TransferOrder> {
  const members = membersOf(body);
  if (members.kind === "invalid") return members;
  const from = textField(members.value, "from");
  const to = textField(members.value, "to");
  const currency = currencyField(members.value, "currency");
  const amount = amountField(members.value, "amount", { currency, zero: "refused" });
  if (
    from.kind === "invalid" ||
    to.kind === "invalid" ||
    amount.kind === "invalid" ||
    currency.kind === "invalid"
  ) {
    return problemsOf(from, to, amount, currency);
  }
  if (from.value === to.value) return invalid("to", "must be another account than from");
  return valid({ from: from.value, to: to.value, amount: amount.value, currency: currency.value });
}
