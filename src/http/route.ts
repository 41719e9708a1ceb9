import type { Attempt } from "../engine/attempt.ts";
import type { BeginRequest, Commits } from "../engine/begin.ts";
import type { Engine } from "../engine/engine.ts";
import type { OperationRoute } from "../engine/operation.ts";
import type { Awaitable, Settling } from "../engine/returned.ts";
import { ConfigurationError } from "../errors.ts";
import { type Exchange, type Header, STATUS_HEADER } from "./exchange.ts";
import { createGuard, type Guard, type RouteSettings } from "./guard.ts";
import { replyToExecuted } from "./replies.ts";
import { respond, type Work } from "./responder.ts";
import { sameResponse, toResponse } from "./response.ts";
import type { KeptAnswer, RouteTransaction } from "./transaction-door.ts";

/** A protected route's options; `HostRequest` is what the host hands to handlers. */
export interface RouteOptions<HostRequest> extends RouteSettings {
  /** Who the key belongs to: the authenticated caller, never the credential itself. May be a promise of it. */
  readonly principal: (request: HostRequest) => unknown;
  /** Kept on the record, so that one query answers a support question. */
  readonly correlationId?: (request: HostRequest) => string | undefined;
}

export type TransactionOptions<HostRequest> = RouteOptions<HostRequest> & {
  readonly effects: "transaction";
  /**
   * `"one"` makes the claim in the effect's own commit. In exchange there is no record to see while it runs, what the
   * handler does before its transaction may be done for a copy too, and a copy with another request is then told 409.
   */
  readonly commits?: Commits;
};

/** What of a route's options decides how it runs. */
interface Running {
  readonly effects?: "transaction";
  readonly commits?: Commits;
}

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
export interface Host<Tx, Settles extends Settling>
  extends Pick<Work<Tx, Settles>, "answerOfError" | "failed"> {
  readonly exchange: Exchange;
  readonly run: (context: TransactionContext<Tx, Settles>) => Promise<Response | KeptAnswer>;
}

/** Serves one request of a protected route. */
export type ServeRoute<Tx, Settles extends Settling, HostRequest> = (
  request: HostRequest,
  host: Host<Tx, Settles>,
) => Promise<Response>;

/** What a host knows of one request; how to run the handler is the same everywhere. */
export type HostView = Omit<Host<never, never>, "run">;

/** `protect` of a host whose handlers take a `HostRequest` and answer with a `Response`. */
export interface Protect<HostRequest> {
  <Tx, Settles extends Settling>(
    engine: Engine<Tx, Settles>,
    options: TransactionOptions<HostRequest>,
    handler: (
      request: HostRequest,
      context: TransactionContext<Tx, Settles>,
    ) => Awaitable<KeptAnswer | Response>,
  ): (request: HostRequest) => Promise<Response>;
  <Tx, Settles extends Settling>(
    engine: Engine<Tx, Settles>,
    options: RouteOptions<HostRequest>,
    handler:
      | OperationRoute<HostRequest>
      | ((request: HostRequest, context: RunContext) => Awaitable<Response>),
  ): (request: HostRequest) => Promise<Response>;
}

/** Makes a host's `protect` of what the host knows of a request. */
export function protectOn<HostRequest>(viewOf: (request: HostRequest) => HostView): Protect<HostRequest> {
  return <Tx, Settles extends Settling>(
    engine: Engine<Tx, Settles>,
    options: RouteOptions<HostRequest> & Running,
    handler:
      | OperationRoute<HostRequest>
      | ((
          request: HostRequest,
          context: TransactionContext<Tx, Settles>,
        ) => Awaitable<KeptAnswer | Response>),
  ) => {
    const run = typeof handler === "function" ? handler : null;
    const serve = createRoute(engine, options, typeof handler === "function" ? null : handler);
    return (request) =>
      serve(request, {
        ...viewOf(request),
        run: async (context) => {
          if (run === null) throw new ConfigurationError("operation", UNSAFE_ONLY);
          return await run(request, context);
        },
      });
  };
}

const UNSAFE_ONLY = "cannot be served by a safe method: a GET has no key; mount it for POST or PUT";

/** Joins guard, engine and handler for every host that answers with a `Response`; hosts add nothing but their types. */
function createRoute<Tx, Settles extends Settling, HostRequest>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<HostRequest> & Running,
  operation: OperationRoute<HostRequest> | null,
): ServeRoute<Tx, Settles, HostRequest> {
  refuseImpossible(engine, options, operation);
  const { effects = "none", commits = "two", principal, correlationId, failOpen = false } = options;
  const named = operation === null ? options : { ...options, operation: operation.name };
  const guard = createGuard(engine.context, named);
  return async (request, host) => {
    const caller = { principal: () => principal(request), correlationId: () => correlationId?.(request) };
    const admission = await guard.admit(host.exchange, caller);
    switch (admission.kind) {
      case "pass":
        return await unprotected(host);
      case "refuse":
        return toResponse(admission.reply);
      case "admit":
        if (operation === null)
          return await serve(
            engine,
            guard,
            { ...admission.request, effects, commits, runsAnyway: failOpen },
            host,
          );
        return toResponse(replyToExecuted(await operation.execute(admission.request, request)));
    }
  };
}

async function serve<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  guard: Guard,
  request: BeginRequest,
  host: Host<Tx, Settles>,
): Promise<Response> {
  const begun = await engine.begin(request);
  if (begun.kind === "proceed") return await run(engine, guard, begun.attempt, host);
  const reply = guard.refuse(begun);
  return reply === null ? await failedOpen(engine, request.operation, host) : toResponse(reply);
}

function run<Tx, Settles extends Settling>(
  { context }: Engine<Tx, Settles>,
  guard: Guard,
  attempt: Attempt<Tx>,
  { run, answerOfError, failed }: Host<Tx, Settles>,
): Promise<Response> {
  const { signal } = attempt;
  const contextFor = (transaction: RouteTransaction<Tx, Settles>) => ({
    ...{ signal, transaction },
    get number() {
      return attempt.number;
    },
  });
  return respond<Tx, Settles>(
    { context, guard, attempt },
    { run: ({ transaction }) => run(contextFor(transaction)), answerOfError, failed },
  );
}

/** The handler with no protection: safe methods, and requests without a key where none is required. */
async function unprotected<Tx, Settles extends Settling>({ run }: Host<Tx, Settles>): Promise<Response> {
  const transaction = () => Promise.reject(new ConfigurationError("effects", UNPROTECTED_TRANSACTION));
  const returned = await run({ signal: new AbortController().signal, number: 0, transaction });
  if (returned instanceof Response) return returned;
  throw new ConfigurationError("effects", UNPROTECTED_TRANSACTION);
}

const UNPROTECTED_TRANSACTION =
  '"transaction" commits the record of a key, and this request has none; serve safe methods by a handler of their own';

/** The programmer's word: rather run unprotected than not at all. The answer says so, an error's too. */
async function failedOpen<Tx, Settles extends Settling>(
  { context }: Engine<Tx, Settles>,
  operation: string,
  host: Host<Tx, Settles>,
): Promise<Response> {
  context.emit({ type: "request", operation, outcome: "unprotected" });
  try {
    const response = await unprotected(host);
    return sameResponse(response, response.body, [UNPROTECTED]);
  } catch (error) {
    const response = host.answerOfError(error);
    if (response === null) return await host.failed(error, [UNPROTECTED]);
    return sameResponse(response, response.body, [UNPROTECTED]);
  }
}

const UNPROTECTED: Header = [STATUS_HEADER, "unprotected"];

function refuseImpossible<Tx, Settles extends Settling>(
  { store, transactions }: Engine<Tx, Settles>,
  options: RouteSettings & Running & { readonly principal: unknown },
  operation: unknown,
): void {
  const { principal, effects, commits, failOpen, required, keepHeaders, dropHeaders } = options;
  const refuse = (field: string, reason: string) => {
    throw new ConfigurationError(field, reason);
  };
  if (typeof principal !== "function")
    refuse("principal", "must be a function that tells whose key it is, from the request");
  const atomic = effects === "transaction" || operation !== null;
  if (effects !== undefined && effects !== "transaction")
    refuse("effects", 'must be "transaction" or left out');
  if (commits !== undefined && commits !== "one" && commits !== "two")
    refuse("commits", 'must be "one" or "two"');
  if (commits === "one" && effects !== "transaction")
    refuse("commits", 'can be "one" only with effects: "transaction", whose commit the claim then goes into');
  if (atomic && transactions === null)
    refuse("effects", `"transaction" needs a store with transactions; "${store.name}" has none`);
  if (atomic && failOpen === true)
    refuse("failOpen", "cannot be true here: without the store there is no transaction to run in");
  if (operation !== null && (keepHeaders !== undefined || dropHeaders !== undefined))
    refuse(
      "keepHeaders and dropHeaders",
      "cannot be set here: an operation's answer may be made by a worker",
    );
  if (atomic && required === false)
    refuse("required", "cannot be false here: without a key there is no record to commit the effect with");
}
