/** Which headers of an answer are kept beside its body. */
export interface HeaderSettings {
  /** Kept although the list below says otherwise. */
  readonly keepHeaders?: readonly string[];
  readonly dropHeaders?: readonly string[];
}

type Header = readonly [name: string, value: string];

/** True for a header that belongs to the answer and not to one exchange of it. */
export type HeaderPolicy = (header: Header) => boolean;

/** Never kept, because a replay is another exchange with another caller's connection, clock, session or budget. */
const NOT_KEPT: readonly string[] = [
  // hop-by-hop and framing (RFC 9110, 7.6.1; RFC 9112)
  ...[
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
  ],
  // the session and the challenge of one caller
  ...[
    "set-cookie",
    "www-authenticate",
    "proxy-authenticate",
    "authentication-info",
    "proxy-authentication-info",
  ],
  // the clock and the identity of one exchange
  ...[
    "date",
    "age",
    "server-timing",
    "request-id",
    "x-request-id",
    "x-correlation-id",
    "traceparent",
    "tracestate",
  ],
  // budgets that have moved on
  ...[
    "retry-after",
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
  ],
  // ours
  ...["idempotent-replayed", "idempotency-expires", "idempotency-status"],
];

/** Made for one caller's origin; the layer that made them makes them again. */
const NOT_KEPT_PREFIXES: readonly string[] = ["access-control-", "x-ratelimit-", "x-rate-limit-"];

export function headerPolicy({ keepHeaders = [], dropHeaders = [] }: HeaderSettings): HeaderPolicy {
  const kept = new Set(keepHeaders.map((name) => name.toLowerCase()));
  const dropped = new Set([...NOT_KEPT, ...dropHeaders.map((name) => name.toLowerCase())]);
  return ([name]) => {
    const lower = name.toLowerCase();
    if (kept.has(lower)) return true;
    return !dropped.has(lower) && !NOT_KEPT_PREFIXES.some((prefix) => lower.startsWith(prefix));
  };
}
