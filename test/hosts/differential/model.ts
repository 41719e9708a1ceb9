import { gunzipSync } from "node:zlib";
import { MOST_KEPT_BYTES } from "./drawing.ts";
import type { RawAnswer } from "./raw.ts";
import { failureOf, type Script } from "./script.ts";

/** What has to become of a handler's key, and so what a copy of its request is owed. */
export type Outcome =
  /** The same answer again. */
  | "kept"
  /** That it is finished, its status, and that its answer was not kept. */
  | "not stored"
  /** One of these two: an event stream that has ended in one piece is an answer like others. */
  | "kept or not stored"
  /** Another run. */
  | "released"
  /** That nobody knows. */
  | "unknown";

/** The default table for handlers that declare no effects, written down apart from the code that it judges. */
export function outcomeOf(
  script: Script,
  bare: RawAnswer | null,
  { hearsThrows }: { readonly hearsThrows: boolean },
): Outcome {
  const failed = failureOf(script);
  if (failed?.begun === true || bare === null) return "unknown";
  if (!hearsThrows) return byStatus(bare);
  switch (failed?.failure.kind) {
    case "not_performed":
      return "released";
    case "outcome_unknown":
    case "none":
      return "unknown";
    case "permanent":
      return "kept";
    case "status":
    case undefined:
      return byStatus(bare);
  }
}

function byStatus(answer: RawAnswer): Outcome {
  if ([401, 403, 425, 429, 503].includes(answer.status)) return "released";
  if (answer.status === 408 || answer.status >= 500) return "unknown";
  if (valuesOf(answer, "content-type").some((type) => type.startsWith("text/event-stream")))
    return "kept or not stored";
  const plain = identityOf(answer);
  const tooLong = answer.body.length > MOST_KEPT_BYTES || (plain?.length ?? 0) > MOST_KEPT_BYTES;
  return plain === null || tooLong ? "not stored" : "kept";
}

/** The body without its compression, as it is kept; `null` where it cannot be undone. */
export function identityOf(answer: RawAnswer): Buffer | null {
  const codings = valuesOf(answer, "content-encoding");
  if (codings.length === 0 || answer.body.length === 0) return answer.body;
  try {
    return codings.reduce((body) => gunzipSync(body), answer.body);
  } catch {
    return null;
  }
}

/** Whether a header belongs to one exchange and not to the answer: what no replay says again. */
export function isVolatile(name: string): boolean {
  const lower = name.toLowerCase();
  return VOLATILE.has(lower) || VOLATILE_PREFIXES.some((prefix) => lower.startsWith(prefix));
}

/** What only we say of an answer. */
export const OURS: ReadonlySet<string> = new Set([
  ...["idempotent-replayed", "idempotency-expires", "idempotency-status"],
]);

const VOLATILE: ReadonlySet<string> = new Set([
  ...["set-cookie", "date", "age", "server-timing", "www-authenticate", "proxy-authenticate"],
  ...["authentication-info", "proxy-authentication-info", "x-request-id", "request-id", "x-correlation-id"],
  ...["traceparent", "tracestate", "retry-after", "ratelimit", "ratelimit-policy"],
  ...["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"],
  ...["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"],
  ...["content-length", "content-encoding", ...OURS],
]);

const VOLATILE_PREFIXES: readonly string[] = ["access-control-", "x-ratelimit-", "x-rate-limit-"];

export function valuesOf({ lines }: RawAnswer, name: string): readonly string[] {
  return lines.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value);
}
