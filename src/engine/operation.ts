import type { Duration } from "../core/policy.ts";
import type { Answer, KeyRecord, ProviderKind } from "../core/record.ts";
import { ConfigurationError } from "../errors.ts";
import { type AnswerInit, toAnswer } from "./answer.ts";
import type { BeginRequest } from "./begin.ts";
import { codec } from "./codec.ts";
import { following } from "./command.ts";
import type { Context } from "./context.ts";
import { downstreamKey } from "./downstream-key.ts";
import type { Engine } from "./engine.ts";
import { type Executed, type Execution, executeOperation } from "./execute.ts";
import { type HeaderPolicy, headerPolicy } from "./header-policy.ts";
import type { Awaitable, Returned, Settling } from "./returned.ts";
import type { Settler } from "./settler.ts";
import { optionalMs, refuseUnusable } from "./usable.ts";

/** The attempt as an operation's functions see it. */
export interface AttemptView {
  /** A fencing token: grows with every takeover of the key. */
  readonly number: number;
  /** The key to send to the provider: the same on every attempt until the provider has cancelled it. */
  readonly downstreamKey: string;
  /** The record's primary key in the store's own table, \`oncekey_records (id)\`: for a foreign key of yours. */
  readonly recordId: Uint8Array;
  /**
   * Until when the provider may take the request (`query` with `validFor`), by the database's clock. Send it, or an
   * earlier time where the provider's clock may be slow.
   */
  readonly validUntil: Date | null;
}

export interface RunningAttempt extends AttemptView {
  /** Aborts when the attempt's time is up or its key is lost; in a look or a cancel, when it is waited for no longer. */
  readonly signal: AbortSignal;
}

export type Sighted<Result> =
  | { readonly kind: "found"; readonly result: Result }
  | { readonly kind: "not_found" }
  | { readonly kind: "pending" };

export type Cancelled<Result> =
  | { readonly kind: "cancelled" }
  | { readonly kind: "found"; readonly result: Result };

/**
 * Work with one external effect and rows of its own, described once, so that any process can end it after a crash.
 * `Reference` and `Result` must be plain data; they are kept on the record.
 */
export interface OperationDefinition<Tx, Settles extends Settling, Input, Reference, Result> {
  readonly name: string;
  /** What the provider offers decides what its silence means. */
  readonly provider: ProviderKind;
  /**
   * How long the provider deduplicates by our key (`repeatable`). A call is repeated only as long as it can still reach
   * the provider within it, the attempt's whole running time included.
   */
  readonly keyTtl?: Duration;
  /**
   * How long after the claim the provider takes the request (`query`): it must refuse one that comes after the
   * `validUntil` which `perform` sends. Without it a "not found" is believed after `notFoundGrace` and three looks.
   */
  readonly validFor?: Duration;
  /** Writes the pending row, in one transaction with the claim; must reuse the row of an earlier reference. */
  readonly open: (
    tx: Tx,
    given: { readonly input: Input; readonly reference: Reference | null; readonly attempt: AttemptView },
  ) => Returned<Settles, Reference>;
  /** Calls the provider, outside any transaction. `NotPerformed` says that nothing was done; any other throw says nothing. */
  readonly perform: (given: {
    readonly input: Input;
    readonly reference: Reference;
    readonly attempt: RunningAttempt;
  }) => Promise<Result>;
  /** Writes the final row and makes the answer, in one transaction with the record; a 4xx is a kept refusal. */
  readonly finish: (
    tx: Tx,
    given: { readonly reference: Reference; readonly result: Result; readonly attempt: AttemptView },
  ) => Returned<Settles, AnswerInit>;
  /** Asks the provider what happened; a throw means that it could not be reached. */
  readonly look?: (given: {
    readonly reference: Reference;
    readonly attempt: RunningAttempt;
  }) => Promise<Sighted<Result>>;
  /** Asks the provider to refuse the key for ever. */
  readonly cancel?: (given: {
    readonly reference: Reference;
    readonly attempt: RunningAttempt;
  }) => Promise<Cancelled<Result>>;
  /** Marks the row when it is proved that nothing happened, in one transaction with the record. */
  readonly abandon?: (tx: Tx, given: { readonly reference: Reference }) => Returned<Settles, void>;
}

/** An operation as a host serves it; `protect` of any host takes it in the place of a handler. */
export interface OperationRoute<HostRequest> {
  readonly kind: "operation";
  readonly name: string;
  /** Reads the input first, so that what it throws (a bad body) throws before anything is claimed. */
  readonly execute: (request: OperationRequest, host: HostRequest) => Promise<Executed>;
}

export type OperationRequest = Omit<BeginRequest, "operation" | "effects">;

export interface Operation<Input> {
  readonly name: string;
  readonly route: <HostRequest>(
    input: (host: HostRequest) => Awaitable<Input>,
  ) => OperationRoute<HostRequest>;
  /** Claims, opens, performs and finishes, or says why not. Throws only what `open` threw: nothing was claimed then. */
  readonly execute: (request: OperationRequest, input: Input) => Promise<Executed>;
}

/** The name of an operation's one external effect among the record's steps. */
const STEP = "perform";

/** Makes an operation known to the engine and its workers. Names are unique within an engine. */
export function operation<Tx, Settles extends Settling, Input, Reference, Result>(
  engine: Engine<Tx, Settles>,
  definition: OperationDefinition<Tx, Settles, Input, Reference, Result>,
): Operation<Input> {
  const { name } = definition;
  refuseUnusable(engine, definition);
  const { context, settlers } = engine;
  const viewOf = viewing(engine, definition);
  const settler = settlerOf(definition, viewOf);
  const executionOf = executions(context, definition, viewOf);
  settlers.set(name, settler);
  const execute = (request: OperationRequest, input: Input) =>
    executeOperation(context, settler, executionOf(request, input));
  return {
    name,
    execute,
    route: (inputOf) => ({
      kind: "operation",
      name,
      execute: async (request, host) => execute(request, await inputOf(host)),
    }),
  };
}

/** An operation's parts for one request, with what is kept encoded. */
function executions<Tx, Settles extends Settling, Input, Reference, Result>(
  context: Context<Tx>,
  definition: OperationDefinition<Tx, Settles, Input, Reference, Result>,
  viewOf: View,
): (request: OperationRequest, input: Input) => Execution<Tx> {
  const { name, provider } = definition;
  const keyTtlMs = optionalMs(definition, "keyTtl");
  const validForMs = optionalMs(definition, "validFor");
  const references = codec<Reference>(`the reference of ${name}`);
  const results = codec<Result>(`the result of ${name}`);
  return (request, input) => ({
    request: { ...request, operation: name, effects: "declared" },
    provider,
    validForMs,
    keyTtlMs: keyTtlMs === null ? null : keyTtlMs - (request.maxRunMs ?? context.policy.requestTimeoutMs),
    open: (tx, record) => {
      const reference = record.reference === null ? null : references.decode(record.reference);
      const attempt = viewOf(record);
      const opened: Awaitable<Reference> = definition.open(tx, { input, reference, attempt });
      return following(opened, references.encode);
    },
    perform: async (record, signal) => {
      const reference = referenceOf(references.decode, record);
      const attempt = { ...viewOf(record), signal };
      return results.encode(await definition.perform({ input, reference, attempt }));
    },
  });
}

function settlerOf<Tx, Settles extends Settling, Input, Reference, Result>(
  definition: OperationDefinition<Tx, Settles, Input, Reference, Result>,
  viewOf: View,
): Settler<Tx> {
  const { name, look, cancel } = definition;
  const keeps = headerPolicy({}); // a worker that finishes an operation has no route to ask what to keep
  const { decode } = codec<Reference>(`the reference of ${name}`);
  const results = codec<Result>(`the result of ${name}`);
  const given = (record: KeyRecord) => ({
    reference: referenceOf(decode, record),
    attempt: viewOf(record),
  });
  const asking = (record: KeyRecord, signal: AbortSignal) => ({
    reference: referenceOf(decode, record),
    attempt: { ...viewOf(record), signal },
  });
  const encoded = <T extends { readonly kind: string }>(
    seen: T | { readonly kind: "found"; readonly result: Result },
  ) => ("result" in seen ? { kind: "found" as const, result: results.encode(seen.result) } : seen);
  return {
    step: STEP,
    look: look === undefined ? null : async (record, signal) => encoded(await look(asking(record, signal))),
    cancel:
      cancel === undefined ? null : async (record, signal) => encoded(await cancel(asking(record, signal))),
    finish: (tx, record, result) => {
      const finished: Awaitable<AnswerInit> = definition.finish(tx, {
        ...given(record),
        result: results.decode(result),
      });
      return following(finished, (init): Answer => answerOf(name, init, keeps));
    },
    abandon: (tx, record) => {
      const abandoned: Awaitable<void> | undefined = definition.abandon?.(tx, given(record));
      return abandoned;
    },
  };
}

function answerOf(name: string, init: AnswerInit, keeps: HeaderPolicy): Answer {
  const answer = toAnswer(init);
  if (answer.status < 500) return { ...answer, headers: answer.headers.filter(keeps) };
  const reason = `of ${name} answered ${answer.status}: a finished effect cannot end in a server error; throw instead`;
  throw new ConfigurationError("finish", reason);
}

type View = (record: KeyRecord) => AttemptView;

function viewing<Tx, Settles extends Settling>(
  { store, transactions, context }: Engine<Tx, Settles>,
  { name }: { readonly name: string },
): View {
  if (transactions === null)
    throw new ConfigurationError(
      `operation ${name}: store`,
      `"${store.name}" has no transactions; an operation needs them`,
    );
  return (record) => ({
    number: record.attempt,
    downstreamKey: downstreamKey(context.namespace, record, STEP),
    recordId: transactions.recordId(record.identity),
    validUntil: validUntilOf(record),
  });
}

function validUntilOf({ steps }: KeyRecord): Date | null {
  const step = steps.get(STEP);
  if (step === undefined || step.state === "clear" || step.validUntil === null) return null;
  return new Date(step.validUntil);
}

function referenceOf<Reference>(decode: (bytes: Uint8Array) => Reference, record: KeyRecord): Reference {
  if (record.reference === null)
    throw new Error(`The record of ${record.operation} has no reference; it was not opened.`);
  return decode(record.reference);
}
