import type { KeyRecord } from "../core/record.ts";
import { docsOf, type EffectKnown, type ErrorCode, REGISTRY, type Retry } from "../errors.ts";
import type { Header, Reply } from "./exchange.ts";

/** What one problem says beyond its code. */
export interface Said {
  readonly detail: string;
  readonly status?: number;
  readonly retry?: Retry;
  readonly effect?: EffectKnown;
  readonly retryAfterMs?: number | null;
  /** The record of the first request, whose time and correlation id help a support question. */
  readonly first?: KeyRecord | null;
  readonly members?: Readonly<Record<string, unknown>>;
  readonly headers?: readonly Header[];
  /** Takes the place of what `retry` and `effect` say in words. */
  readonly advice?: string;
}

/** An answer of RFC 9457: stable `type` and `code`, and in words what the client may do with its key. */
export function problem(code: ErrorCode, said: Said): Reply {
  const entry = REGISTRY[code];
  const { detail, retryAfterMs = null, first = null, members = {}, headers = [] } = said;
  const status = said.status ?? entry.status ?? 500;
  const retry = said.retry ?? entry.retry;
  const effect = said.effect ?? entry.effect;
  const document = {
    type: `urn:oncekey:error:${code}`,
    title: entry.title,
    status,
    detail: `${detail} ${said.advice ?? `${ADVICE[retry]} ${NEW_KEY[effect]}`}`,
    code,
    retry,
    effect,
    docs: docsOf(code),
    ...(first === null ? {} : firstRequest(first)),
    ...members,
  };
  return {
    status,
    headers: [...PROBLEM_HEADERS, ...retryAfter(retryAfterMs), ...headers.filter(isForeign)],
    body: new TextEncoder().encode(JSON.stringify(document)),
  };
}

/** A copy that something keeps on the way would outlive what it says. */
const PROBLEM_HEADERS: readonly Header[] = [
  ["content-type", "application/problem+json"],
  ["cache-control", "no-store"],
];

const ADVICE: Readonly<Record<Retry, string>> = {
  same_key: "Send the same request again with the same key.",
  same_key_later: "Send the same request again later, with the same key.",
  never: "Sending this request again with this key will not help.",
};

const NEW_KEY: Readonly<Record<EffectKnown, string>> = {
  none: "Nothing was done by this request, so a new key is safe.",
  done: "The work was done: a new key would do it a second time.",
  maybe: "The work may have been done: do not use a new key.",
};

function firstRequest(record: KeyRecord): Readonly<Record<string, unknown>> {
  const { createdAt, correlationId } = record;
  const firstRequestAt = new Date(createdAt).toISOString();
  return correlationId === null ? { firstRequestAt } : { firstRequestAt, firstCorrelationId: correlationId };
}

/** RFC 9110, 10.2.3: whole seconds; never 0, which clients read as "at once". */
function retryAfter(ms: number | null): readonly Header[] {
  return ms === null ? [] : [["retry-after", String(Math.max(1, Math.floor(ms / 1_000)))]];
}

/** What a problem says of itself no other answer's header may say of it. */
function isForeign([name]: Header): boolean {
  return name !== "retry-after" && PROBLEM_HEADERS.every(([own]) => own !== name);
}
