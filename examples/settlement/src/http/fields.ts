import { type AmountReading, type Currency, isCurrency, parseAmount } from "../domain/money.ts";
import type { Reading } from "./body.ts";
import type { FieldProblem } from "./problem.ts";

/** The members of a JSON object; those that nobody asks for are left alone. */
export type Members = ReadonlyMap<string, unknown>;

export function membersOf(body: unknown): Reading<Members> {
  if (typeof body === "object" && body !== null && !Array.isArray(body)) {
    return valid(new Map<string, unknown>(Object.entries(body)));
  }
  return invalid("body", "must be a JSON object");
}

/** A text that any database, and the bank, gives back as it was. */
export function textField(
  members: Members,
  field: string,
  { least = 1 }: { readonly least?: 0 | 1 } = {},
): Reading<string> {
  const value = members.get(field);
  if (typeof value !== "string") return invalid(field, "must be a string");
  if (value.length >= least && value.length <= LONGEST_TEXT && PLAIN.test(value)) return valid(value);
  return invalid(field, `must have ${least} to ${LONGEST_TEXT} characters, none of them a control character`);
}

export function currencyField(members: Members, field: string): Reading<Currency> {
  const value = members.get(field);
  if (typeof value !== "string") return invalid(field, "must be a string");
  return isCurrency(value) ? valid(value) : invalid(field, 'must be a currency of ISO 4217 such as "EUR"');
}

/** An amount in minor units; it cannot be judged before the currency is known. */
export function amountField(
  members: Members,
  field: string,
  { currency, zero }: { readonly currency: Reading<Currency>; readonly zero: "refused" | "welcome" },
): Reading<bigint> {
  const value = members.get(field);
  if (typeof value !== "string") return invalid(field, 'must be a string such as "12.50", not a number');
  if (currency.kind === "invalid") return { kind: "invalid", problems: [] };
  const amount: AmountReading = parseAmount(value, currency.value, { zero });
  return amount.kind === "amount" ? valid(amount.minorUnits) : invalid(field, amount.reason);
}

/** What is wrong with any of the fields, in the order in which they are given. */
export function problemsOf(
  ...readings: readonly Reading<unknown>[]
): Extract<Reading<never>, { kind: "invalid" }> {
  const problems = readings.flatMap((reading) => (reading.kind === "invalid" ? reading.problems : []));
  return { kind: "invalid", problems };
}

export function valid<Value>(value: Value): Extract<Reading<Value>, { kind: "valid" }> {
  return { kind: "valid", value };
}

export function invalid(field: string, detail: string): Extract<Reading<never>, { kind: "invalid" }> {
  const problems: readonly FieldProblem[] = [{ field, detail }];
  return { kind: "invalid", problems };
}

const LONGEST_TEXT = 255;

/** Neither controls nor halves of a surrogate pair, which no encoding of a database can hold. */
const PLAIN = /^[^\p{Cc}\p{Cs}]*$/u;
