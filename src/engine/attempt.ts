import type { Match } from "../core/decide.ts";
import { keepOf } from "../core/policy.ts";
import type { Answer, Identity, InProgress, KeyRecord, RecordWrite } from "../core/record.ts";
import { openMarks } from "../core/step.ts";
import { conclude, type Doubt, doubt, release, touch } from "../core/transition.ts";
import { judgeDeath } from "../core/verdict.ts";
import { OncekeyError, OutcomeUnknown } from "../errors.ts";
import type { Awaitable } from "../stores/store.ts";
import { ABORTING, type Aborting, addSignal } from "./aborting.ts";
import type { Answered } from "./begin.ts";
import { type Checkpoints, checkpointsOf } from "./checkpoint.ts";
import type { Context } from "./context.ts";
import { downstreamKey } from "./downstream-key.ts";
import type { Held } from "./ending.ts";
import { keepAlive } from "./heartbeat.ts";
import { createHolding, type Holding } from "./holding.ts";
import { type Transacted, transactionFlow, type Worked } from "./transaction.ts";

/** How an ending went. */
export type Ended =
  | { readonly kind: "kept"; readonly record: KeyRecord }
  /** Somebody else owns the key, or its ending stands already. */
  | { readonly kind: "lost"; readonly record: KeyRecord | null }
  /** The store did not take it in time; writing goes on until the lease ends. */
  | { readonly kind: "unkept" };

/**
 * The key was not this attempt's to take (`commits: "one"`, whose claim is in its last commit), or it was lost to a request
 * that asks for something else.
 */
export interface NotOurs {
  readonly kind: "answered";
  readonly answered: Answered;
}

/**
 * One execution under one claim. It ends once, by `complete`, `fail`, `release`, `doubt` or a committed transaction.
 * Every write it makes names it, and changes nothing once it has lost its key.
 */
export interface Attempt<Tx> extends Checkpoints {
  readonly identity: Identity;
  readonly operation: string;
  /** A fencing token for the user's own statements: grows with every takeover of the key; 0 before there is a claim. */
  readonly number: number;
  /** Aborts at `requestTimeout`, and when the key is lost; not when the client hangs up. */
  readonly signal: AbortSignal;
  /** The same for the engine's own parts. */
  readonly [ABORTING]: Aborting;
  /** The record as this attempt last wrote it. */
  readonly record: () => Held;
  readonly downstreamKey: (step: string) => string;
  /** Runs the programmer's part; what `engine.watch` was given tells then of writes that go round `transaction`. */
  readonly watched: <T>(run: () => Awaitable<T>) => Awaitable<T>;
  /** Commits what `run` does together with the record and its answer; at most once in an attempt. */
  readonly transaction: <T>(run: (tx: Tx) => Awaitable<Worked<T>>) => Promise<Transacted<T> | NotOurs>;
  readonly complete: (answer: Answer) => Promise<Ended | NotOurs>;
  readonly fail: (answer: Answer) => Promise<Ended | NotOurs>;
  readonly release: () => Promise<Ended | NotOurs>;
  readonly doubt: (doubt: Doubt) => Promise<Ended | NotOurs>;
  /**
   * Judges the attempt as if it had died just now and aborts its signal, for a process that must stop. An ending under
   * way stands, and what the work brings after all is a late result.
   */
  readonly abandon: (reason: string) => Promise<Ended | NotOurs>;
  /**
   * Ends by a flow of another kind (an operation's), in this attempt's own order of writes; `untilMs` is its lease's end
   * on our own monotonic clock.
   */
  readonly endBy: (ending: (held: Held, untilMs: number) => Promise<Ended>) => Promise<Ended | NotOurs>;
}

export interface Start {
  readonly record: InProgress;
  /** On our own clock, read before the claim was sent: our idea of the lease never outlasts the store's. */
  readonly startedMs: number;
  readonly maxRunMs: number;
  /** How the attempt's request compares with that of a record. */
  readonly match: (record: KeyRecord) => Match;
  /** Called once nothing more will be written for this attempt. */
  readonly onEnded: () => void;
}

export function createAttempt<Tx>(context: Context<Tx>, start: Start): Attempt<Tx> {
  const { record, match, onEnded } = start;
  const { identity, operation, effects } = record;
  const holding = createHolding(context, record, start.startedMs);
  const stop = keepAlive(context, holding, start.maxRunMs);
  let ended = false;
  const closing = (write: () => Promise<Ended>) => {
    stop();
    return heldFor(context, operation, lastWrite(holding, write, match).finally(onEnded));
  };
  const endBy: Attempt<Tx>["endBy"] = async (ending) => {
    if (ended) throw alreadyEnded(record);
    ended = true;
    return await closing(() => ending(holding.held(), holding.leaseEndMs()));
  };
  const transaction = async <T>(run: (tx: Tx) => Awaitable<Worked<T>>): Promise<Transacted<T> | NotOurs> => {
    if (ended) throw alreadyEnded(record);
    const transacted = await transact(context, holding, run);
    // An ending may have been asked for while it was committing; the commit is the ending then.
    ended ||= transacted.kind === "committed";
    if (transacted.kind === "undone") return transacted;
    stop();
    onEnded();
    return transacted.kind === "lost" ? lostTo(transacted, match) : transacted;
  };
  const abandon = async (reason: string): Promise<Ended | NotOurs> => {
    if (ended) return { kind: "unkept" };
    holding.aborting.abort(new OutcomeUnknown(reason));
    const next = (held: Held) => judged(context, held, reason);
    return await closing(async () => keptOrLost(await holding.write(next)));
  };
  const hasEnded = () => ended;
  const watched = <T>(run: () => Awaitable<T>) =>
    context.watch.within({ identity, operation, effects, hasEnded }, run);
  return madeOf(context, holding, { record, watched, transaction, endBy, abandon });
}

interface Parts<Tx> extends Pick<Attempt<Tx>, "watched" | "endBy" | "abandon"> {
  readonly record: InProgress;
  readonly transaction: <T>(run: (tx: Tx) => Awaitable<Worked<T>>) => Promise<Transacted<T> | NotOurs>;
}

function madeOf<Tx>(
  context: Context<Tx>,
  holding: Holding,
  { record, watched, transaction, endBy, abandon }: Parts<Tx>,
): Attempt<Tx> {
  const { identity, operation, attempt: number } = record;
  const end = (next: (held: Held) => RecordWrite) => endBy(() => writeWhatFits(holding, next));
  const { checkpoint, learn } = checkpointsOf(context, holding);
  const attempt = {
    identity,
    operation,
    number,
    [ABORTING]: holding.aborting,
    record: holding.held,
    downstreamKey: (step: string) => downstreamKey(context.namespace, holding.held(), step),
    watched,
    transaction: atMostOnce(operation, transaction),
    complete: (answer: Answer) => end((held) => concludedBy(context, held, "completed", answer)),
    fail: (answer: Answer) => end((held) => concludedBy(context, held, "failed_permanent", answer)),
    release: () => end((held) => releasedBy(context, held)),
    doubt: (reasoned: Doubt) => end((held) => doubtedBy(context, held, reasoned)),
    abandon,
    endBy,
    checkpoint,
    learn,
  };
  addSignal(attempt);
  return attempt;
}

export function alreadyEnded({
  attempt,
  operation,
}: Pick<InProgress, "attempt" | "operation">): OncekeyError {
  return new OncekeyError("attempt_ended", `Attempt ${attempt} of ${operation} has already ended.`);
}

/** What an attempt writes in the end, in its own order of writes; a key that turns out to be lost is told. */
function lastWrite(
  holding: Holding,
  write: () => Promise<Ended>,
  match: Start["match"],
): Promise<Ended | NotOurs> {
  return holding.serially(async () => {
    const end = await write();
    if (end.kind !== "lost") return end;
    holding.lose("Another attempt or a worker has taken this key over.");
    return lostTo(end, match);
  });
}

type Lost = Extract<Ended, { kind: "lost" }>;

/** Who lost a released key to a corrected request is told no more than any other copy: what is kept is not its answer. */
export function lostTo(lost: Lost, match: Start["match"]): Lost | NotOurs {
  const { record } = lost;
  if (record === null || record.state === "released") return lost;
  switch (match(record)) {
    case "same":
      return lost;
    case "other":
      return { kind: "answered", answered: { kind: "mismatch", record } };
    case "unverifiable":
      return { kind: "answered", answered: { kind: "unverifiable", record } };
  }
}

function judged<Tx>(context: Context<Tx>, record: Held, reason: string): RecordWrite {
  const verdict = judgeDeath(record, reason);
  return verdict.kind === "release" ? releasedBy(context, record) : doubtedBy(context, record, verdict.doubt);
}

/** The work is done even where the store refuses its answer for its size: then the answer goes on record without its body. */
export async function whatFits<E>(keep: (fitting: (answer: Answer) => Answer) => Promise<E>): Promise<E> {
  try {
    return await keep((answer) => answer);
  } catch (error) {
    if (!(error instanceof OncekeyError) || error.code !== "record_too_large") throw error;
    return await keep((answer) => ({ ...answer, body: null }));
  }
}

async function writeWhatFits(holding: Holding, next: (record: Held) => RecordWrite): Promise<Ended> {
  return keptOrLost(await whatFits((fitting) => holding.write((record) => fitted(next(record), fitting))));
}

function fitted(write: RecordWrite, fitting: (answer: Answer) => Answer): RecordWrite {
  return "answer" in write ? { ...write, answer: fitting(write.answer) } : write;
}

/** The version that ends an attempt in doubt. */
function doubtedBy<Tx>(context: Context<Tx>, record: Held, reasoned: Doubt): RecordWrite {
  // What its last call came to was heard of in the meantime, and nothing is in doubt any more.
  if (record.effects === "declared" && openMarks(record.steps).length === 0)
    return releasedBy(context, record);
  const { runtime, policy } = context;
  const writeId = runtime.newId();
  if (record.state === "unknown") return touch(record, { writeId });
  return doubt(record, { writeId, doubt: reasoned, heldRetainMs: policy.unknownRetentionMs });
}

function releasedBy<Tx>({ runtime, policy }: Context<Tx>, record: Held): RecordWrite {
  return release(record, { writeId: runtime.newId(), retainMs: policy.releasedRetentionMs });
}

function concludedBy<Tx>(
  { runtime, policy }: Context<Tx>,
  record: Held,
  state: "completed" | "failed_permanent",
  answer: Answer,
): RecordWrite {
  return conclude(record, { writeId: runtime.newId(), state, answer, keep: keepOf(policy) });
}

/** Contention may send a transaction back this often before it is given up. */
export const TRANSACTION_TRIES = 5;

async function transact<Tx, T>(
  { driver, policy, runtime }: Context<Tx>,
  holding: Holding,
  run: (tx: Tx) => Awaitable<Worked<T>>,
): Promise<Transacted<T>> {
  const aborted = holding.aborting.reason();
  if (aborted !== null) throw aborted;
  const { operation } = holding.held();
  const transacted = await holding.serially(() => {
    const untilMs = holding.leaseEndMs();
    const work = { name: operation, run, newId: runtime.newId, keep: keepOf(policy) };
    return driver.drive(
      transactionFlow(holding.held(), work, { untilMs, tries: TRANSACTION_TRIES }, untilMs),
    );
  });
  if (transacted.kind === "lost") holding.lose("The fence kept the transaction out: the key was taken over.");
  return transacted;
}

export function atMostOnce<Tx>(
  operation: string,
  transaction: Attempt<Tx>["transaction"],
): Attempt<Tx>["transaction"] {
  let used = false;
  return async (run) => {
    const message = `${operation} called transaction() a second time; an attempt commits once, so put both parts into one call.`;
    if (used) throw new OncekeyError("transaction_repeated", message);
    used = true;
    return await transaction(run);
  };
}

function keptOrLost(
  written: { kind: "written"; record: KeyRecord } | { kind: "lost"; record: KeyRecord | null },
): Ended {
  return written.kind === "lost" ? written : { kind: "kept", record: written.record };
}

/** Waits for the keeping as long as an answer may be held; a failure is told to the listeners, and is not an ending. */
export function heldFor<Tx, Other = never>(
  { policy, runtime, emit }: Context<Tx>,
  operation: string,
  writing: Promise<Ended | Other>,
): Promise<Ended | Other> {
  return new Promise((resolve) => {
    const unkept = () => resolve({ kind: "unkept" });
    const cancel = runtime.after(policy.completionTimeoutMs, unkept);
    const failed = (error: unknown) => {
      cancel();
      emit({ type: "failure", what: `keeping the outcome of ${operation}`, error });
      unkept();
    };
    writing.then((ended) => {
      cancel();
      resolve(ended);
    }, failed);
  });
}
