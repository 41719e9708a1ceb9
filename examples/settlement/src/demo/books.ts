import type { Entries, Ordered } from "./client.ts";

/** What was ordered, what the service says it settled, and what the bank says it paid. */
export interface Books {
  readonly ordered: readonly Ordered[];
  readonly settlements: Entries;
  readonly payments: Entries;
}

/** A sentence for everything that is not as if each order had been sent once and paid once. */
export function differencesIn({ ordered, settlements, payments }: Books): readonly string[] {
  const keys = new Set(ordered.map(({ key }) => key));
  const strays = [...settlements, ...payments].filter(({ reference }) => !keys.has(String(reference)));
  return [
    ...ordered.flatMap((order) => differencesOf(order, { settlements, payments })),
    ...strays.map(({ id, reference }) => `${id}, for ${reference}, was ordered by nobody`),
  ];
}

function differencesOf({ key, amount }: Ordered, books: Omit<Books, "ordered">): readonly string[] {
  const settled = books.settlements.filter(({ reference }) => reference === key);
  const paid = books.payments.filter(({ reference }) => reference === key);
  if (settled.length !== 1) return [`${key} has ${settled.length} settlements`];
  if (paid.length !== 1) return [`${key} was paid ${paid.length} times`];
  const [[settlement], [payment]] = [settled, paid];
  if (settlement?.["status"] !== "settled")
    return [`${key} is ${settlement?.["status"]}, and the bank has paid it`];
  if (settlement["externalReference"] !== payment?.["id"])
    return [`${key} names another payment than the bank's`];
  const amounts = [settlement["amount"], payment?.["amount"]];
  return amounts.every((each) => each === amount) ? [] : [`${key} was for ${amount}, and became ${amounts}`];
}
