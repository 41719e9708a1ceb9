import { ConfigurationError } from "../errors.ts";
import type { Awaitable, Settling } from "../stores/store.ts";
import type { Context } from "./context.ts";
import { stepsOf } from "./declared.ts";
import { undeclaredEffect } from "./effects.ts";
import type { Engine } from "./engine.ts";
import { valueOrThrow } from "./not-run.ts";
import type { Returned } from "./returned.ts";
import {
  attemptRun,
  attemptTransaction,
  type Ran,
  type RunAttempt,
  type RunRequest,
  type TransactionAttempt,
  type TransactionRequest,
} from "./run.ts";
import { attemptDeclared, type DeclaredAttempt, type DeclaredRequest } from "./run-declared.ts";

/** A function that runs once; with `effects: "declared"` it is handed an `effect`. */
export interface Run {
  <T>(request: DeclaredRequest, work: (attempt: DeclaredAttempt) => Awaitable<T>): Promise<T>;
  <T>(request: RunRequest, work: (attempt: RunAttempt) => Awaitable<T>): Promise<T>;
}

export interface AttemptRun {
  <T>(request: DeclaredRequest, work: (attempt: DeclaredAttempt) => Awaitable<T>): Promise<Ran<T>>;
  <T>(request: RunRequest, work: (attempt: RunAttempt) => Awaitable<T>): Promise<Ran<T>>;
}

/** The function doors of an engine. */
export function runsOf<Tx, Settles extends Settling>(
  context: Context<Tx>,
  begin: Engine<Tx, Settles>["begin"],
  engine: Pick<Engine<Tx, Settles>, "transactions" | "steps">,
): Pick<Engine<Tx, Settles>, "run" | "attemptRun" | "runInTransaction"> {
  const attempt = <T>(
    request: RunRequest & { readonly effects?: unknown },
    work: (attempt: DeclaredAttempt) => Awaitable<T>,
  ): Promise<Ran<T>> => {
    if (request.effects !== "declared")
      return attemptRun(begin, request, (plain) => work(Object.assign(plain, { effect: undeclaredEffect })));
    const steps = stepsOf(engine, request.operation);
    return attemptDeclared({ begin, context, steps }, request, work);
  };
  return {
    run: async <T>(request: RunRequest, work: (attempt: DeclaredAttempt) => Awaitable<T>) =>
      valueOrThrow(request, await attempt(request, work)),
    attemptRun: attempt,
    runInTransaction: async <T>(
      request: TransactionRequest,
      work: (tx: Tx, attempt: TransactionAttempt) => Returned<Settles, T>,
    ) => {
      if (engine.transactions === null)
        throw new ConfigurationError("store", "has no transactions; use run instead");
      const { recordId } = engine.transactions;
      const unit = (tx: Tx, running: TransactionAttempt): Awaitable<T> => work(tx, running);
      return valueOrThrow(request, await attemptTransaction({ begin, recordId }, request, unit));
    },
  };
}
