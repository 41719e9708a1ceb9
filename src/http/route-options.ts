import type { Commits } from "../engine/begin.ts";
import { declareSteps, stepsOf } from "../engine/declared.ts";
import type { Engine } from "../engine/engine.ts";
import type { ProtectedRoute } from "../engine/protected-route.ts";
import type { Settling } from "../engine/returned.ts";
import type { DeclaredStep } from "../engine/settler.ts";
import type { StepDefinitions } from "../engine/step-definitions.ts";
import { ConfigurationError } from "../errors.ts";
import type { RouteSettings } from "./guard.ts";
import { reasonOf } from "./guests.ts";

/** What of a route's options decides how it runs. */
export interface Running {
  readonly effects?: "transaction" | "declared";
  readonly commits?: Commits;
  readonly steps?: StepDefinitions;
  readonly effectsBegin?: boolean;
}

type Options = RouteSettings &
  Running & {
    readonly principal: unknown;
    readonly fingerprint?: unknown;
    readonly authorizeReplay?: unknown;
  };

/** Refuses options that contradict each other or the store, when the route is made. */
export function refuseImpossible<Tx, Settles extends Settling>(
  { store, transactions }: Engine<Tx, Settles>,
  options: Options,
  isOperation: boolean,
): void {
  const { principal, fingerprint, effects, commits, effectsBegin, waitMs } = options;
  if (typeof principal !== "function")
    refuse("principal", "must be a function that tells whose key it is, from the request");
  if (fingerprint !== undefined && typeof fingerprint !== "function")
    refuse("fingerprint", "must be a function that says what stands for the body of a request");
  const { authorizeReplay } = options;
  if (authorizeReplay !== undefined && typeof authorizeReplay !== "function")
    refuse("authorizeReplay", "must be a function of a record and a request");
  if (effects !== undefined && effects !== "transaction" && effects !== "declared")
    refuse("effects", 'must be "transaction", "declared" or left out');
  if (commits !== undefined && commits !== "one" && commits !== "two")
    refuse("commits", 'must be "one" or "two"');
  if (commits === "one" && effects !== "transaction")
    refuse("commits", 'can be "one" only with effects: "transaction", whose commit the claim then goes into');
  if (commits === "one" && waitMs !== undefined)
    refuse("waitMs", 'cannot be set with commits: "one": nothing stands that could be waited for');
  if (effectsBegin !== undefined && (effects !== undefined || isOperation))
    refuse(
      "effectsBegin",
      "is for handlers that do not say where their effects are; leave it or effects out",
    );
  if ((effects === "transaction" || isOperation) && transactions === null)
    refuse("effects", `"transaction" needs a store with transactions; "${store.name}" has none`);
  if (isOperation) refuseOfOperation(options);
  refuseUnkeyed(options, isOperation);
  refuseUnobservable(options, isOperation);
}

/** What an operation says itself, and what does not fit an answer that a worker may make. */
function refuseOfOperation(options: Options): void {
  const { effects, keepHeaders, dropHeaders, store, finality, sendUnkept } = options;
  if (effects === "declared") refuse("effects", "cannot be set here: an operation has its own");
  if (keepHeaders !== undefined || dropHeaders !== undefined)
    refuse(
      "keepHeaders and dropHeaders",
      "cannot be set here: an operation's answer may be made by a worker",
    );
  if (store !== undefined)
    refuse("store", "cannot be set here: an operation's answer may be made by a worker");
  if (sendUnkept === true)
    refuse("sendUnkept", "cannot be true here: an operation's answer is made by the commit that keeps it");
  if (finality !== undefined)
    refuse("finality", "cannot be set here: an operation's answer may be made by a worker");
}

/** Nothing is claimed before an observed handler runs: it can be given no attempt to work with. */
function refuseUnobservable({ observe, effects, effectsBegin }: Options, isOperation: boolean): void {
  if (observe === undefined || observe === false) return;
  if (observe !== true) refuse("observe", "must be true or false");
  if (isOperation || effects !== undefined || effectsBegin !== undefined)
    refuse(
      "observe",
      "is for a handler as it was: what works with its attempt cannot run without one; observe the route before you change it",
    );
}

/** What needs a record cannot run without one. */
function refuseUnkeyed({ effects, failOpen, required }: Options, isOperation: boolean): void {
  if (effects === "declared") {
    if (failOpen === true)
      refuse("failOpen", "cannot be true here: without the store no effect can be marked");
    if (required === false)
      refuse("required", "cannot be false here: without a key there is no record to mark an effect on");
  }
  if (effects !== "transaction" && !isOperation) return;
  if (failOpen === true)
    refuse("failOpen", "cannot be true here: without the store there is no transaction to run in");
  if (required === false)
    refuse("required", "cannot be false here: without a key there is no record to commit the effect with");
}

/** What can be told of a route to people: its choices, and no function of it. */
export function describedBy(options: Options, operationName: string | null): ProtectedRoute {
  const { principal, effects = "none", onAmbiguous = "keep", operation = null } = options;
  const { required = true, failOpen = false, sendUnkept = false } = options;
  return {
    operation: operationName ?? operation,
    effects: operationName === null ? effects : "operation",
    sharedPrincipal: reasonOf(principal),
    ...{ required, onAmbiguous, failOpen, sendUnkept },
  };
}

/** The steps of a route, made known to the workers of its engine. */
export function stepsFor<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  { effects, steps, operation }: Options,
): ReadonlyMap<string, DeclaredStep> {
  if (steps === undefined) return operation === undefined ? new Map() : stepsOf(engine, operation);
  if (effects !== "declared") refuse("steps", 'are for effects: "declared"');
  if (operation === undefined)
    throw new ConfigurationError("operation", "is required with steps: a worker finds them by that name");
  declareSteps(engine, operation, steps);
  return stepsOf(engine, operation);
}

function refuse(field: string, reason: string): void {
  throw new ConfigurationError(field, reason);
}
