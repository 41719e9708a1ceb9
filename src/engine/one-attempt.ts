import { keepOf } from "../core/policy.ts";
import { type Answer, type InProgress, type KeyRecord, stamp } from "../core/record.ts";
import { claim, renounce, seen } from "../core/transition.ts";
import { OutcomeUnknown } from "../errors.ts";
import type { Awaitable } from "../stores/store.ts";
import { ABORTING, type Aborting, addSignal, createAborting } from "./aborting.ts";
import {
  type Attempt,
  alreadyEnded,
  atMostOnce,
  type Ended,
  heldFor,
  lostTo,
  type NotOurs,
  TRANSACTION_TRIES,
  whatFits,
} from "./attempt.ts";
import {
  answeredFailure,
  type BeginRequest,
  CLAIM_TRIES,
  outcomeOf,
  tellMoves,
  tellSealed,
} from "./begin.ts";
import { type Asked, claimFlow } from "./claim.ts";
import { type Flow, replace } from "./command.ts";
import type { Context } from "./context.ts";
import { unused } from "./disclaim.ts";
import { downstreamKey } from "./downstream-key.ts";
import type { EngineEvent } from "./events.ts";
import { tellMismatch } from "./mismatch.ts";
import { addNumber, NUMBERED } from "./numbered.ts";
import { once } from "./once.ts";
import { type OneCommitted, oneCommitFlow } from "./one-commit.ts";
import { rerunsOf } from "./override.ts";
import { createQueue } from "./queue.ts";
import { type Budget, persist } from "./retry.ts";
import type { Transacted, Worked } from "./transaction.ts";

export interface OneStart {
  readonly request: BeginRequest;
  readonly asked: Asked;
  readonly maxRunMs: number;
  /** Called once nothing more will be written for this attempt. */
  readonly onEnded: () => void;
}

/**
 * An attempt whose claim is in the effect's own commit: until then nothing of it stands, so that nothing is renewed and
 * nothing is left to sweep. Its number is 0 until a transaction of its own has begun.
 */
export function createOneCommitAttempt<Tx>(context: Context<Tx>, start: OneStart): Attempt<Tx> {
  const { identity, operation, effects } = start.asked.claim;
  const commits = committing(context, start);
  const limit = limited(context, start);
  const { aborting } = limit;
  let ended = false;
  const refuseEnded = () => {
    if (ended) throw alreadyEnded({ attempt: 0, operation });
  };
  const endings = endingsOf(commits, (write) => {
    refuseEnded();
    ended = true;
    return heldFor<Tx, NotOurs>(context, operation, write().finally(limit.over));
  });
  const transaction = async <T>(run: (tx: Tx) => Awaitable<Worked<T>>): Promise<Committed<T>> => {
    refuseEnded();
    const aborted = aborting.reason();
    if (aborted !== null) throw aborted;
    const end = await commits.commit(run);
    if (end.kind === "undone") return end;
    ended = true;
    limit.over();
    return end;
  };
  const abandon = async (reason: string): Promise<Ended> => {
    aborting.abort(new OutcomeUnknown(reason));
    // Not an ending: what the work brings after all is judged by what stands then.
    if (!ended) await heldFor<Tx, NotOurs>(context, operation, commits.undone().finally(limit.over));
    return { kind: "unkept" };
  };
  const hasEnded = () => ended;
  const watched = <T>(run: () => Awaitable<T>) =>
    context.watch.within({ identity, operation, effects, hasEnded }, run);
  return madeOf(context, start, { commits, aborting, watched, transaction, endings, abandon });
}

/** Until its one commit there is nothing that could be written over. */
function noRecord(operation: string) {
  const none = () => Promise.reject(new Error(`${operation} has no record before its commit.`));
  return { endBy: none, checkpoint: none, learn: none };
}

interface Parts<Tx> extends Pick<Attempt<Tx>, "watched" | "transaction" | "abandon"> {
  readonly commits: Committing<Tx>;
  readonly aborting: Aborting;
  readonly endings: Pick<Attempt<Tx>, "complete" | "fail" | "release" | "doubt">;
}

function madeOf<Tx>(
  { namespace }: Context<Tx>,
  { asked }: OneStart,
  { commits, aborting, watched, transaction, endings, abandon }: Parts<Tx>,
): Attempt<Tx> {
  const { identity, operation } = asked.claim;
  const record = once(() => draftOf(asked));
  const { endBy, checkpoint, learn } = noRecord(operation);
  const attempt = {
    identity,
    operation,
    record,
    [ABORTING]: aborting,
    [NUMBERED]: commits.number,
    downstreamKey: (step: string) => downstreamKey(namespace, record(), step),
    watched,
    transaction: atMostOnce(operation, transaction),
    complete: endings.complete,
    fail: endings.fail,
    release: endings.release,
    doubt: endings.doubt,
    abandon,
    endBy,
    checkpoint,
    learn,
  };
  addSignal(attempt);
  addNumber(attempt);
  return attempt;
}

function draftOf({ claim: asked }: Asked): InProgress {
  const draft = stamp(claim(asked), NOTHING_YET);
  if (draft.state !== "in_progress") throw new Error("A claim is in progress.");
  return draft;
}

/** Aborts the attempt's signal when its time is up. */
function limited<Tx>({ runtime }: Context<Tx>, { maxRunMs, onEnded }: OneStart) {
  const aborting = createAborting();
  const cancel = runtime.after(maxRunMs, () =>
    aborting.abort(new OutcomeUnknown(`The work did not end within ${maxRunMs} ms.`)),
  );
  const over = () => {
    cancel();
    onEnded();
  };
  return { aborting, over };
}

type EndBy = (write: () => Promise<Ended | NotOurs>) => Promise<Ended | NotOurs>;

/** A local effect leaves nothing in doubt: whatever is not kept is undone. */
function endingsOf<Tx>({ commit, undone }: Committing<Tx>, endBy: EndBy) {
  const kept = async (state: "completed" | "failed_permanent", answer: Answer) =>
    endedBy(await commit(() => ({ kind: "keep", state, answer, value: null })));
  const keep = (state: "completed" | "failed_permanent") => async (answer: Answer) =>
    await endBy(() => whatFits((fitting) => kept(state, fitting(answer))));
  const undo = async () => await endBy(undone);
  return { complete: keep("completed"), fail: keep("failed_permanent"), release: undo, doubt: undo };
}

function endedBy(end: Committed<unknown>): Ended | NotOurs {
  switch (end.kind) {
    case "committed":
      return { kind: "kept", record: end.record };
    case "lost":
    case "answered":
      return end;
    case "undone":
      throw new Error("An answer was not kept although nothing had refused it.");
  }
}

/** Of a version that stands nowhere. */
const NOTHING_YET = { attempt: 0, revision: 0, updatedAt: 0 };

interface Committing<Tx> extends Commits<Tx> {
  /** Ends without an effect, or tells what stands after all; a commit in doubt can never be applied afterwards. */
  readonly undone: () => Promise<Ended | NotOurs>;
}

interface Commits<Tx> {
  readonly number: () => number;
  readonly commit: <T>(run: (tx: Tx) => Awaitable<Worked<T>>) => Promise<Committed<T>>;
}

type Committed<T> = Transacted<T> | NotOurs;

/** The commits of one attempt, one after another, and what they come to. */
function committing<Tx>(shared: Context<Tx>, start: OneStart): Committing<Tx> {
  const context = countingOnce(shared);
  const serially = createQueue();
  const { number, inDoubt, commit } = commitsOf(context, start);
  let last: Ended | NotOurs | null = null;
  const kept = async <T>(run: (tx: Tx) => Awaitable<Worked<T>>): Promise<Committed<T>> => {
    const end = await commit(run);
    if (end.kind === "committed") last = { kind: "lost", record: end.record };
    else if (end.kind !== "undone") last = end;
    return end;
  };
  const undone = async (): Promise<Ended | NotOurs> => {
    // Where no transaction has begun the key may be another's: a copy is never told that nothing was done.
    if (last === null && number() === 0 && !inDoubt()) await kept(() => UNDONE);
    if (last !== null) return last;
    context.emit({ type: "request", operation: start.request.operation, outcome: "claimed" });
    last = inDoubt() ? await undo(context, start.asked) : { kind: "kept", record: nothingOf(start.asked) };
    return last;
  };
  return { number, commit: (run) => serially(() => kept(run)), undone: () => serially(undone) };
}

const UNDONE: Worked<null> = { kind: "undo", value: null };

/** Commits, each in its own bounds. */
function commitsOf<Tx>(
  context: Context<Tx>,
  { request, asked, maxRunMs }: OneStart,
): Commits<Tx> & { readonly inDoubt: () => boolean } {
  const { driver, policy, runtime } = context;
  // As much later than the end of the work as a lease would end.
  const untilMs = runtime.monotonicMs() + maxRunMs + policy.leaseMs - policy.requestTimeoutMs;
  let [number, inDoubt] = [0, false];
  const onUnheard = () => {
    inDoubt = true;
  };
  const commit = async <T>(run: (tx: Tx) => Awaitable<Worked<T>>): Promise<Committed<T>> => {
    const begunMs = runtime.monotonicMs();
    const early = { untilMs: begunMs + policy.storeTimeoutMs, tries: CLAIM_TRIES };
    const late = { untilMs, tries: TRANSACTION_TRIES };
    const numbered = (tx: Tx, given: number) => {
      number = given;
      return run(tx);
    };
    const bounds = { keep: keepOf(policy), untilMs };
    const claiming = { asked, run: numbered, writeId: asked.newId(), onUnheard, ...bounds };
    const budget = () => (number === 0 ? early : late);
    try {
      const flow = oneCommitFlow<Tx, T>(claiming, budget);
      const committed = await driver.drive(flow, { untilMs: () => budget().untilMs });
      tell(context, request, committed);
      return committed.end;
    } catch (error) {
      if (number > 0) throw error;
      return { kind: "answered", answered: answeredFailure(context, request, error) };
    }
  };
  return { number: () => number, inDoubt: () => inDoubt, commit };
}

function tell<Tx>(context: Context<Tx>, request: BeginRequest, { end, moved }: OneCommitted<unknown>): void {
  const { operation } = request;
  tellMoves(context, moved);
  for (const override of rerunsOf(request, moved)) void context.tellOverride(override);
  const outcome =
    end.kind === "answered"
      ? outcomeOf({ kind: "final", decision: end.answered, moved })
      : outcomeOf({ kind: "claimed", moved });
  context.emit({ type: "request", operation, outcome });
  if (end.kind === "answered") tellMismatch(context, request, end.answered);
  if (end.kind === "answered") tellSealed(context, end.answered);
}

/** One request counts once, whatever becomes of it. */
function countingOnce<Tx>(context: Context<Tx>): Context<Tx> {
  let counted = false;
  const emit = (event: EngineEvent): void => {
    if (event.type === "request" && counted) return;
    counted ||= event.type === "request";
    context.emit(event);
  };
  return { ...context, emit };
}

function nothingOf({ claim: asked }: Asked): KeyRecord {
  return stamp(renounce(asked, { retainMs: 0 }), NOTHING_YET);
}

async function undo<Tx>({ driver, policy, runtime }: Context<Tx>, asked: Asked): Promise<Ended | NotOurs> {
  const budget = { untilMs: runtime.monotonicMs() + policy.leaseMs, tries: CLAIM_TRIES };
  return await driver.drive(undoFlow(asked, policy.releasedRetentionMs, budget));
}

/** Claims in the ordinary way, which a commit that is still under way cannot outrun, and lets the key go again. */
function* undoFlow(asked: Asked, retainMs: number, budget: Budget): Flow<Ended | NotOurs> {
  const claimed = yield* claimFlow(asked, budget);
  if (claimed.kind === "final") return { kind: "answered", answered: claimed.decision };
  const { record } = claimed;
  const written = yield* persist(budget, () =>
    replace(seen(record), unused(record, asked, retainMs), "wait"),
  );
  if (written.kind === "replaced") return { kind: "kept", record: written.record };
  return lostTo({ kind: "lost", record: written.record }, asked.match);
}
