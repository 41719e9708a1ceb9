import type { Answer } from "../core/record.ts";
import { type HeaderPolicy, RESERVED_HEADERS } from "../engine/header-policy.ts";
import { identityOf } from "./coding.ts";
import type { Header, Reply } from "./exchange.ts";

/** An answer on its way out, whatever its host makes of it: its head, and its body as it comes. */
export interface Outgoing {
  /** Whose word it is. The handler's own goes out in the way in which the handler gave it. */
  readonly from: "handler" | "guard";
  readonly status: number;
  /** Empty where nothing is said beyond the status. */
  readonly statusText: string;
  /** One entry for each line that belongs to this answer. */
  readonly headers: readonly Header[];
  readonly body: Uint8Array | ReadableStream<Uint8Array> | null;
  /** Headers of ours, in the place of any of the same names. */
  readonly added: readonly Header[];
  /** Made while the handler ran by something else, as far as can be told: a timeout layer, say. */
  readonly foreign?: boolean;
}

/** An answer that its host makes, or has made, in its own way: nothing is left to send. */
export const SENT: Outgoing = {
  from: "handler",
  status: 0,
  statusText: "",
  headers: [],
  body: null,
  added: [],
};

/** What the guard says itself. */
export function replied({ status, headers, body }: Reply): Outgoing {
  return { from: "guard", status, statusText: "", headers, body, added: [] };
}

/** What of an answer is kept, without any compression; a `null` body says that it was too long. */
export async function keptAnswer(
  { status, headers }: Outgoing,
  body: Uint8Array | null,
  { keeps, keepsBody, maxResponseBytes }: Keeping & { readonly maxResponseBytes: number },
): Promise<Answer> {
  const lines = headers.map(([name, value]): Header => [name.toLowerCase(), value]).filter(keeps);
  if (!keepsBody || body === null || body.length > maxResponseBytes)
    return { status, headers: lines, body: null };
  return { status, ...(await identityOf(lines, body, maxResponseBytes)) };
}

/** What of its answers a route keeps. */
export interface Keeping {
  readonly keeps: HeaderPolicy;
  readonly keepsBody: boolean;
}

/** The same of an answer whose body is there, and is no longer than any may be. */
export function keptPart(answer: Answer, { keeps, keepsBody }: Keeping): Answer {
  const { status, headers, body } = answer;
  return { status, headers: headers.filter(keeps), body: keepsBody ? body : null };
}

/** What the headers promise, so that the last byte can be told; `null` where they do not. */
export function lengthOf({ headers }: Outgoing): number | null {
  const length = lineOf(headers, "content-length");
  return length !== undefined && /^\d+$/.test(length) ? Number(length) : null;
}

/** A stream without an end of its own: nobody could keep it, and nobody may wait for it. */
export function isEventStream({ headers }: Outgoing): boolean {
  return /^text\/event-stream\s*(;|$)/i.test(lineOf(headers, "content-type") ?? "");
}

/** HTTP has neither a body nor a length on these: 304 could only say the length of another answer. */
export function isBodyless(status: number): boolean {
  return status === 204 || status === 304;
}

export function isReserved(name: string): boolean {
  return RESERVED_HEADERS.includes(name.toLowerCase());
}

function lineOf(headers: readonly Header[], name: string): string | undefined {
  return headers.find(([each]) => each.toLowerCase() === name)?.[1];
}
