/** A length of time: milliseconds, or a number with its unit: `"500ms"`, `"30s"`, `"2m"`, `"24h"`, `"7d"`. */
export type Duration = number | string;

/** How long things may take, in milliseconds. */
export interface Policy {
  /** At its end the attempt's signal aborts, renewing stops and new effects are refused. */
  readonly requestTimeoutMs: number;
  /** How long an attempt may be unheard before others may judge it dead. */
  readonly leaseMs: number;
  /** Time between two renewals. */
  readonly heartbeatMs: number;
  /** What the sweeper waits beyond a lapse; it buys fewer false `unknown`, never safety. */
  readonly sweepGraceMs: number;
  readonly sweepIntervalMs: number;
  /** Also the first back-off between two looks. */
  readonly reconcileIntervalMs: number;
  readonly storeTimeoutMs: number;
  /** How long the end of an answer is held for its keeping. */
  readonly completionTimeoutMs: number;
  /** How long a finished record is kept. */
  readonly retentionMs: number;
  /** For how long after that it is remembered that its key was used; `null` where it is forgotten at once. */
  readonly tombstoneMs: number | null;
  readonly unknownRetentionMs: number;
  readonly releasedRetentionMs: number;
  /** Before this and three looks a provider's "not found" is not believed without a cancel. */
  readonly notFoundGraceMs: number;
  /** Answered looks before a person must decide. */
  readonly maxReconcileLooks: number;
}

/** How long a finished record is kept, and after that its tombstone. */
export interface Keep {
  readonly retainMs: number;
  readonly tombstoneMs: number | null;
}

export function keepOf({ retentionMs, tombstoneMs }: Policy): Keep {
  return { retainMs: retentionMs, tombstoneMs };
}

export interface PolicySettings {
  readonly requestTimeout?: Duration;
  readonly lease?: Duration;
  readonly sweepGrace?: Duration;
  readonly sweepInterval?: Duration;
  readonly reconcileInterval?: Duration;
  readonly storeTimeout?: Duration;
  readonly completionTimeout?: Duration;
  readonly retention?: Duration;
  readonly tombstone?: Duration;
  readonly unknownRetention?: Duration;
  readonly releasedRetention?: Duration;
  readonly notFoundGrace?: Duration;
  readonly maxReconcileLooks?: number;
}

/** A setting that cannot be used, and what would be right. */
export interface BadSetting {
  readonly kind: "bad";
  readonly field: string;
  readonly reason: string;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Longer than any retention makes sense, and short enough that every sum of two stays an exact integer. */
const LONGEST_MS = 3_650 * 86_400_000;

/** A heartbeat may fail twice before the lease is in danger. */
const HEARTBEATS_IN_A_LEASE = 3;

/** The lease must outlive the request; this much is room for a slow completion. */
const LEASE_TO_TIMEOUT = 1.5;

/** Reads a duration; fractions of a millisecond are rounded up. */
export function parseDuration(
  value: unknown,
): { readonly kind: "duration"; readonly ms: number } | BadDuration {
  const ms = typeof value === "number" ? value : typeof value === "string" ? fromText(value) : Number.NaN;
  if (!Number.isFinite(ms) || ms <= 0 || ms > LONGEST_MS) {
    return {
      kind: "bad",
      reason: `a positive number of milliseconds or a text like "30s" (units ms, s, m, h, d), at most 3650d; got ${shown(value)}`,
    };
  }
  return { kind: "duration", ms: Math.ceil(ms) };
}

export interface BadDuration {
  readonly kind: "bad";
  readonly reason: string;
}

/**
 * Settles every setting. Whichever of `requestTimeout`, `lease` and `retention` is missing follows the others, so that
 * shortening or lengthening one of them alone never makes an unusable set.
 */
export function settlePolicy(
  settings: PolicySettings,
): { readonly kind: "policy"; readonly policy: Policy } | BadSetting {
  const given = new Map<string, number>();
  for (const [field, value] of Object.entries(settings)) {
    if (value === undefined || field === "maxReconcileLooks") continue;
    if (!DURATIONS.has(field)) return { kind: "bad", field, reason: "unknown setting" };
    const duration = parseDuration(value);
    if (duration.kind === "bad") return { kind: "bad", field, reason: `must be ${duration.reason}` };
    given.set(field, duration.ms);
  }
  const looks = settings.maxReconcileLooks ?? 10;
  if (!Number.isInteger(looks) || looks < 1) {
    return {
      kind: "bad",
      field: "maxReconcileLooks",
      reason: `must be a whole number of at least 1; got ${shown(looks)}`,
    };
  }
  return related(derive(given, looks));
}

const DURATIONS: ReadonlySet<string> = new Set([
  ...["requestTimeout", "lease", "sweepGrace", "sweepInterval", "reconcileInterval", "storeTimeout"],
  ...[
    "completionTimeout",
    "retention",
    "tombstone",
    "unknownRetention",
    "releasedRetention",
    "notFoundGrace",
  ],
]);

function derive(given: ReadonlyMap<string, number>, maxReconcileLooks: number): Policy {
  const longestLeaseMs = given.get("lease") ?? given.get("retention") ?? Number.POSITIVE_INFINITY;
  const requestTimeoutMs =
    given.get("requestTimeout") ??
    Math.max(1, Math.min(60_000, Math.floor(longestLeaseMs / LEASE_TO_TIMEOUT)));
  const leaseMs =
    given.get("lease") ??
    Math.max(requestTimeoutMs + 1, Math.min(Math.ceil(requestTimeoutMs * LEASE_TO_TIMEOUT), longestLeaseMs));
  const retentionMs = given.get("retention") ?? Math.max(24 * 3_600_000, leaseMs);
  const tombstoneMs = given.get("tombstone") ?? null;
  return {
    requestTimeoutMs,
    leaseMs,
    heartbeatMs: Math.max(1, Math.floor(leaseMs / HEARTBEATS_IN_A_LEASE)),
    sweepGraceMs: given.get("sweepGrace") ?? 300_000,
    sweepIntervalMs: given.get("sweepInterval") ?? 30_000,
    reconcileIntervalMs: given.get("reconcileInterval") ?? 30_000,
    storeTimeoutMs: given.get("storeTimeout") ?? 2_000,
    completionTimeoutMs: given.get("completionTimeout") ?? 2_000,
    ...{ retentionMs, tombstoneMs },
    // A key in doubt must not be forgotten before one whose outcome is known.
    unknownRetentionMs:
      given.get("unknownRetention") ?? Math.max(30 * 86_400_000, leaseMs, retentionMs + (tombstoneMs ?? 0)),
    // With it go the steps that had finished: a retry that an answer would still have met must not make them again.
    releasedRetentionMs: given.get("releasedRetention") ?? Math.max(24 * 3_600_000, retentionMs),
    notFoundGraceMs: given.get("notFoundGrace") ?? 120_000,
    maxReconcileLooks,
  };
}

function related(policy: Policy): { readonly kind: "policy"; readonly policy: Policy } | BadSetting {
  const { leaseMs, requestTimeoutMs, retentionMs } = policy;
  if (leaseMs <= requestTimeoutMs) {
    const reason = `must be longer than requestTimeout (${requestTimeoutMs} ms), or a running request would be judged dead; got ${leaseMs} ms`;
    return { kind: "bad", field: "lease", reason };
  }
  if (retentionMs < leaseMs) {
    const reason = `must not be shorter than the lease (${leaseMs} ms); got ${retentionMs} ms`;
    return { kind: "bad", field: "retention", reason };
  }
  return { kind: "policy", policy };
}

function fromText(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text);
  const unit = UNITS[match?.[2] ?? ""];
  return match === null || unit === undefined ? Number.NaN : Number(match[1]) * unit;
}

function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
