import { randomUUID } from "node:crypto";

/** What came back. */
export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  /** Exactly as it came. */
  readonly text: string;
  /** The members of a JSON object; none where there is no such body. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Call {
  /** Alice's where nothing is said; none for `null`. */
  readonly token?: string | null;
  /** A fresh one for POST where nothing is said; none for `null`. */
  readonly key?: string | null;
  /** Text and bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown;
}

/** Sends one request, such as `POST /settlements`, as Alice and with a fresh key where nothing else is said. */
export async function call(
  url: string,
  endpoint: string,
  { token = "demo-alice", key = randomUUID(), body }: Call = {},
): Promise<Answered> {
  const [method = "", path = ""] = endpoint.split(" ");
  const headers = {
    ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
    ...(key === null || method !== "POST" ? {} : { "Idempotency-Key": key }),
    ...(body === undefined ? {} : { "Content-Type": "application/json" }),
  };
  const response = await fetch(url + path, { method, headers, body: sendable(body) });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: membersOf(text) };
}

/** What Alice asks to be settled where a test does not care. */
export const order = {
  amount: "12.50",
  currency: "EUR",
  debtor: "Alice",
  creditor: "Bert",
  reference: "invoice 7",
};

export const settle = (url: string, given: Call = {}) =>
  call(url, "POST /settlements", { body: order, ...given });

/** Somebody whom no other test is. */
export interface Caller {
  readonly principal: string;
  readonly token: string;
  /** An order that the bank's ledger shows to be this caller's. */
  readonly order: typeof order;
  readonly call: (url: string, endpoint: string, given?: Call) => Promise<Answered>;
  readonly settle: (url: string, given?: Call) => Promise<Answered>;
  /** The payments that the bank really made for this caller. */
  readonly payments: (bankUrl: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;
}

/** The tokens of all that `newCaller` can be, for the service's environment. */
export const CALLERS: { readonly TOKENS: string } = {
  TOKENS: [
    "demo-alice=alice",
    ...Array.from({ length: 60 }, (_, index) => `token-${index}=caller-${index}`),
  ].join(),
};

let callers = 0;

export function newCaller(): Caller {
  const [principal, token] = [`caller-${callers}`, `token-${callers}`];
  callers += 1;
  const own = { ...order, debtor: principal };
  return {
    ...{ principal, token, order: own },
    call: (url, endpoint, given) => call(url, endpoint, { token, ...given }),
    settle: (url, given) => settle(url, { token, body: own, ...given }),
    payments: async (bankUrl) => (await ledger(bankUrl)).filter(({ debtor }) => debtor === principal),
  };
}

/** Tells the bank how to misbehave from now on. */
export async function setFaults(bankUrl: string, faults: Readonly<Record<string, unknown>>): Promise<void> {
  const { status } = await call(bankUrl, "PUT /faults", { body: faults });
  if (status !== 200) throw new Error(`The bank refused the faults with ${status}.`);
}

/** Every payment that the bank really made. */
export async function ledger(bankUrl: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { text } = await call(bankUrl, "GET /ledger");
  const payments: unknown = JSON.parse(text);
  return Array.isArray(payments) ? payments : [];
}

function sendable(body: unknown): string | Uint8Array<ArrayBuffer> | null {
  if (body === undefined) return null;
  if (body instanceof Uint8Array) return new Uint8Array(body);
  return typeof body === "string" ? body : JSON.stringify(body);
}

function membersOf(text: string): Readonly<Record<string, unknown>> {
  if (!text.startsWith("{")) return {};
  const value: unknown = JSON.parse(text);
  return typeof value === "object" && value !== null ? { ...value } : {};
}
