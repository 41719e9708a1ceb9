import { OncekeyError, PermanentFailure } from "../errors.ts";
import type { Ran, RunRequest } from "./run.ts";

/** The value, or a typed error that says why there is none. */
export function valueOrThrow<T>(request: RunRequest, ran: Ran<T>): T {
  switch (ran.kind) {
    case "first":
    case "replayed":
      return ran.value;
    case "refused":
      throw new PermanentFailure(ran.failure, `${request.operation} was refused for good.`);
    case "store_unavailable":
    case "record_corrupt":
      throw ran.error;
    case "in_progress":
    case "outcome_unknown":
      throw new NotRun(ran.kind, NOT_RUN[ran.kind](request.operation), ran.retryAfterMs);
    case "mismatch":
      throw new NotRun("key_reused", NOT_RUN.mismatch(request.operation), null);
    case "unverifiable":
      throw new NotRun("fingerprint_unverifiable", NOT_RUN.unverifiable(request.operation), null);
    case "expired":
      throw new NotRun("key_expired", NOT_RUN.expired(request.operation), null);
    case "unsettled":
      throw new NotRun("outcome_unknown", NOT_RUN.unsettled(request.operation), null);
    case "response_not_stored":
    case "draining":
      throw new NotRun(ran.kind, NOT_RUN[ran.kind](request.operation), null);
  }
}

const NOT_RUN = {
  in_progress: (name: string) => `${name} is already running under this key.`,
  outcome_unknown: (name: string) => `Nobody knows what became of ${name}; do not take another key.`,
  mismatch: (name: string) => `This key belongs to a call of ${name} with another input.`,
  unverifiable: (name: string) => `The first call of ${name} was recorded under a rule that is gone.`,
  expired: (name: string) =>
    `${name} was called with this key, and the outcome is no longer kept; another key would be another call.`,
  unsettled: (name: string) => `The outcome of ${name} is not on record yet; ask again with the same key.`,
  response_not_stored: (name: string) => `${name} is done; its value was not kept.`,
  draining: (name: string) => `This process is shutting down; ${name} was not run.`,
};

/** The function was not run by this call; `code` says why. */
export class NotRun extends OncekeyError {
  override readonly name = "NotRun";
  /** When another try may find an answer; `null` where time alone changes nothing. */
  readonly retryAfterMs: number | null;

  constructor(code: OncekeyError["code"], message: string, retryAfterMs: number | null) {
    super(code, message);
    this.retryAfterMs = retryAfterMs;
  }
}
