/** What a client may do with its key: the same one at once, the same one later, or none. */
export type Retry = "same_key" | "same_key_later" | "never";

/** What is known of the effect: a client may take a new key only at `none`. */
export type EffectKnown = "none" | "done" | "maybe";

export interface RegistryEntry {
  readonly title: string;
  /** The HTTP status where the error is an answer; `null` for errors that only a programmer sees. */
  readonly status: number | null;
  readonly retry: Retry;
  readonly effect: EffectKnown;
}

/** Stable: a code keeps its meaning for ever. */
export type ErrorCode =
  | "key_missing"
  | "key_invalid"
  | "idempotency_not_supported"
  | "request_too_large"
  | "principal_unresolved"
  | "in_progress"
  | "key_reused"
  | "outcome_unknown"
  | "response_not_stored"
  | "key_expired"
  | "fingerprint_unverifiable"
  | "record_corrupt"
  | "replay_forbidden"
  | "authorization_failed"
  | "store_unavailable"
  | "draining"
  | "configuration"
  | "schema_missing"
  | "store_contention"
  | "record_too_large"
  | "lease_lost"
  | "transaction_repeated"
  | "attempt_ended"
  | "step_repeated"
  | "step_unusable"
  | "unfinished"
  | "value_unsupported"
  | "not_performed"
  | "permanent_failure";

/** Every code that Oncekey answers or throws. A test holds it together with the types and `docs/reference/errors.md`. */
export const REGISTRY: Readonly<Record<ErrorCode, RegistryEntry>> = {
  key_missing: {
    title: "This request needs an idempotency key",
    status: 400,
    retry: "never",
    effect: "none",
  },
  key_invalid: { title: "The idempotency key cannot be used", status: 400, retry: "never", effect: "none" },
  idempotency_not_supported: {
    title: "This endpoint does not heed idempotency keys",
    status: 400,
    retry: "never",
    effect: "none",
  },
  request_too_large: { title: "The request is too large", status: 413, retry: "never", effect: "none" },
  principal_unresolved: {
    title: "The server could not tell whose key this is",
    status: 500,
    retry: "same_key_later",
    effect: "maybe",
  },
  in_progress: {
    title: "The first request with this key is still running",
    status: 409,
    retry: "same_key_later",
    effect: "maybe",
  },
  key_reused: {
    title: "This key was used for another request",
    status: 422,
    retry: "never",
    effect: "maybe",
  },
  outcome_unknown: {
    title: "It is not known whether the request took effect",
    status: 409,
    retry: "same_key_later",
    effect: "maybe",
  },
  response_not_stored: {
    title: "The request was carried out; its answer was not kept",
    status: 409,
    retry: "never",
    effect: "done",
  },
  key_expired: { title: "This key was used too long ago", status: 409, retry: "never", effect: "maybe" },
  fingerprint_unverifiable: {
    title: "It cannot be checked whether this is the same request",
    status: 409,
    retry: "never",
    effect: "maybe",
  },
  record_corrupt: {
    title: "The record of this key is damaged",
    status: 500,
    retry: "never",
    effect: "maybe",
  },
  replay_forbidden: {
    title: "This caller may not have the answer to this key",
    status: 403,
    retry: "never",
    effect: "maybe",
  },
  authorization_failed: {
    title: "It could not be told whether this caller may have the answer",
    status: 500,
    retry: "same_key_later",
    effect: "maybe",
  },
  store_unavailable: {
    title: "The idempotency store cannot be reached",
    status: 503,
    retry: "same_key_later",
    effect: "maybe",
  },
  draining: { title: "The server is shutting down", status: 503, retry: "same_key_later", effect: "maybe" },
  configuration: { title: "A setting cannot be used", status: null, retry: "never", effect: "none" },
  schema_missing: {
    title: "The store's tables are missing or of another version",
    status: null,
    retry: "same_key_later",
    effect: "maybe",
  },
  store_contention: {
    title: "The database asked to try again",
    status: null,
    retry: "same_key_later",
    effect: "maybe",
  },
  record_too_large: {
    title: "The store refuses a record of this size",
    status: null,
    retry: "never",
    effect: "done",
  },
  lease_lost: {
    title: "This attempt no longer owns its key",
    status: null,
    retry: "same_key_later",
    effect: "maybe",
  },
  transaction_repeated: {
    title: "transaction() was called twice in one attempt",
    status: null,
    retry: "never",
    effect: "none",
  },
  attempt_ended: { title: "The attempt has already ended", status: null, retry: "never", effect: "maybe" },
  step_repeated: {
    title: "An effect was asked for twice in one attempt",
    status: null,
    retry: "never",
    effect: "maybe",
  },
  step_unusable: { title: "An effect is not described", status: null, retry: "never", effect: "none" },
  unfinished: {
    title: "A part of the work is done, and the rest is not",
    status: 503,
    retry: "same_key_later",
    effect: "maybe",
  },
  value_unsupported: { title: "The value cannot be kept", status: null, retry: "never", effect: "maybe" },
  not_performed: { title: "Nothing was done", status: 503, retry: "same_key_later", effect: "none" },
  permanent_failure: {
    title: "The request was refused for good",
    status: null,
    retry: "never",
    effect: "none",
  },
};

/** Where a code is explained: what happened, what a client does, what an operator does. */
export function docsOf(code: ErrorCode): string {
  return `docs/reference/errors.md#${code}`;
}

/** The base of everything that Oncekey throws; `code` is stable, `message` says what happened and what to do. */
export class OncekeyError extends Error {
  readonly code: ErrorCode;
  override readonly name: string = "OncekeyError";

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Whether the same call with the same key may be tried again. */
  get retryable(): boolean {
    return REGISTRY[this.code].retry !== "never";
  }

  get docs(): string {
    return docsOf(this.code);
  }
}

/** A setting is wrong: names the field, and what would be right. */
export class ConfigurationError extends OncekeyError {
  override readonly name = "ConfigurationError";
  readonly field: string;

  constructor(field: string, reason: string) {
    super("configuration", `${field} ${reason}.`);
    this.field = field;
  }
}

/** The store did not answer, or not in time. A write may have been applied all the same. */
export class StoreUnavailable extends OncekeyError {
  override readonly name = "StoreUnavailable";

  constructor(message: string, options?: ErrorOptions) {
    super("store_unavailable", message, options);
  }
}

/** The database gave way to a concurrent transaction: nothing was applied, the same write may be sent again. */
export class StoreContention extends OncekeyError {
  override readonly name = "StoreContention";

  constructor(message: string, options?: ErrorOptions) {
    super("store_contention", message, options);
  }
}

/** What stands in the store is not a record that Oncekey wrote. */
export class RecordCorrupt extends OncekeyError {
  override readonly name = "RecordCorrupt";

  constructor(reason: string) {
    super(
      "record_corrupt",
      `The stored record is damaged (${reason}). Nothing was run; look at it with a person.`,
    );
  }
}

/** Thrown by a handler, a `perform` or a provider call: nothing happened, and the same key may try again. */
export class NotPerformed extends OncekeyError {
  override readonly name = "NotPerformed";

  constructor(reason: string, options?: ErrorOptions) {
    super("not_performed", reason, options);
  }
}

/** Thrown to refuse for good: `answer` is kept and repeated to every later copy of the request. */
export class PermanentFailure extends OncekeyError {
  override readonly name = "PermanentFailure";
  readonly answer: unknown;

  constructor(answer: unknown, reason = "The request was refused for good.") {
    super("permanent_failure", reason);
    this.answer = answer;
  }
}

/** Thrown by a handler or a `perform`: an effect may have happened and nobody knows. */
export class OutcomeUnknown extends OncekeyError {
  override readonly name = "OutcomeUnknown";

  constructor(reason: string, options?: ErrorOptions) {
    super("outcome_unknown", reason, options);
  }
}

/** The attempt was judged dead or taken over; what it does from now on changes nothing. */
export class LeaseLost extends OncekeyError {
  override readonly name = "LeaseLost";

  constructor(reason: string) {
    super("lease_lost", reason);
  }
}
