import { type Member, type Reading, readObject } from "./reading.ts";

/** How the bank misbehaves. An absent member is no fault. */
export interface Faults {
  /** Waits so long before it commits a payment. */
  readonly delayMs?: number;
  /** Declines every new payment. */
  readonly decline?: boolean;
  /** Answers 503 to a payment before it has any effect. */
  readonly unavailable?: boolean;
  /** Commits a payment and never answers. */
  readonly commitThenHang?: boolean;
  /** Commits a payment and closes the connection. */
  readonly commitThenDrop?: boolean;
  /** Does not find a payment that is younger than this; a cancellation still sees it. */
  readonly hideForMs?: number;
  /** Resets every connection but those that ask for the ledger or the faults. */
  readonly down?: boolean;
}

/** Reads faults from the body of a request. */
export function readFaults(body: unknown): Reading<Faults> {
  return readObject<Faults>(body, {
    delayMs: milliseconds,
    decline: flag,
    unavailable: flag,
    commitThenHang: flag,
    commitThenDrop: flag,
    hideForMs: milliseconds,
    down: flag,
  });
}

const flag: Member = {
  accepts: (value) => value === undefined || typeof value === "boolean",
  expected: "must be true or false",
};

// The longest that a timer can hold; above it, it would fire at once.
const longestMs = 2 ** 31 - 1;

const milliseconds: Member = {
  accepts: (value) =>
    value === undefined ||
    (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= longestMs),
  expected: `must be a whole number of milliseconds from 0 to ${longestMs}`,
};
