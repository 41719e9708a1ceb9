import { checkOperation } from "../core/key.ts";
import { type Duration, parseDuration } from "../core/policy.ts";
import type { ProviderKind } from "../core/record.ts";
import { OWN_MARKS } from "../core/step.ts";
import { ConfigurationError } from "../errors.ts";
import { codec } from "./codec.ts";
import type { Cancelled } from "./operation.ts";
import type { DeclaredStep, StepAttempt, StepSighting } from "./settler.ts";

/** What asking the provider of a step brought: what its call would have returned, or thrown as `PermanentFailure`. */
export type StepSighted =
  | { readonly kind: "found"; readonly result: unknown }
  | { readonly kind: "refused"; readonly failure: unknown }
  | { readonly kind: "not_found" }
  | { readonly kind: "pending" };

/** Asks the provider what happened; a throw means that it could not be reached. */
export type LookForStep = (given: { readonly attempt: StepAttempt }) => Promise<StepSighted>;

/** Asks the provider to refuse the key for ever. */
export type CancelStep = (given: { readonly attempt: StepAttempt }) => Promise<Cancelled<unknown>>;

/** What the provider of one external effect offers: it decides what its silence means. */
export type StepDefinition =
  /** Deduplicates by our key for `keyTtl`: within it the next request calls again. With a `look` it is asked after that. */
  | { readonly provider: "repeatable"; readonly keyTtl: Duration; readonly look?: LookForStep }
  /** Deduplicates, can be asked, and can cancel. */
  | { readonly provider: "keyed"; readonly look: LookForStep; readonly cancel: CancelStep }
  /** Can be asked, and refuses a request after the `validUntil` that the call is given: `validFor` after the claim. */
  | { readonly provider: "query"; readonly validFor: Duration; readonly look: LookForStep }
  /** Knows nothing of us: mail, a webhook. */
  | { readonly provider: "blind" };

/** The definitions that need no function to be known to other processes, and so may stand at the call itself. */
export type InlineStep =
  | { readonly provider: "repeatable"; readonly keyTtl: Duration }
  | { readonly provider: "blind" };

/** An operation's external effects, by their names. */
export type StepDefinitions = Readonly<Record<string, StepDefinition>>;

/** Checks definitions once, so that a wrong one fails when a route is made and not at its first request. */
export function checkedSteps(
  definitions: StepDefinitions,
  maxRunMs: number,
): ReadonlyMap<string, DeclaredStep> {
  const entries = Object.entries(definitions);
  return new Map(entries.map(([name, given]) => [name, checkedStep(name, given, maxRunMs)] as const));
}

/** A call goes out as late as its attempt may run: a provider's memory must be longer than that. */
export function checkedStep(
  name: string,
  given: StepDefinition | InlineStep,
  maxRunMs: number,
): DeclaredStep {
  refuseName(name);
  const { provider } = given;
  const step = { provider, keyTtlMs: null, validForMs: null, look: null, cancel: null };
  switch (provider) {
    case "repeatable": {
      const keyTtlMs = timeOf(`steps.${name}.keyTtl`, given.keyTtl, maxRunMs);
      return {
        ...step,
        keyTtlMs,
        look: "look" in given && given.look !== undefined ? lookOf(name, given.look) : null,
      };
    }
    case "keyed":
      return { ...step, look: lookOf(name, given.look), cancel: cancelOf(name, given.cancel) };
    case "query":
      return {
        ...step,
        validForMs: timeOf(`steps.${name}.validFor`, given.validFor, maxRunMs),
        look: lookOf(name, given.look),
      };
    case "blind":
      return step;
  }
  return unknownProvider(name, provider);
}

/** Reachable from plain JavaScript only. */
function unknownProvider(name: string, provider: never): never {
  const kinds: readonly ProviderKind[] = ["repeatable", "keyed", "query", "blind"];
  const reason = `must be one of ${kinds.join(", ")}; got ${JSON.stringify(provider)}`;
  throw new ConfigurationError(`steps.${name}.provider`, reason);
}

function refuseName(name: string): void {
  if (checkOperation(name).kind === "valid" && !name.startsWith(OWN_MARKS)) return;
  const reason = `cannot name a step: not blank, up to 1024 bytes, without NUL, and not beginning with "${OWN_MARKS}"`;
  throw new ConfigurationError("effect", `${JSON.stringify(name)} ${reason}`);
}

function timeOf(field: string, value: Duration, maxRunMs: number): number {
  const duration = parseDuration(value);
  if (duration.kind === "bad") throw new ConfigurationError(field, `must be ${duration.reason}`);
  if (duration.ms > maxRunMs) return duration.ms;
  const reason = `must be longer than the attempt may run (${maxRunMs} ms): a call may go out that late`;
  throw new ConfigurationError(field, `${reason}; got ${duration.ms} ms`);
}

function lookOf(name: string, look: LookForStep): NonNullable<DeclaredStep["look"]> {
  refuseMissing(name, "look", look);
  const results = codec<unknown>(`what look found of ${name}`);
  return async (attempt): Promise<StepSighting> => {
    const seen = await look({ attempt });
    switch (seen.kind) {
      case "found":
        return { kind: "finished", result: results.encode(seen.result) };
      case "refused":
        return { kind: "refused", result: results.encode(seen.failure) };
      case "not_found":
      case "pending":
        return { kind: seen.kind };
    }
  };
}

function cancelOf(name: string, cancel: CancelStep): NonNullable<DeclaredStep["cancel"]> {
  refuseMissing(name, "cancel", cancel);
  const results = codec<unknown>(`what cancel found of ${name}`);
  return async (attempt) => {
    const said = await cancel({ attempt });
    return said.kind === "cancelled" ? said : { kind: "finished", result: results.encode(said.result) };
  };
}

function refuseMissing(name: string, field: string, given: unknown): void {
  if (typeof given !== "function")
    throw new ConfigurationError(`steps.${name}.${field}`, "is required: any process must be able to ask");
}
