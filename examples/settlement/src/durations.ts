import type { EngineSettings } from "oncekey";
import { bad, type Parsed, type Variables, value } from "./variables.ts";

/**
 * How long things take, such as `500ms`, `2s`, `1.5m`, `24h` or `7d`. Only what is set is fixed; the rest follows it, so
 * that setting any one of them alone never makes the service refuse to start.
 *
 * | variable             | default | what it says                                                                     |
 * | -------------------- | ------- | -------------------------------------------------------------------------------- |
 * | `REQUEST_TIMEOUT`    | `60s`   | how long one request may run; shorter where `LEASE` or `RETENTION` are, longer   |
 * |                      |         | where `BANK_TIMEOUT` is                                                          |
 * | `LEASE`              | `90s`   | how long a request may be unheard before it is judged dead; 1.5 times            |
 * |                      |         | `REQUEST_TIMEOUT` where that is set                                              |
 * | `SWEEP_INTERVAL`     | `30s`   | time between two looks for dead requests                                         |
 * | `SWEEP_GRACE`        | `300s`  | what the sweeper waits beyond the lease                                          |
 * | `RECONCILE_INTERVAL` | `30s`   | time between two rounds of asking the bank, and the first back-off               |
 * | `NOT_FOUND_GRACE`    | `2m`    | how long a "not found" of a provider that cannot cancel is not believed          |
 * | `RETENTION`          | `7d`    | how long a finished key is kept; never by default below the lease                |
 * | `STORE_TIMEOUT`      | `2s`    | how long the database is waited for                                              |
 * | `BANK_TIMEOUT`       | `10s`   | how long the bank is waited for; half of the request's time where that is less   |
 */
export interface Durations {
  readonly engine: EngineSettings;
  readonly storeTimeoutMs: number;
  /** `null` where nothing was set: see `bankTimeoutWithin`. */
  readonly bankTimeoutMs: number | null;
}

export function readDurations({ read }: Variables): Durations {
  const requestTimeout = read("REQUEST_TIMEOUT", durationIn, null);
  const lease = read("LEASE", durationIn, null);
  const retention = read("RETENTION", durationIn, null);
  const bankTimeoutMs = read("BANK_TIMEOUT", durationIn, null);
  const storeTimeoutMs = read("STORE_TIMEOUT", durationIn, 2_000);
  const running = requestTimeout ?? (lease === null && retention === null ? roomFor(bankTimeoutMs) : null);
  const engine = {
    ...(running === null ? {} : { requestTimeout: running }),
    ...(lease === null ? {} : { lease }),
    retention: retention ?? Math.max(RETENTION_MS, lease ?? 0, (running ?? 0) * ROOM),
    sweepInterval: read("SWEEP_INTERVAL", durationIn, 30_000),
    sweepGrace: read("SWEEP_GRACE", durationIn, 300_000),
    reconcileInterval: read("RECONCILE_INTERVAL", durationIn, 30_000),
    notFoundGrace: read("NOT_FOUND_GRACE", durationIn, 120_000),
    storeTimeout: storeTimeoutMs,
  };
  return { engine, storeTimeoutMs, bankTimeoutMs };
}

/** How long to wait for the bank where nobody said so: what is left of the request must do to keep the answer. */
export function bankTimeoutWithin(requestTimeoutMs: number): number {
  return Math.max(1, Math.min(BANK_TIMEOUT_MS, Math.floor(requestTimeoutMs / 2)));
}

/** The engine's words for settings, in those of this service's environment. */
export function inVariables(message: string): string {
  return [...VARIABLES].reduce(
    (text, [setting, variable]) => text.replaceAll(new RegExp(`\\b${setting}\\b`, "g"), variable),
    message,
  );
}

const BANK_TIMEOUT_MS = 10_000;

const REQUEST_TIMEOUT_MS = 60_000;

/** Longer than any client retries money. */
const RETENTION_MS = 7 * 86_400_000;

/** A wait inside another needs this much more around it. */
const ROOM = 1.5;

const VARIABLES: ReadonlyMap<string, string> = new Map([
  ["requestTimeout", "REQUEST_TIMEOUT"],
  ["retention", "RETENTION"],
  ["lease", "LEASE"],
]);

const UNITS: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** Everything that follows from it stays within what timers, databases and the engine can count. */
const LONGEST_MS = 365 * 86_400_000;

function roomFor(bankTimeoutMs: number | null): number | null {
  const needed = (bankTimeoutMs ?? 0) * ROOM;
  return needed > REQUEST_TIMEOUT_MS ? Math.ceil(needed) : null;
}

function durationIn(text: string): Parsed<number> {
  const [, digits, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  const ms = Math.ceil(Number(digits) * (UNITS.get(unit) ?? Number.NaN));
  if (ms > 0 && ms <= LONGEST_MS) return value(ms);
  return bad(`must be a duration such as "500ms", "2s" or "24h", above zero and at most 365d; got "${text}"`);
}
