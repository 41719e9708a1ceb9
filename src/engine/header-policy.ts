import type { Answer } from "../core/record.ts";
import { ConfigurationError } from "../errors.ts";

/** Which headers of an answer are kept beside its body. */
export interface HeaderSettings {
  /** Kept although they are left out where nothing is said, such as `set-cookie`. */
  readonly keepHeaders?: readonly string[];
  readonly dropHeaders?: readonly string[];
}

/** True for a header that belongs to the answer and not to one exchange of it. */
export type HeaderPolicy = (header: Answer["headers"][number]) => boolean;

/** What only Oncekey says of an answer: a handler that sets one is not heard. */
export const RESERVED_HEADERS: readonly string[] = [
  "idempotent-replayed",
  "idempotency-expires",
  "idempotency-status",
];

export function headerPolicy({ keepHeaders = [], dropHeaders = [] }: HeaderSettings): HeaderPolicy {
  const kept = new Set(headerNames("keepHeaders", keepHeaders));
  const dropped = new Set([...NOT_KEPT, ...headerNames("dropHeaders", dropHeaders)]);
  for (const name of kept) {
    if (!NEVER_KEPT.has(name)) continue;
    const reason = `cannot have ${name}: it belongs to one exchange, and a replay makes its own`;
    throw new ConfigurationError("keepHeaders", reason);
  }
  return ([name]) => {
    const lower = name.toLowerCase();
    if (NEVER_KEPT.has(lower)) return false;
    if (kept.has(lower)) return true;
    return !dropped.has(lower) && !NOT_KEPT_PREFIXES.some((prefix) => lower.startsWith(prefix));
  };
}

/** Header names of a setting, in lower case; a name that no header can have is refused. */
export function headerNames(field: string, names: readonly string[]): readonly string[] {
  for (const name of names) {
    if (/^[!#$%&'*+\-.^_`|~0-9a-z]+$/i.test(name)) continue;
    throw new ConfigurationError(
      field,
      `must hold names of headers; ${JSON.stringify(name)} cannot be one (RFC 9110, 5.1)`,
    );
  }
  return names.map((name) => name.toLowerCase());
}

/** Hop-by-hop and framing (RFC 9110, 7.6.1; RFC 9112), and what we say of an answer ourselves. */
const NEVER_KEPT: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"],
  ...["content-length", ...RESERVED_HEADERS],
]);

/** Not kept unless asked for, because a replay is another exchange, with another session, clock and budget. */
const NOT_KEPT: readonly string[] = [
  // the session and the challenge of one caller
  ...["set-cookie", "www-authenticate", "proxy-authenticate"],
  ...["authentication-info", "proxy-authentication-info"],
  // the clock and the identity of one exchange
  ...["date", "age", "server-timing", "request-id", "x-request-id", "x-correlation-id"],
  ...["traceparent", "tracestate"],
  // budgets that have moved on
  ...["retry-after", "ratelimit", "ratelimit-policy"],
  ...["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"],
];

/** Made for one caller's origin or budget; the layer that made them makes them again. */
const NOT_KEPT_PREFIXES: readonly string[] = ["access-control-", "x-ratelimit-", "x-rate-limit-"];
