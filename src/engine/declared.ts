import { checkOperation } from "../core/key.ts";
import { ConfigurationError } from "../errors.ts";
import type { Settling } from "../stores/store.ts";
import type { Engine } from "./engine.ts";
import type { DeclaredStep } from "./settler.ts";
import { checkedSteps, type StepDefinitions } from "./step-definitions.ts";

/**
 * Makes the external effects of an operation known to an engine and its workers: of a route, whose `protect` does it with
 * its `steps`, or of what `engine.run` does with `effects: "declared"`. A process that runs workers only says the same.
 */
export function declareSteps<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  operation: string,
  definitions: StepDefinitions,
): void {
  if (checkOperation(operation).kind !== "valid")
    throw new ConfigurationError(
      "operation",
      "must be a name of up to 1024 bytes, not blank and without NUL",
    );
  if (engine.steps.has(operation) || engine.settlers.has(operation))
    throw new ConfigurationError("operation", `${JSON.stringify(operation)} is taken already on this engine`);
  engine.steps.set(operation, checkedSteps(definitions, engine.policy.requestTimeoutMs));
}

/** The steps of an operation that were made known. */
export function stepsOf(
  { steps }: { readonly steps: ReadonlyMap<string, ReadonlyMap<string, DeclaredStep>> },
  operation: string,
): ReadonlyMap<string, DeclaredStep> {
  return steps.get(operation) ?? NO_STEPS;
}

const NO_STEPS: ReadonlyMap<string, DeclaredStep> = new Map();
