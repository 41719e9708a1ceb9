import type { Duration } from "../core/policy.ts";
import type { ProviderKind } from "../core/record.ts";
import { ConfigurationError } from "../errors.ts";
import { durationOf, type Engine } from "./engine.ts";
import type { OperationDefinition } from "./operation.ts";
import type { Settling } from "./returned.ts";

/** Refuses, by the field's name, an operation that its engine or its provider cannot carry. */
export function refuseUnusable<Tx, Settles extends Settling, Input, Reference, Result>(
  engine: Engine<Tx, Settles>,
  definition: OperationDefinition<Tx, Settles, Input, Reference, Result>,
): void {
  const { name, provider, look, cancel } = definition;
  const refuse = refusing(name);
  if (engine.settlers.has(name)) refuse("name", "is taken already on this engine");
  if (engine.transactions === null)
    refuse("store", `"${engine.store.name}" has no transactions; an operation needs them`);
  if (provider === "keyed" && (look === undefined || cancel === undefined)) {
    refuse("provider", '"keyed" can be asked and can cancel, so look and cancel are required');
  }
  if (provider === "query" && look === undefined)
    refuse("provider", '"query" can be asked, so look is required');
  refuseDurations(engine, provider, definition);
}

function refuseDurations(
  { policy: { requestTimeoutMs, retentionMs } }: Pick<Engine, "policy">,
  provider: ProviderKind,
  definition: Durations,
): void {
  const refuse = refusing(definition.name);
  const keyTtlMs = optionalMs(definition, "keyTtl");
  const validForMs = optionalMs(definition, "validFor");
  if (provider === "repeatable" && keyTtlMs === null)
    refuse("keyTtl", "is required: how long the provider deduplicates by our key");
  if (keyTtlMs !== null && keyTtlMs <= requestTimeoutMs) {
    refuse(
      "keyTtl",
      `must be longer than requestTimeout (${requestTimeoutMs} ms): a call may go out that late`,
    );
  }
  if (validForMs !== null && provider !== "query")
    refuse(
      "validFor",
      `is for a provider of kind "query", which refuses requests after it; got "${provider}"`,
    );
  if (validForMs !== null && 2 * validForMs > retentionMs) {
    const reason = `must not be longer than half the retention (${retentionMs} ms), or a late request could outlive its record`;
    refuse("validFor", reason);
  }
}

function refusing(name: string) {
  return (field: string, reason: string): never => {
    throw new ConfigurationError(`operation ${name}: ${field}`, reason);
  };
}

interface Durations {
  readonly name: string;
  readonly keyTtl?: Duration;
  readonly validFor?: Duration;
}

/** One of an operation's durations; `null` where it was not given. */
export function optionalMs(definition: Durations, field: "keyTtl" | "validFor"): number | null {
  const value = definition[field];
  return value === undefined ? null : durationOf(`operation ${definition.name}: ${field}`, value);
}
