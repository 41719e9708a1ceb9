import { type Answer, stamp } from "../core/record.ts";
import { claim, release, renounce, seen } from "../core/transition.ts";
import { OutcomeUnknown, StoreUnavailable } from "../errors.ts";
import type { Awaitable } from "../stores/store.ts";
import {
  type Attempt,
  alreadyEnded,
  type Ended,
  heldFor,
  type NotOurs,
  once,
  TRANSACTION_TRIES,
} from "./attempt.ts";
import { answeredFailure, type BeginRequest, CLAIM_TRIES, outcomeOf } from "./begin.ts";
import { type Asked, claimFlow, type Final } from "./claim.ts";
import { type Flow, replace } from "./command.ts";
import type { Context } from "./context.ts";
import { downstreamKey } from "./downstream-key.ts";
import { oneCommitFlow } from "./one-commit.ts";
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
  const { identity, operation } = start.asked.claim;
  const draft = draftOf(start.asked);
  const commits = committing(context, start);
  const limit = limited(context, start);
  const { signal } = limit;
  let ended = false;
  const { undo, ...endings } = endingsOf(commits, (write) => {
    if (ended) throw alreadyEnded(draft);
    ended = true;
    return heldFor<Tx, NotOurs>(context, operation, write().finally(limit.over));
  });
  return {
    ...{ identity, operation, signal, record: () => draft },
    get number() {
      return commits.number();
    },
    downstreamKey: (step) => downstreamKey(context.namespace, draft, step),
    watched: (run) => context.watch.within({ ...draft, hasEnded: () => ended }, run),
    transaction: once(operation, async (run) => {
      if (ended) throw alreadyEnded(draft);
      signal.throwIfAborted();
      const end = await commits.commit(run);
      if (end.kind === "undone") return end;
      ended = true;
      limit.over();
      return end;
    }),
    ...endings,
    abandon: async (reason) => {
      limit.abort(reason);
      if (!ended) await undo();
      return { kind: "unkept" };
    },
    endBy: () => Promise.reject(new Error(`${operation} has no record to end.`)),
  };
}

function draftOf({ claim: asked }: Asked) {
  const draft = stamp(claim(asked), NOTHING_YET);
  if (draft.state !== "in_progress") throw new Error("A claim is in progress.");
  return draft;
}

/** Aborts the attempt's signal when its time is up. */
function limited<Tx>({ runtime }: Context<Tx>, { maxRunMs, onEnded }: OneStart) {
  const controller = new AbortController();
  const abort = (reason: string) => controller.abort(new OutcomeUnknown(reason));
  const limit = runtime.timer(maxRunMs);
  void limit.expired.then(() => abort(`The work did not end within ${maxRunMs} ms.`));
  const over = () => {
    limit.cancel();
    onEnded();
  };
  return { signal: controller.signal, abort, over };
}

type EndBy = (write: () => Promise<Ended | NotOurs>) => Promise<Ended | NotOurs>;

/** A local effect leaves nothing in doubt: whatever is not kept is undone. */
function endingsOf<Tx>({ commit, undone }: Committing<Tx>, endBy: EndBy) {
  const keep = (state: "completed" | "failed_permanent") => async (answer: Answer) =>
    await endBy(async () => endedBy(await commit(() => ({ kind: "keep", state, answer, value: null }))));
  const undo = async () => await endBy(undone);
  return { undo, complete: keep("completed"), fail: keep("failed_permanent"), release: undo, doubt: undo };
}

/** Of a version that stands nowhere. */
const NOTHING_YET = { attempt: 0, revision: 0, updatedAt: 0 };

interface Committing<Tx> {
  readonly number: () => number;
  readonly commit: <T>(run: (tx: Tx) => Awaitable<Worked<T>>) => Promise<OneCommitted<T>>;
  /** Ends without an effect; where a commit is in doubt it is first made sure that it can never be applied. */
  readonly undone: () => Promise<Ended | NotOurs>;
}

type OneCommitted<T> = Exclude<Transacted<T>, { kind: "lost" }> | NotOurs;

/** The commits of one attempt, one after another. */
function committing<Tx>(context: Context<Tx>, { request, asked }: OneStart): Committing<Tx> {
  const { driver, policy, runtime } = context;
  const untilMs = runtime.monotonicMs() + policy.leaseMs;
  const serially = createQueue();
  const tell = tellingOnce(context, request);
  let [number, inDoubt] = [0, false];
  const commit = async <T>(run: (tx: Tx) => Awaitable<Worked<T>>): Promise<OneCommitted<T>> => {
    const begunMs = runtime.monotonicMs();
    const early = { untilMs: begunMs + policy.storeTimeoutMs, tries: CLAIM_TRIES };
    const late = { untilMs, tries: TRANSACTION_TRIES };
    const numbered = (tx: Tx, given: number) => {
      number = given;
      return run(tx);
    };
    const withinMs = Math.max(1, untilMs - begunMs);
    const claiming = { asked, run: numbered, retainMs: policy.retentionMs, withinMs };
    try {
      const end = await driver.drive(oneCommitFlow<Tx, T>(claiming, () => (number === 0 ? early : late)));
      tell(end.kind === "answered" ? decided(end.answered) : "claimed");
      return end;
    } catch (error) {
      inDoubt = number > 0 && error instanceof StoreUnavailable;
      if (number > 0) throw error;
      return { kind: "answered", answered: answeredFailure(context, request, error) };
    }
  };
  const undone = async (): Promise<Ended | NotOurs> => {
    tell("claimed");
    const { releasedRetentionMs: retainMs } = policy;
    if (inDoubt) return await driver.drive(undoFlow(asked, retainMs, { untilMs, tries: CLAIM_TRIES }));
    return { kind: "kept", record: stamp(renounce(asked.claim, { retainMs }), NOTHING_YET) };
  };
  return {
    number: () => number,
    commit: (run) => serially(() => commit(run)),
    undone: () => serially(undone),
  };
}

function decided(decision: Final) {
  return outcomeOf({ kind: "final", decision, moved: [] });
}

/** Claims in the ordinary way, which a commit that is still under way cannot outrun, and lets the key go again. */
function* undoFlow(asked: Asked, retainMs: number, budget: Budget): Flow<Ended | NotOurs> {
  const claimed = yield* claimFlow(asked, budget);
  if (claimed.kind === "final") return { kind: "answered", answered: claimed.decision };
  const { record } = claimed;
  const released = release(record, { writeId: asked.newId(), retainMs });
  const written = yield* persist(budget, () => replace(seen(record), released, "wait"));
  if (written.kind === "replaced") return { kind: "kept", record: written.record };
  return { kind: "lost", record: written.record };
}

function endedBy(end: OneCommitted<null>): Ended | NotOurs {
  switch (end.kind) {
    case "committed":
      return { kind: "kept", record: end.record };
    case "answered":
      return end;
    case "undone":
      throw new Error("An answer was not kept although nothing had refused it.");
  }
}

/** One request counts once, whatever becomes of it. */
function tellingOnce<Tx>({ emit }: Context<Tx>, { operation }: BeginRequest) {
  let told = false;
  return (outcome: ReturnType<typeof outcomeOf>): void => {
    if (!told) emit({ type: "request", operation, outcome });
    told = true;
  };
}
