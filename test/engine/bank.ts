import { randomUUID } from "node:crypto";
import { following } from "../../src/engine/command.ts";
import type { Engine } from "../../src/engine/engine.ts";
import {
  type Operation,
  type OperationDefinition,
  type OperationRequest,
  operation,
} from "../../src/engine/operation.ts";
import { NotPerformed } from "../../src/errors.ts";
import type { Settling } from "../../src/stores/store.ts";
import { requestFor } from "./engines.ts";
import type { Sql } from "./stores.ts";

/** What the bank says of a payment. */
export interface Paid {
  readonly kind: "paid" | "declined";
  readonly number: number;
}

/** How the bank's next answers go. */
export type Mood =
  | "well"
  | "declines"
  /** Says that it did nothing. */
  | "refuses"
  /** Pays, and the answer is lost. */
  | "pays silently"
  /** Pays nothing, and the answer is lost. */
  | "loses requests"
  /** Answers nothing until `goOn`. */
  | "stalls";

/** A provider that deduplicates by key, can be asked and can cancel; it never pays one key twice, and counts. */
export interface Bank {
  readonly pay: (key: string) => Promise<Paid>;
  readonly look: (
    key: string,
  ) => Promise<{ readonly kind: "found"; readonly result: Paid } | { readonly kind: "not_found" }>;
  readonly cancel: (
    key: string,
  ) => Promise<{ readonly kind: "found"; readonly result: Paid } | { readonly kind: "cancelled" }>;
  readonly setMood: (mood: Mood) => void;
  readonly setDown: (down: "down" | "up") => void;
  /** Lets a stalled call go on. */
  readonly goOn: () => void;
  /** The keys that it was asked to pay, in order. */
  readonly asked: readonly string[];
  /** What it really paid. */
  readonly paid: ReadonlyMap<string, Paid>;
  readonly looks: () => number;
}

export function openBank(): Bank {
  const paid = new Map<string, Paid>();
  const cancelled = new Set<string>();
  const asked: string[] = [];
  let mood: Mood = "well";
  let down = false;
  let looks = 0;
  let goOn = () => {};
  const gate = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const book = (key: string, kind: Paid["kind"]): Paid => {
    if (cancelled.has(key)) throw new Error("The bank refuses a cancelled key.");
    const payment = paid.get(key) ?? { kind, number: paid.size + 1 };
    if (kind === "paid") paid.set(key, payment);
    return payment;
  };
  const reached = () => {
    looks += 1;
    if (down) throw new Error("The bank is down.");
  };
  return {
    ...{ asked, paid, looks: () => looks, goOn: () => goOn() },
    setMood: (next) => {
      mood = next;
    },
    setDown: (state) => {
      down = state === "down";
    },
    pay: async (key) => {
      asked.push(key);
      switch (mood) {
        case "well":
          return book(key, "paid");
        case "declines":
          return book(key, "declined");
        case "refuses":
          throw new NotPerformed("The bank did nothing.");
        case "pays silently":
          book(key, "paid");
          throw new Error("The line went dead.");
        case "loses requests":
          throw new Error("The line went dead.");
        case "stalls":
          await gate;
          return book(key, "paid");
      }
    },
    look: async (key) => {
      reached();
      const result = paid.get(key);
      return result === undefined ? { kind: "not_found" } : { kind: "found", result };
    },
    cancel: async (key) => {
      reached();
      const result = paid.get(key);
      if (result !== undefined) return { kind: "found", result };
      cancelled.add(key);
      return { kind: "cancelled" };
    },
  };
}

export interface Order {
  readonly key: string;
}

export interface Reference {
  readonly id: string;
  readonly key: string;
}

type Definition<Tx> = OperationDefinition<Tx, Settling, Order, Reference, Paid>;

/** A payment with a row of its own: pending, then paid, declined or abandoned. */
export function payment<Tx>({ put }: Pick<Sql<Tx>, "put">, bank: Bank): Definition<Tx> {
  return {
    name: "pay",
    provider: "keyed",
    open: (tx, { input, reference }) => {
      const row = reference ?? { id: randomUUID(), key: input.key };
      return following(put(tx, { ...row, state: "pending" }), () => row);
    },
    perform: ({ attempt }) => bank.pay(attempt.downstreamKey),
    finish: (tx, { reference, result }) =>
      following(put(tx, { ...reference, state: result.kind }), () => ({
        status: result.kind === "paid" ? 201 : 402,
        json: { number: result.number },
      })),
    look: ({ attempt }) => bank.look(attempt.downstreamKey),
    cancel: ({ attempt }) => bank.cancel(attempt.downstreamKey),
    abandon: (tx, { reference }) => put(tx, { ...reference, state: "abandoned" }),
  };
}

export interface Paying<Tx> {
  readonly operation: Operation<Order>;
  readonly pay: (request: OperationRequest) => ReturnType<Operation<Order>["execute"]>;
  readonly definition: Definition<Tx>;
}

/** Makes the payment known to an engine, changed where a test says so; the bank of a kind offers what its kind does. */
export function paying<Tx>(
  engine: Engine<Tx, Settling>,
  sql: Pick<Sql<Tx>, "put">,
  bank: Bank,
  changed: Partial<Definition<Tx>> = {},
): Paying<Tx> {
  const whole = payment(sql, bank);
  const { look: _look, ...unseen } = whole;
  const { cancel: _cancel, ...queried } = whole;
  const { cancel: _none, ...silent } = unseen;
  const offered = { keyed: whole, query: queried, repeatable: silent, blind: silent };
  const definition: Definition<Tx> = { ...offered[changed.provider ?? "keyed"], ...changed };
  const made = operation(engine, definition);
  const pay = (request: OperationRequest) => made.execute(request, { key: request.identity.key });
  return { operation: made, pay, definition };
}

export function order(
  key: string,
  rest: Parameters<typeof requestFor>[1] = {},
): ReturnType<typeof requestFor> {
  return requestFor(key, { operation: "pay", effects: "declared", ...rest });
}
