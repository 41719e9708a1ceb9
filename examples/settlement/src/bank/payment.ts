import { type Member, type Reading, readObject } from "./reading.ts";

/** What a client asks the bank to do. */
export interface Order {
  readonly amount: string;
  readonly currency: string;
  readonly debtor: string;
  readonly creditor: string;
  readonly reference: string;
}

/** What the bank decided under a key, for ever: the money has moved, or it never will. */
export interface Payment extends Order {
  readonly id: string;
  readonly status: "accepted" | "declined";
  readonly key: string;
  readonly createdAt: string;
}

/** Reads an order from the body of a request. */
export function readOrder(body: unknown): Reading<Order> {
  return readObject<Order>(body, {
    amount: matching(
      /^(?=.*[1-9])(?:0|[1-9]\d{0,14})(?:\.\d{1,3})?$/,
      'must be a decimal string above zero, such as "12.50"',
    ),
    currency: matching(/^[A-Z]{3}$/, 'must be three capital letters, such as "EUR"'),
    debtor: textOf({ least: 1 }),
    creditor: textOf({ least: 1 }),
    reference: textOf({ least: 0 }),
  });
}

/** Reads the body of a cancellation. */
export function readCancellation(body: unknown): Reading<{ readonly key: string }> {
  return readObject<{ readonly key: string }>(body, { key });
}

/** Reads an idempotency key from the field that carries it. */
export function readKey(value: string | undefined, field: string): Reading<string> {
  return value !== undefined && key.accepts(value)
    ? { kind: "valid", value }
    : { kind: "invalid", problems: [{ field, detail: key.expected }] };
}

/** Says whether two orders ask for the same thing: every member is the same text. */
export function isSameOrder(one: Order, other: Order): boolean {
  return (
    one.amount === other.amount &&
    one.currency === other.currency &&
    one.debtor === other.debtor &&
    one.creditor === other.creditor &&
    one.reference === other.reference
  );
}

// Neither quotes nor commas: a key sent quoted and asked for bare would be two keys, and two payments.
const key: Member = matching(
  /^[!#-+\--~]{1,255}$/,
  "must be one key of 1 to 255 visible ASCII characters, without quotes and commas",
);

// Control characters and lone surrogates do not survive SQLite's text: a repeat would look like another order.
function textOf({ least }: { readonly least: number }): Member {
  return matching(
    new RegExp(`^[^\\p{Cc}\\p{Cs}]{${least},255}$`, "u"),
    `must be a text of ${least} to 255 characters, none of them a control character`,
  );
}

function matching(pattern: RegExp, expected: string): Member {
  return { accepts: (value) => typeof value === "string" && pattern.test(value), expected };
}
