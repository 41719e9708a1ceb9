import { ABORTING, addSignal } from "../engine/aborting.ts";
import type { BeginRequest, Commits } from "../engine/begin.ts";
import type { Engine } from "../engine/engine.ts";
import type { Executed } from "../engine/execute.ts";
import { addNumber, NUMBERED } from "../engine/numbered.ts";
import type { OperationRoute } from "../engine/operation.ts";
import { declareRoute } from "../engine/protected-route.ts";
import type { Awaitable, Settling } from "../engine/returned.ts";
import type { StepDefinitions } from "../engine/step-definitions.ts";
import { ConfigurationError } from "../errors.ts";
import { type AttemptDoors, type DoorUse, doorsOf } from "./attempt-doors.ts";
import { type Authorise, type AuthorizeReplay, authorising, type ReplayView } from "./authorising.ts";
import { type Exchange, type Header, type Reply, STATUS_HEADER } from "./exchange.ts";
import { type Caller, createGuard, type Guard, type RouteSettings } from "./guard.ts";
import { observed } from "./observe.ts";
import { type Outgoing, replied } from "./outgoing.ts";
import { recordOf, replyToExecuted } from "./replies.ts";
import { respond, type Work } from "./responder.ts";
import { servedAsResponse } from "./response-host.ts";
import { describedBy, type Running, refuseImpossible, stepsFor } from "./route-options.ts";
import type { KeptAnswer, RouteTransaction } from "./transaction-door.ts";
import { withoutAttempt } from "./unprotected.ts";
import { take } from "./unsupported.ts";

/** A protected route's options; `HostRequest` is what the host hands to handlers. */
export interface RouteOptions<HostRequest> extends RouteSettings {
  /**
   * Who the key belongs to: the authenticated caller, never the credential itself. May be a promise of it. Callers whom
   * nobody knows are said by `sharedPrincipal(reason)`.
   */
  readonly principal: (request: HostRequest) => unknown;
  /** Kept on the record, so that one query answers a support question. */
  readonly correlationId?: (request: HostRequest) => string | undefined;
  /**
   * What stands for the body where its bytes are others at each attempt, as those of every multipart form are: plain data
   * or bytes, or a promise of them. The body is left to the handler then, unread. Nothing, and it stands for itself.
   */
  readonly fingerprint?: (request: HostRequest) => unknown;
  /**
   * Asked before a copy is told anything of the record of its key, its kept answer most of all: for permissions on single
   * objects that may have been taken away since. No is 403; a throw is 500, and tells nothing.
   */
  readonly authorizeReplay?: AuthorizeReplay<HostRequest>;
}

export type TransactionOptions<HostRequest> = RouteOptions<HostRequest> & {
  readonly effects: "transaction";
  /**
   * `"one"` makes the claim in the effect's own commit. In exchange there is no record to see while it runs, what the
   * handler does before its transaction may be done for a copy too, and a copy with another request is then told 409.
   */
  readonly commits?: Commits;
};

/** Every external effect of the handler is a step, made by `effect`. */
export type DeclaredOptions<HostRequest> = RouteOptions<HostRequest> & {
  readonly effects: "declared";
  /** Steps whose providers can be asked; the route needs an `operation` then, by which a worker finds them. */
  readonly steps?: StepDefinitions;
};

/** The handler calls `effectsBegin` where its validation ends. */
export type BeginningOptions<HostRequest> = RouteOptions<HostRequest> & { readonly effectsBegin: true };

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

export type DeclaredContext = RunContext & Pick<AttemptDoors, "effect" | "downstreamKey">;

export type BeginningContext = RunContext & Pick<AttemptDoors, "effectsBegin">;

/** All that a handler may be handed; its type hands out what its route says. */
export type RouteContext<Tx, Settles extends Settling> = TransactionContext<Tx, Settles> & AttemptDoors;

/** Called once an unprotected answer is on its way out, by its status; `null` where it broke off, or nothing said one. */
export type AnswerEnded = (status: number | null) => void;

/** How a host runs what stands behind the guard. */
export interface Host<Tx, Settles extends Settling>
  extends Pick<Work<Tx, Settles>, "answerOfError" | "failed"> {
  readonly exchange: Exchange;
  /** Calls `handlerEnded` as soon as the handler has ended; its answer may take longer. */
  readonly run: (
    context: RouteContext<Tx, Settles>,
    handlerEnded: () => void,
  ) => Promise<Outgoing | KeptAnswer>;
  /** The handler as it was, with these headers on whatever comes of it. */
  readonly unprotected: (
    context: RouteContext<Tx, Settles>,
    added: readonly Header[],
    ended?: AnswerEnded,
  ) => Promise<Outgoing>;
}

/** Serves one request of a protected route. */
export type ServeRoute<Tx, Settles extends Settling, HostRequest> = (
  request: HostRequest,
  host: Host<Tx, Settles>,
) => Promise<Outgoing>;

/** What a host of `Response`s knows of one request; how to run the handler is the same for all of them. */
export interface HostView {
  readonly exchange: Exchange;
  /** An error that carries an HTTP status is an answer; `null` for any other. */
  readonly answerOfError: (error: unknown) => Response | null;
  /** Lets the host answer an error as it always does, with these headers on it as far as the host allows. */
  readonly failed: (error: unknown, added: readonly Header[]) => Promise<Response>;
}

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
    options: DeclaredOptions<HostRequest>,
    handler: (request: HostRequest, context: DeclaredContext) => Awaitable<Response>,
  ): (request: HostRequest) => Promise<Response>;
  <Tx, Settles extends Settling>(
    engine: Engine<Tx, Settles>,
    options: BeginningOptions<HostRequest>,
    handler: (request: HostRequest, context: BeginningContext) => Awaitable<Response>,
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
      | ((request: HostRequest, context: RouteContext<Tx, Settles>) => Awaitable<KeptAnswer | Response>),
  ) => {
    const run = typeof handler === "function" ? handler : null;
    const serve = createRoute(engine, options, typeof handler === "function" ? null : handler);
    return (request) =>
      servedAsResponse<Tx, Settles>(
        viewOf(request),
        async (context) => {
          if (run === null) throw unsafeOnly();
          return await run(request, context);
        },
        (host) => serve(request, host),
      );
  };
}

/** An operation has no handler that could be run without a key. */
export function unsafeOnly(): ConfigurationError {
  return new ConfigurationError("operation", UNSAFE_ONLY);
}

const UNSAFE_ONLY = "cannot be served by a safe method: a GET has no key; mount it for POST or PUT";

/** Joins guard, engine and handler for every host; hosts add nothing but how they are asked and how they answer. */
export function createRoute<Tx, Settles extends Settling, HostRequest>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<HostRequest> & Running,
  operation: OperationRoute<HostRequest> | null,
): ServeRoute<Tx, Settles, HostRequest> {
  refuseImpossible(engine, options, operation !== null);
  const { effects = "none", commits = "two", effectsBegin = false, failOpen = false } = options;
  const { authorizeReplay } = options;
  const use = { steps: stepsFor(engine, options), begins: effectsBegin };
  const named = operation === null ? options : { ...options, operation: operation.name };
  const guard = createGuard(engine.context, named);
  declareRoute(engine.routes, describedBy(options, operation?.name ?? null));
  return async (request, host) => {
    const caller = callerOf(options, request);
    if (options.observe === true) return await observed(engine, guard, caller, host);
    const ask = authorizeReplay === undefined ? null : (view: ReplayView) => authorizeReplay(view, request);
    const authorise = authorising(engine.context, ask);
    const admission = await guard.admit(host.exchange, caller);
    if (admission.kind !== "pass") take(request);
    switch (admission.kind) {
      case "pass":
        return await host.unprotected(withoutAttempt(), []);
      case "refuse":
        return replied(admission.reply);
      case "admit":
        if (operation === null) {
          const asked: BeginRequest = {
            ...admission.request,
            effects,
            commits,
            effectsBegin,
            runsAnyway: failOpen,
          };
          return await serve(engine, guard, { asked, use, authorise }, host);
        }
        return replied(await executed(await operation.execute(admission.request, request), authorise));
    }
  };
}

function callerOf<HostRequest>(
  { principal, correlationId, fingerprint }: RouteOptions<HostRequest>,
  request: HostRequest,
): Caller {
  return {
    principal: () => principal(request),
    correlationId: () => correlationId?.(request),
    fingerprint: () => fingerprint?.(request),
  };
}

async function executed(ended: Executed, authorise: Authorise): Promise<Reply> {
  return await authorise(recordOf(ended), () => replyToExecuted(ended));
}

/** One request of a route on its way. */
interface Serving {
  readonly asked: BeginRequest;
  readonly use: Omit<DoorUse, "maxRunMs">;
  readonly authorise: Authorise;
}

async function serve<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  guard: Guard,
  { asked, use, authorise }: Serving,
  host: Host<Tx, Settles>,
): Promise<Outgoing> {
  const begun = await engine.begin(asked);
  if (begun.kind !== "proceed") {
    const reply = guard.refuse(begun);
    if (reply === null) return await failedOpen(engine, asked.operation, host);
    return replied(await authorise(recordOf(begun), () => reply));
  }
  const { context, policy } = engine;
  const { maxRunMs = policy.requestTimeoutMs } = asked;
  return await run({ context, guard, attempt: begun.attempt, authorise }, { ...use, maxRunMs }, host);
}

function run<Tx, Settles extends Settling>(
  running: Omit<Parameters<typeof respond<Tx, Settles>>[0], "gate">,
  use: DoorUse,
  { run, answerOfError, failed }: Host<Tx, Settles>,
): Promise<Outgoing> {
  const { attempt } = running;
  const { gate, ...doors } = doorsOf(running.context, attempt, use);
  const contextFor = (transaction: RouteTransaction<Tx, Settles>) => {
    const made = {
      transaction,
      ...doors,
      [ABORTING]: attempt[ABORTING],
      [NUMBERED]: () => attempt.number,
    };
    addSignal(made);
    addNumber(made);
    return made;
  };
  return respond<Tx, Settles>(
    { ...running, gate },
    {
      run: ({ transaction, handlerEnded }) => run(contextFor(transaction), handlerEnded),
      answerOfError,
      failed,
    },
  );
}

/** The programmer's word: rather run unprotected than not at all. The answer says so, an error's too. */
async function failedOpen<Tx, Settles extends Settling>(
  { context }: Engine<Tx, Settles>,
  operation: string,
  host: Host<Tx, Settles>,
): Promise<Outgoing> {
  context.emit({ type: "request", operation, outcome: "unprotected" });
  return await host.unprotected(withoutAttempt(), [UNPROTECTED]);
}

const UNPROTECTED: Header = [STATUS_HEADER, "unprotected"];
