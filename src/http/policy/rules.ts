import { concludeEnding } from "../../core/ending.ts";
import type { Effects } from "../../core/record.ts";
import type { ErrorCode } from "../../errors.ts";
import { REGISTRY } from "../../errors.ts";
import { fingerprintRule } from "../fingerprint.ts";
import type { RouteSettings } from "../guard.ts";
import type { Running } from "../route-options.ts";

/** A protected route, as its clients know it. */
export interface PolicyRoute {
  readonly method: string;
  /** As OpenAPI writes it: `/payments/{id}/refunds`. */
  readonly path: string;
  /** The options that were handed to `protect`. */
  readonly options: RouteSettings &
    Running & {
      readonly principal?: unknown;
      readonly fingerprint?: unknown;
      readonly authorizeReplay?: unknown;
    };
  /** Whether an operation stands behind the route, and no handler. */
  readonly isOperation?: boolean;
}

/** What becomes of a key by the status of the handler's own answer; ranges such as `200–399` in words. */
export interface Fates {
  /** The answer is kept, and repeated to every copy. */
  readonly kept: string;
  /** Nothing is kept: a copy runs anew. */
  readonly again: string;
  /** Nobody knows what was done: copies are told so, or run the work again where the route says `rerun`. */
  readonly unknown: string;
}

const ALWAYS: readonly ErrorCode[] = [
  ...(["key_invalid", "request_too_large", "principal_unresolved", "in_progress", "key_reused"] as const),
  ...(["outcome_unknown", "response_not_stored", "key_expired", "fingerprint_unverifiable"] as const),
  ...(["record_corrupt", "store_unavailable", "not_performed", "draining"] as const),
];

/** Statuses that a code is told with beside its usual one: to the first caller, and not to copies. */
const ALSO_WITH: Partial<Readonly<Record<ErrorCode, readonly number[]>>> = {
  outcome_unknown: [503, 504],
  not_performed: [504],
  unfinished: [504],
};

/** Which problems a client may meet at a route beside the handler's own answers, by their status. */
export function problemsAt(route: PolicyRoute): ReadonlyMap<number, readonly ErrorCode[]> {
  const { required = true, effects, authorizeReplay } = route.options;
  const codes: readonly ErrorCode[] = [
    ...(required ? (["key_missing"] as const) : []),
    ...ALWAYS,
    ...(effects === "declared" ? (["unfinished"] as const) : []),
    ...(authorizeReplay === undefined ? [] : (["replay_forbidden", "authorization_failed"] as const)),
  ];
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of codes)
    for (const status of [REGISTRY[code].status ?? 500, ...(ALSO_WITH[code] ?? [])])
      byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  return new Map([...byStatus].sort(([left], [right]) => left - right));
}

/** Asks the engine's own rule about every status; a route whose steps are declared is asked with none begun. */
export function fatesOf({ options, isOperation = false }: PolicyRoute): Fates | null {
  if (isOperation) return null;
  const effects: Effects = options.effects ?? "none";
  const by: Record<keyof Fates, number[]> = { kept: [], again: [], unknown: [] };
  for (let status = 200; status <= 599; status += 1) {
    const answer = { status, headers: [], body: null };
    const { kind } = concludeEnding(
      { effects, steps: new Map(), claimedAt: 0 },
      { kind: "answered", answer },
    );
    if (kind === "release") by.again.push(status);
    else by[kind === "conclude" || options.onAmbiguous === "replay" ? "kept" : "unknown"].push(status);
  }
  return { kept: ranges(by.kept), again: ranges(by.again), unknown: ranges(by.unknown) };
}

/** What makes a request the same one, in sentences. */
export function sameness({ options }: PolicyRoute): readonly string[] {
  const { mode, headers } = fingerprintRule(options);
  const { ignore = [], fingerprint } = options;
  const body =
    fingerprint !== undefined
      ? "What of the body is compared the service decides."
      : mode === "raw"
        ? "The body is compared byte by byte."
        : "A JSON body is compared as a value: the order of members and the spelling of numbers do not matter, the order of elements does. Any other body is compared byte by byte.";
  return [
    "A retry repeats the method, the path, the query, the media type and the body.",
    body,
    ...(headers.length === 0 ? [] : [`These headers belong to it as well: ${listed(headers)}.`]),
    ...(ignore.length === 0 ? [] : [`These members of the body may differ: ${listed(ignore)}.`]),
  ];
}

function listed(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(", ");
}

const LONG_UNITS: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
  [1_000, "second"],
  [1, "millisecond"],
];

/** A length of time as people say it, in the largest unit that says it exactly. */
export function inWords(ms: number): string {
  const [unitMs, name] = LONG_UNITS.find(([unit]) => ms % unit === 0 && ms >= unit) ?? [1, "millisecond"];
  const count = ms / unitMs;
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}

/** Neighbours joined: 200–399, 402. */
function ranges(sorted: readonly number[]): string {
  const joined: [from: number, to: number][] = [];
  for (const status of sorted) {
    const last = joined.at(-1);
    if (last !== undefined && last[1] === status - 1) last[1] = status;
    else joined.push([status, status]);
  }
  return joined.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(", ");
}
