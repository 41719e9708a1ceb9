import { setTimeout as pause } from "node:timers/promises";

/** Rows of a ledger, as they came. */
export type Entries = readonly Readonly<Record<string, unknown>>[];

/** What one copy of an order was told. */
export type Told =
  | { readonly kind: "settled"; readonly text: string; readonly replayed: boolean }
  /** A truthful "not yet": the same key may ask again. */
  | { readonly kind: "not_yet"; readonly status: number; readonly code: string }
  /** The connection died before an answer was whole. */
  | { readonly kind: "cut" }
  | { readonly kind: "wrong"; readonly status: number; readonly text: string };

/** An order under one key, whatever becomes of it. */
export interface Ordered {
  readonly key: string;
  readonly amount: string;
}

/** Sends orders as a client does that has been told to keep its key. */
export interface Client {
  readonly send: (order: Ordered) => Promise<Told>;
  /** Sends again until there is an answer; tells each thing it is told on the way once. */
  readonly untilSettled: (order: Ordered, heard?: (told: Told) => void) => Promise<Told>;
}

export function createClient(urlOf: () => string): Client {
  const send = (order: Ordered) => sendOnce(urlOf(), order);
  return {
    send,
    untilSettled: async (order, heard = () => {}) => {
      const deadlineMs = performance.now() + PATIENCE_MS;
      let last = "";
      for (;;) {
        const told = await send(order);
        if (said(told) !== last) heard(told);
        last = said(told);
        if (told.kind === "settled" || told.kind === "wrong") return told;
        if (performance.now() > deadlineMs) return told;
        await pause(BETWEEN_MS);
      }
    },
  };
}

/** In words. */
export function said(told: Told): string {
  switch (told.kind) {
    case "settled":
      return told.replayed ? "201, the kept answer" : "201, settled";
    case "not_yet":
      return `${told.status} ${told.code}`;
    case "cut":
      return "no answer, the connection died";
    case "wrong":
      return `${told.status} ${told.text}`;
  }
}

const TOKEN = "demo-alice";

/** Even a busy machine has settled everything by then. */
const PATIENCE_MS = 90_000;
const BETWEEN_MS = 250;

const NOT_YET: ReadonlySet<unknown> = new Set([
  ...["in_progress", "outcome_unknown", "not_performed", "store_unavailable"],
]);

async function sendOnce(url: string, { key, amount }: Ordered): Promise<Told> {
  const order = { amount, currency: "EUR", debtor: "Alice", creditor: "Bert", reference: key };
  const headers = {
    ...{ authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    "idempotency-key": key,
  };
  const request = { method: "POST", headers, body: JSON.stringify(order) };
  try {
    const response = await fetch(`${url}/settlements`, request);
    const { status } = response;
    const text = await response.text();
    if (status === 201)
      return { kind: "settled", text, replayed: response.headers.has("idempotent-replayed") };
    const code: unknown = status >= 400 ? JSON.parse(text).code : null;
    if (typeof code === "string" && NOT_YET.has(code)) return { kind: "not_yet", status, code };
    return { kind: "wrong", status, text };
  } catch (error) {
    if (error instanceof TypeError) return { kind: "cut" }; // what fetch throws where the network failed
    throw error;
  }
}

/** The caller's settlements, as the service shows them. */
export async function settlementsAt(url: string): Promise<Entries> {
  const response = await fetch(`${url}/settlements`, { headers: { authorization: `Bearer ${TOKEN}` } });
  return entriesIn(await response.json());
}

/** The entries of a JSON array. */
export function entriesIn(body: unknown): Entries {
  if (!Array.isArray(body)) throw new Error(`A list was asked for, and this came: ${JSON.stringify(body)}`);
  return body;
}
