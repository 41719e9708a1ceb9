import { type Cancelled, NotPerformed, type Sighted } from "oncekey";
import type { Decision } from "./domain/settlement.ts";

/** What the bank is asked to pay. */
export interface PaymentOrder {
  readonly amount: string;
  readonly currency: string;
  readonly debtor: string;
  readonly creditor: string;
  readonly reference: string;
}

/** The bank as the service needs it. A throw other than `NotPerformed` says nothing about what the bank did. */
export interface BankClient {
  /** Orders the payment; once per key, however often it is called. */
  readonly pay: (order: PaymentOrder, key: string, signal: AbortSignal) => Promise<Decision>;
  readonly find: (key: string) => Promise<Sighted<Decision>>;
  /** Makes sure that no payment under the key will ever be made, unless one was. */
  readonly cancel: (key: string) => Promise<Cancelled<Decision>>;
}

/** Talks to the bank at `url`, and waits for no answer longer than `timeoutMs`. */
export function createBankClient({
  url,
  timeoutMs,
}: {
  readonly url: string;
  readonly timeoutMs: number;
}): BankClient {
  const ask = (path: string, request: RequestInit = {}) => exchange(url + path, timeoutMs, request);
  return {
    pay: async (order, key, signal) => {
      const headers = { "content-type": "application/json", "idempotency-key": key };
      const request = { method: "POST", headers, body: JSON.stringify(order), signal };
      const answer = await performing(ask("/payments", request));
      if (isRefusal(answer)) throw new NotPerformed("The bank takes no payments just now.");
      return decisionIn(answer, [200, 201, 402]);
    },
    find: async (key) => {
      const answer = await ask(`/payments?key=${encodeURIComponent(key)}`);
      if (answer.status === 404 && answer.body["code"] === "payment_not_found") return { kind: "not_found" };
      return { kind: "found", result: decisionIn(answer, [200]) };
    },
    cancel: async (key) => {
      const headers = { "content-type": "application/json" };
      const answer = await ask("/payments/cancel", {
        method: "POST",
        headers,
        body: JSON.stringify({ key }),
      });
      if (answer.status === 200 && answer.body["status"] === "cancelled") return { kind: "cancelled" };
      return { kind: "found", result: decisionIn(answer, [409]) };
    },
  };
}

interface BankAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function exchange(url: string, timeoutMs: number, request: RequestInit): Promise<BankAnswer> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = request.signal ? AbortSignal.any([request.signal, timeout]) : timeout;
  const response = await fetch(url, { ...request, signal, redirect: "error" });
  const body: unknown = await response.json();
  if (!isObject(body))
    throw new Error(`The bank answered ${response.status} with something that is no object.`);
  return { status: response.status, body };
}

async function performing(answer: Promise<BankAnswer>): Promise<BankAnswer> {
  try {
    return await answer;
  } catch (error) {
    if (!nothingWasSent(error)) throw error;
    throw new NotPerformed("The bank could not be reached; nothing was sent to it.", { cause: error });
  }
}

/** True where no connection came about. A connection that broke may have carried the order. */
function nothingWasSent(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // Several addresses of one name fail together in one error.
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(nothingWasSent);
  if ("code" in error && error.code === "UND_ERR_CONNECT_TIMEOUT") return true;
  if ("syscall" in error && (error.syscall === "connect" || error.syscall === "getaddrinfo")) return true;
  return error.cause !== undefined && nothingWasSent(error.cause);
}

/** Other servers' 503 would say nothing about the effect; this one does. */
function isRefusal({ status, body }: BankAnswer): boolean {
  return status === 503 && body["code"] === "unavailable" && body["effect"] === "none";
}

/** Reads a payment off an answer whose HTTP status says that there is one in it. */
function decisionIn({ status, body }: BankAnswer, statuses: readonly number[]): Decision {
  const { id } = body;
  const decision = DECISIONS.get(body["status"]);
  if (decision !== undefined && typeof id === "string" && statuses.includes(status)) {
    return { status: decision, externalReference: id };
  }
  const code = typeof body["code"] === "string" ? ` (${body["code"]})` : "";
  throw new Error(`The bank answered ${status}${code}, which says nothing about the payment.`);
}

const DECISIONS: ReadonlyMap<unknown, Decision["status"]> = new Map([
  ["accepted", "settled"],
  ["declined", "declined"],
] as const);

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
