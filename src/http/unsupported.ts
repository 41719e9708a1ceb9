import { checkOperation } from "../core/key.ts";
import type { Engine } from "../engine/engine.ts";
import type { Settling } from "../engine/returned.ts";
import { type Exchange, type Header, isSafe, KEY_HEADER, STATUS_HEADER } from "./exchange.ts";
import { type Outgoing, replied } from "./outgoing.ts";
import { notSupported } from "./replies.ts";

/** What is to be done about a request where nothing protects it. */
export type Unsupported =
  /** Safe, without a key, or taken by a protected route already. */
  | { readonly kind: "pass" }
  /** Runs, and its answer says that its key counted for nothing. */
  | { readonly kind: "off"; readonly added: readonly Header[] }
  | { readonly kind: "refuse"; readonly outgoing: Outgoing };

/** Judges the requests of what stands without `protect`: a key that nobody heeds is never taken in silence. */
export function unsupportedOn<Tx, Settles extends Settling>({
  rejectUnsupported,
  context,
}: Engine<Tx, Settles>): (
  request: unknown,
  exchange: Pick<Exchange, "method" | "pattern" | "header">,
) => Unsupported {
  return (request, exchange) => {
    if (isSafe(exchange.method) || exchange.header(KEY_HEADER).length === 0 || isTaken(request)) return PASS;
    if (rejectUnsupported) return { kind: "refuse", outgoing: replied(notSupported()) };
    context.emit({ type: "request", operation: operationOf(exchange), outcome: "unprotected" });
    return OFF;
  };
}

const PASS: Unsupported = { kind: "pass" };
const OFF: Unsupported = { kind: "off", added: [[STATUS_HEADER, "off"]] };

/** Never by the path, which may hold keys and people. */
function operationOf({ method, pattern }: Pick<Exchange, "method" | "pattern">): string {
  const name = pattern === null ? method.toUpperCase() : `${method.toUpperCase()} ${pattern}`;
  return checkOperation(name).kind === "valid" ? name : method.toUpperCase();
}

/** Requests that a protected route has taken, by what their host hands to handlers. */
const TAKEN = new WeakSet<object>();

export function take(request: unknown): void {
  if (typeof request === "object" && request !== null) TAKEN.add(request);
}

function isTaken(request: unknown): boolean {
  return typeof request === "object" && request !== null && TAKEN.has(request);
}
