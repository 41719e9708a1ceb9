import type { Attempt } from "../engine/attempt.ts";
import type { Engine } from "../engine/engine.ts";
import type { OperationRoute } from "../engine/operation.ts";
import type { Settling } from "../engine/returned.ts";
import { ConfigurationError } from "../errors.ts";
import type { Exchange } from "./exchange.ts";
import { createGuard, type Guard, type RouteSettings, UNPROTECTED } from "./guard.ts";
import { replyToExecuted } from "./replies.ts";
import { respond, type Work } from "./responder.ts";
import { sameResponse, toResponse } from "./response.ts";
import type { KeptAnswer, RouteTransaction } from "./transaction-door.ts";

/** A protected route's options; `HostRequest` is what the host hands to handlers. */
export interface RouteOptions<HostRequest> extends RouteSettings {
  /** Who the key belongs to: the authenticated caller, never the credential itself. */
  readonly principal: (request: HostRequest) => unknown;
  /** Kept on the record, so that one query answers a support question. */
  readonly correlationId?: (request: HostRequest) => string | undefined;
}

export type TransactionOptions<HostRequest> = RouteOptions<HostRequest> & { readonly effects: "transaction" };

/** What a handler is told of its attempt; where it runs unprotected the number is 0. */
export interface RunContext {
  /** Aborts at the time limit and when the key is lost; not when the client hangs up. */
  readonly signal: AbortSignal;
  /** A fencing token for the handler's own statements. */
  readonly number: number;
}

export interface TransactionContext<Tx, Settles extends Settling> extends RunContext {
  readonly transaction: RouteTransaction<Tx, Settles>;
}

/** How a host that answers with a `Response` runs what stands behind the guard. */
export interface Host<Tx, Settles extends Settling> {
  readonly exchange: Exchange;
  readonly run: (context: TransactionContext<Tx, Settles>) => Promise<Response | KeptAnswer>;
  readonly answerOfError: Work<Tx, Settles>["answerOfError"];
}

/** Serves one request of a protected route. */
export type ServeRoute<Tx, Settles extends Settling, HostRequest> = (
  request: HostRequest,
  host: Host<Tx, Settles>,
) => Promise<Response>;

/** Joins guard, engine and handler for every host that answers with a `Response`; hosts add nothing but their types. */
export function createRoute<Tx, Settles extends Settling, HostRequest>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<HostRequest> & { readonly effects?: "transaction" },
  operation: OperationRoute<HostRequest> | null,
): ServeRoute<Tx, Settles, HostRequest> {
  refuseImpossible(engine, options, operation);
  const guard = createGuard(engine, operation === null ? options : { operation: operation.name, ...options });
  return async (request, host) => {
    const correlationId = options.correlationId?.(request);
    const said = {
      principal: await options.principal(request),
      ...(correlationId === undefined ? {} : { correlationId }),
    };
    const admission = await guard.admit(host.exchange, said);
    if (admission.kind === "pass") return await unprotectedRun(host);
    if (admission.kind === "refuse") return toResponse(admission.reply);
    if (operation !== null)
      return toResponse(replyToExecuted(await operation.execute(admission.request, request)));
    const begun = await engine.begin({ ...admission.request, effects: options.effects ?? "none" });
    if (begun.kind === "proceed") return await protectedRun(engine, guard, begun.attempt, host);
    const reply = guard.refuse(begun);
    return reply === null ? await failedOpen(engine, admission.request.operation, host) : toResponse(reply);
  };
}

function protectedRun<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  guard: Guard,
  attempt: Attempt<Tx>,
  host: Host<Tx, Settles>,
): Promise<Response> {
  const { signal, number } = attempt;
  return respond<Tx, Settles>(engine.context, guard, attempt, {
    run: ({ transaction }) => host.run({ signal, number, transaction }),
    answerOfError: host.answerOfError,
  });
}

/** The handler with no protection: safe methods, and requests without a key where none is required. */
async function unprotectedRun<Tx, Settles extends Settling>(host: Host<Tx, Settles>): Promise<Response> {
  const transaction = () => Promise.reject(new ConfigurationError("effects", UNPROTECTED_TRANSACTION));
  const returned = await host.run({ signal: new AbortController().signal, number: 0, transaction });
  if (returned instanceof Response) return returned;
  throw new ConfigurationError("effects", UNPROTECTED_TRANSACTION);
}

const UNPROTECTED_TRANSACTION =
  '"transaction" commits the record of a key, and this request has none; serve safe methods by a handler of their own';

/** The programmer's word: rather run unprotected than not at all. The answer says so. */
async function failedOpen<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  operation: string,
  host: Host<Tx, Settles>,
): Promise<Response> {
  engine.context.emit({ type: "request", operation, outcome: "unprotected" });
  const response = await unprotectedRun(host);
  return sameResponse(response, response.body ?? new Uint8Array(0), [UNPROTECTED]);
}

function refuseImpossible<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  { effects, failOpen, required }: RouteSettings & { readonly effects?: "transaction" },
  operation: unknown,
): void {
  if (effects === "transaction" && engine.transactions === null) {
    throw new ConfigurationError(
      "effects",
      `"transaction" needs a store with transactions; "${engine.store.name}" has none`,
    );
  }
  if (effects === "transaction" && failOpen === true) {
    throw new ConfigurationError(
      "failOpen",
      'cannot go with effects "transaction": without the store there is no transaction to run in',
    );
  }
  if (required === false && (effects === "transaction" || operation !== null)) {
    throw new ConfigurationError(
      "required",
      "cannot be false here: without a key there is no record to commit the effect with",
    );
  }
}
