import type { Settling } from "../engine/returned.ts";
import { ConfigurationError } from "../errors.ts";
import { NO_DOORS } from "./attempt-doors.ts";
import type { RouteContext } from "./route.ts";

/** What a handler gets of an attempt where there is none: safe methods, and requests without a key. */
export function withoutAttempt<Tx, Settles extends Settling>(): RouteContext<Tx, Settles> {
  const transaction = () => Promise.reject(noRecord());
  return { signal: new AbortController().signal, number: 0, transaction, ...NO_DOORS };
}

export function noRecord(): ConfigurationError {
  return new ConfigurationError(
    "effects",
    '"transaction" commits the record of a key, and this request has none; serve safe methods by a handler of their own',
  );
}
