import type { Answer } from "../core/record.ts";
import { OncekeyError } from "../errors.ts";

/** An answer as a programmer writes it; `json` and `body` exclude each other. */
export interface AnswerInit {
  /** 200 where nothing is said. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly json?: unknown;
  readonly body?: string | Uint8Array | null;
}

/** The bytes that will be kept and sent. */
export function toAnswer(init: AnswerInit): Answer {
  const { status = 200, headers = {}, json, body } = init;
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new OncekeyError(
      "value_unsupported",
      `An answer's status must be a whole number from 200 to 599; got ${status}.`,
    );
  }
  refuseOtherBody(body);
  const listed = Object.entries(headers).flatMap(([name, values]) =>
    (typeof values === "string" ? [values] : values).map((value) => [name.toLowerCase(), value] as const),
  );
  for (const header of listed) refuseUnsendable(header);
  if (json === undefined) return { status, headers: listed, body: bytesOf(body ?? "") };
  const text = JSON.stringify(json);
  const typed = listed.some(([name]) => name === "content-type");
  return {
    status,
    headers: typed ? listed : [["content-type", "application/json"], ...listed],
    body: bytesOf(text),
  };
}

/** Reachable from plain JavaScript, and by an answer that was thrown. */
function refuseOtherBody(body: unknown): void {
  if (body === undefined || body === null || typeof body === "string" || body instanceof Uint8Array) return;
  const message = `An answer's body must be text, bytes or nothing, got ${typeof body}: hand in another value as json.`;
  throw new OncekeyError("value_unsupported", message);
}

/** Before it is kept: a replay could not be sent either, for as long as the record stands. */
function refuseUnsendable([name, value]: readonly [name: string, value: string]): void {
  if (/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return;
  const message = `The header ${JSON.stringify(name)} of an answer cannot be sent: its name must be a token, its value Latin-1 without control characters.`;
  throw new OncekeyError("value_unsupported", message);
}

function bytesOf(body: string | Uint8Array): Uint8Array {
  return typeof body === "string" ? new TextEncoder().encode(body) : body;
}
