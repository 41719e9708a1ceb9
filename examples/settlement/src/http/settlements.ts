import type { Context, Hono } from "hono";
import type { Settling } from "oncekey";
import { protect } from "oncekey/hono";
import {
  findSettlement,
  listSettlements,
  type SettlementOrder,
  viewOfSettlement,
} from "../domain/settlement.ts";
import type { AppParts } from "./app.ts";
import { principalOf } from "./authentication.ts";
import { jsonBody, type Reading } from "./body.ts";
import { amountField, currencyField, membersOf, problemsOf, textField, valid } from "./fields.ts";
import { type Own, shown } from "./shown.ts";

/** `POST /settlements` settles at the bank; `GET /settlements`, with or without an id, shows the caller's own. */
export function mountSettlements<Tx, Settles extends Settling>(
  app: Hono,
  { engine, database, settling }: AppParts<Tx, Settles>,
): void {
  const body = jsonBody(readOrder);
  app.post(
    "/settlements",
    body.checked,
    protect(
      engine,
      { principal: principalOf },
      settling.route((c: Context) => ({ ...body.of(c), owner: principalOf(c) })),
    ),
  );
  app.get("/settlements", async (c) => {
    const settlements = await database.read(listSettlements(principalOf(c)));
    return c.json(settlements.map(viewOfSettlement));
  });
  const find = (own: Own) => database.read(findSettlement(own));
  app.get("/settlements/:id", shown({ what: "settlement", find, view: viewOfSettlement }));
}

function readOrder(body: unknown): Reading<Omit<SettlementOrder, "owner">> {
  const members = membersOf(body);
  if (members.kind === "invalid") return members;
  const currency = currencyField(members.value, "currency");
  const amount = amountField(members.value, "amount", { currency, zero: "refused" });
  const debtor = textField(members.value, "debtor");
  const creditor = textField(members.value, "creditor");
  const reference = textField(members.value, "reference", { least: 0 });
  if (
    amount.kind === "invalid" ||
    currency.kind === "invalid" ||
    debtor.kind === "invalid" ||
    creditor.kind === "invalid" ||
    reference.kind === "invalid"
  ) {
    return problemsOf(amount, currency, debtor, creditor, reference);
  }
  return valid({
    amount: amount.value,
    currency: currency.value,
    debtor: debtor.value,
    creditor: creditor.value,
    reference: reference.value,
  });
}
