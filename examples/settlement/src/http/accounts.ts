import type { Hono } from "hono";
import type { AnswerInit, Settling } from "oncekey";
import { protect } from "oncekey/hono";
import type { Unit } from "../database/statement.ts";
import { type Account, findAccount, openAccount, viewOfAccount } from "../domain/account.ts";
import type { AppParts } from "./app.ts";
import { principalOf } from "./authentication.ts";
import { jsonBody, type Reading } from "./body.ts";
import { amountField, currencyField, membersOf, problemsOf, valid } from "./fields.ts";
import { type Own, shown } from "./shown.ts";

/** `POST /accounts` opens one, `GET /accounts/:id` shows it to its owner. */
export function mountAccounts<Tx, Settles extends Settling>(
  app: Hono,
  { engine, database, newId }: AppParts<Tx, Settles>,
): void {
  const body = jsonBody(readAccount);
  app.post(
    "/accounts",
    body.checked,
    protect(engine, { principal: principalOf, effects: "transaction" }, (c, { transaction }) => {
      const account = { ...body.of(c), id: newId(), owner: principalOf(c) };
      return transaction((tx) => database.within(tx, answered(account)));
    }),
  );
  const find = (own: Own) => database.read(findAccount(own));
  app.get("/accounts/:id", shown({ what: "account", find, view: viewOfAccount }));
}

function* answered(account: Account): Unit<AnswerInit> {
  yield* openAccount(account);
  return { status: 201, headers: { location: `/accounts/${account.id}` }, json: viewOfAccount(account) };
}

function readAccount(body: unknown): Reading<Pick<Account, "currency" | "balance">> {
  const members = membersOf(body);
  if (members.kind === "invalid") return members;
  const currency = currencyField(members.value, "currency");
  const balance = amountField(members.value, "balance", { currency, zero: "welcome" });
  if (currency.kind === "invalid" || balance.kind === "invalid") return problemsOf(currency, balance);
  return valid({ currency: currency.value, balance: balance.value });
}
