import { concludeEnding, type Ending } from "../core/ending.ts";
import { type CheckedName, checkKey, checkOperation, checkPrincipal } from "../core/key.ts";
import { type Duration, parseDuration } from "../core/policy.ts";
import type { Answer, Effects, Identity, KeyRecord } from "../core/record.ts";
import {
  ConfigurationError,
  NotPerformed,
  OncekeyError,
  OutcomeUnknown,
  PermanentFailure,
} from "../errors.ts";
import type { Awaitable } from "../stores/store.ts";
import { ABORTING, addSignal } from "./aborting.ts";
import type { Attempt, Ended, NotOurs } from "./attempt.ts";
import type { Answered, BeginRequest, Begun, Commits } from "./begin.ts";
import { codec } from "./codec.ts";
import { following } from "./command.ts";
import { inputFingerprint } from "./input.ts";
import { type Settled, settled } from "./settled.ts";
import type { Worked } from "./transaction.ts";
import { encodeValue } from "./values.ts";

/** A call of a function that must not run twice. */
export interface RunRequest {
  readonly operation: string;
  readonly principal: string;
  readonly key: string;
  /** What the call is about: the same key with another input is refused. Plain data. */
  readonly input?: unknown;
  readonly correlationId?: string;
  readonly onAmbiguous?: "keep" | "rerun";
  readonly maxRunTime?: Duration;
  /**
   * Names the execution that calls, where something runs the same code again until it has come through: a workflow that
   * was suspended, a job that is delivered anew. Under the same name it goes on as the next attempt, at once and whatever
   * became of the last one; its open steps are judged by their providers, and what it does beside them it does again, by
   * your word. Any other call waits as ever. A name as a key is; two executions that run at once must differ in it.
   */
  readonly execution?: string;
}

/** The same for a function that runs in a transaction. */
export interface TransactionRequest extends RunRequest {
  /**
   * `"one"` makes the claim in the effect's own commit: half the commits and nothing to sweep. In exchange nothing shows
   * while it runs, and a copy with another input that comes meanwhile hears `in_progress`.
   */
  readonly commits?: Commits;
}

/** What the function is told of its attempt. */
export interface RunAttempt {
  readonly number: number;
  readonly signal: AbortSignal;
  readonly downstreamKey: (step: string) => string;
}

/** The same where what it does commits with the record. */
export interface TransactionAttempt extends RunAttempt {
  /**
   * The record's primary key in the store's own table, \`oncekey_records (id)\`: for a foreign key of yours. With
   * \`commits: "one"\` the record is written last, so that the key must be \`DEFERRABLE INITIALLY DEFERRED\`.
   */
  readonly recordId: Uint8Array;
}

/** How a call went; the value of a replay equals the first one's. */
export type Ran<T> =
  | { readonly kind: "first" | "replayed"; readonly value: T }
  /** Refused for good by `PermanentFailure`; every copy of the call is refused alike. */
  | { readonly kind: "refused"; readonly failure: unknown; readonly replayed: boolean }
  /** The attempt lost its key, or its outcome could not be kept: ask again with the same key. */
  | { readonly kind: "unsettled"; readonly record: KeyRecord | null }
  | Exclude<Answered, { readonly kind: "replay" }>;

export type Begin<Tx> = (request: BeginRequest) => Promise<Begun<Tx>>;

/** Not an HTTP answer. */
const NO_STATUS = 0;

/** Tells a refusal from a value where an effect was made before it, and the record is completed all the same. */
const REFUSED_STATUS = 422;

/** Runs `work` unless its outcome is known; throws what `work` threw, once that is on record. */
export async function attemptRun<Tx, T>(
  begin: Begin<Tx>,
  request: RunRequest,
  work: (attempt: RunAttempt) => Awaitable<T>,
): Promise<Ran<T>> {
  refuseCommits(request);
  const begun = await begin(beginRequest(request, "none"));
  if (begun.kind !== "proceed") return answered(request, begun);
  const { attempt } = begun;
  const ran = await settled(() => attempt.watched(() => work(viewOf(attempt))), attempt[ABORTING]);
  if (ran.kind !== "returned") return await failed(request, attempt, errorOf(ran));
  const { ending, error } = keepable(request, ran.value);
  const ended = await attempt.complete(ending.answer);
  if (error === null) return ranBy(request, ended, attempt);
  throw error;
}

/** A value as it is kept. The work is done even where it cannot be; what is thrown then says so. */
export function keepable(
  { operation }: RunRequest,
  value: unknown,
): { readonly ending: Extract<Ending, { kind: "answered" }>; readonly error: OncekeyError | null } {
  const encoded = encodeValue(value);
  if (encoded.kind === "encoded")
    return { ending: { kind: "answered", answer: kept(encoded.bytes) }, error: null };
  const message = `The value of ${operation} cannot be kept: ${encoded.path} ${encoded.reason}. The work is done.`;
  return {
    ending: { kind: "answered", answer: NOT_KEPT },
    error: new OncekeyError("value_unsupported", message),
  };
}

/** Commits what `work` does together with its value; a duplicate gets the value that was committed. */
export async function attemptTransaction<Tx, T>(
  { begin, recordId }: { readonly begin: Begin<Tx>; readonly recordId: (identity: Identity) => Uint8Array },
  request: TransactionRequest,
  work: (tx: Tx, attempt: TransactionAttempt) => Awaitable<T>,
): Promise<Ran<T>> {
  const begun = await begin(Object.assign(beginRequest(request, "transaction"), commitsOf(request)));
  if (begun.kind !== "proceed") return answered(request, begun);
  const { attempt } = begun;
  const values = codec<T>(`the value of ${request.operation}`);
  const unit = (tx: Tx) => {
    return following(work(tx, transactionViewOf(attempt, recordId)), (value): Worked<null> => {
      return { kind: "keep", state: "completed", answer: kept(values.encode(value)), value: null };
    });
  };
  const ran = await settled(() => attempt.watched(() => attempt.transaction(unit)), attempt[ABORTING]);
  if (ran.kind !== "returned") return await failed(request, attempt, errorOf(ran));
  const transacted = ran.value;
  if (transacted.kind === "answered") return answered(request, transacted.answered);
  if (transacted.kind === "undone")
    throw new Error("A transaction was undone although it cannot ask for that.");
  const { record } = transacted;
  return ranBy(request, record === null ? { kind: "lost", record } : { kind: "kept", record }, attempt);
}

export function beginRequest(request: RunRequest, effects: Effects): BeginRequest {
  const { correlationId, onAmbiguous, maxRunTime, execution } = request;
  const run = maxRunTime === undefined ? null : parseDuration(maxRunTime);
  if (run?.kind === "bad") throw new ConfigurationError("maxRunTime", `must be ${run.reason}`);
  const begin = {
    identity: identityOf(request),
    operation: request.operation,
    effects,
    fingerprint: inputFingerprint(request.input),
  };
  return Object.assign(
    begin,
    correlationId === undefined ? null : { correlationId },
    onAmbiguous === undefined ? null : { onAmbiguous },
    run === null ? null : { maxRunMs: run.ms },
    execution === undefined ? null : { execution: usableExecution(execution) },
  );
}

function usableExecution(execution: string): string {
  const checked = checkKey(execution);
  if (checked.kind === "valid") return checked.value;
  throw new ConfigurationError(
    "execution",
    "must be a name of up to 1024 bytes, not blank and without NUL; nothing was run",
  );
}

/** For plain JavaScript, where nothing else says that the option is not read. */
function refuseCommits(request: object): void {
  if ("commits" in request)
    throw new ConfigurationError("commits", "is for runInTransaction; run has no commit of yours");
  if ("effects" in request && request.effects !== undefined)
    throw new ConfigurationError(
      "effects",
      'must be "declared" or left out; runInTransaction has a transaction',
    );
}

function commitsOf({ commits }: TransactionRequest): Pick<BeginRequest, "commits"> {
  if (commits === undefined) return TWO;
  if (commits === "one" || commits === "two") return { commits };
  throw new ConfigurationError("commits", 'must be "one" or "two"');
}

const TWO: Pick<BeginRequest, "commits"> = { commits: "two" };

function identityOf({ principal, operation, key }: RunRequest): Identity {
  return {
    kind: "run",
    principal: usable("principal", "principal_unresolved", checkPrincipal(principal)),
    operation: usable("operation", "configuration", checkOperation(operation)),
    key: usable("key", "key_invalid", checkKey(key)),
  };
}

function usable(what: string, code: OncekeyError["code"], checked: CheckedName): string {
  switch (checked.kind) {
    case "valid":
      return checked.value;
    case "missing":
      throw new OncekeyError(what === "key" ? "key_missing" : code, `There is no ${what}; nothing was run.`);
    case "invalid":
      throw new OncekeyError(code, `${checked.reason} Nothing was run.`);
  }
}

export function answered<T>(request: RunRequest, begun: Answered): Ran<T> {
  if (begun.kind !== "replay") return begun;
  return recalled(request, begun.record, begun.answer, true);
}

export function ranBy<Tx, T>(request: RunRequest, ended: Ended | NotOurs, attempt: Attempt<Tx>): Ran<T> {
  if (ended.kind === "unkept") return { kind: "unsettled", record: null };
  if (ended.kind === "answered") return answered(request, ended.answered);
  const { record } = ended;
  if (record?.state !== "completed" && record?.state !== "failed_permanent")
    return { kind: "unsettled", record };
  return recalled(request, record, record.answer, record.owner !== attempt.record().owner);
}

function recalled<T>(
  request: RunRequest,
  record: KeyRecord,
  { status, body }: Answer,
  replayed: boolean,
): Ran<T> {
  if (body === null) return { kind: "unsettled", record };
  if (status === REFUSED_STATUS) {
    return {
      kind: "refused",
      failure: codec<unknown>(`the refusal of ${request.operation}`).decode(body),
      replayed,
    };
  }
  const value = codec<T>(`the value of ${request.operation}`).decode(body);
  return { kind: replayed ? "replayed" : "first", value };
}

async function failed<Tx, T>(request: RunRequest, attempt: Attempt<Tx>, error: unknown): Promise<Ran<T>> {
  const conclusion = concludeEnding(attempt.record(), endingOf(error));
  switch (conclusion.kind) {
    case "conclude": {
      const ended = await attempt.fail(conclusion.answer);
      if (conclusion.answer.body === null) throw error;
      return ranBy(request, ended, attempt);
    }
    case "release": {
      const ended = await attempt.release();
      if (ended.kind === "lost" || ended.kind === "answered") return ranBy(request, ended, attempt);
      throw error;
    }
    case "doubt": {
      const ended = await attempt.doubt(conclusion.doubt);
      if (ended.kind === "lost" || ended.kind === "answered") return ranBy(request, ended, attempt);
      throw error;
    }
  }
}

export function endingOf(error: unknown): Ending {
  if (error instanceof NotPerformed) return { kind: "not_performed" };
  if (error instanceof OutcomeUnknown) return { kind: "outcome_unknown", reason: error.message };
  if (!(error instanceof PermanentFailure)) return { kind: "threw" };
  const encoded = encodeValue(error.answer);
  const body = encoded.kind === "encoded" ? encoded.bytes : null;
  return { kind: "permanent_failure", answer: { status: REFUSED_STATUS, headers: [], body } };
}

function viewOf<Tx>({ number, downstreamKey, [ABORTING]: aborting }: Attempt<Tx>): RunAttempt {
  const view = { number, downstreamKey, [ABORTING]: aborting };
  addSignal(view);
  return view;
}

function transactionViewOf<Tx>(
  { number, downstreamKey, identity, [ABORTING]: aborting }: Attempt<Tx>,
  recordId: (identity: Identity) => Uint8Array,
): TransactionAttempt {
  const view = { number, downstreamKey, recordId: recordId(identity), [ABORTING]: aborting };
  addSignal(view);
  return view;
}

export function errorOf(ran: Exclude<Settled<unknown>, { kind: "returned" }>): unknown {
  if (ran.kind === "threw") return ran.error;
  return ran.late === null ? new NotPerformed("The attempt had no time left to begin.") : ran.reason;
}

/** The work is done, its value is not repeatable. */
const NOT_KEPT: Answer = { status: NO_STATUS, headers: [], body: null };

function kept(body: Uint8Array): Answer {
  return { status: NO_STATUS, headers: [], body };
}
