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
import { type Asked, claimFlow } from "./claim.ts";
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
  const { asked, maxRunMs } = start;
  const { identity, operation } = asked.claim;
  const { runtime } = context;
  const controller = new AbortController();
  const { signal } = controller;
  const commits = committing(context, start);
  const draft = stamp(claim(asked.claim), NOTHING_YET);
  if (draft.state !== "in_progress") throw new Error("A claim is in progress.");
  let ended = false;
  const limit = runtime.timer(maxRunMs);
  void limit.expired.then(() => {
    controller.abort(new OutcomeUnknown(`The work did not end within ${maxRunMs} ms.`));
  });
  const over = () => {
    limit.cancel();
    start.onEnded();
  };
  const endBy = (write: () => Promise<Ended | NotOurs>): Promise<Ended | NotOurs> => {
    if (ended) throw alreadyEnded(draft);
    ended = true;
    return heldFor<Tx, NotOurs>(context, operation, write().finally(over));
  };
  const keep = (state: "completed" | "failed_permanent") => async (answer: Answer) =>
    await endBy(async () =>
      endedBy(await commits.commit(() => ({ kind: "keep", state, answer, value: null }))),
    );
  const undo = async () => await endBy(commits.undo);
  const attempt: Attempt<Tx> = {
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
      over();
      return end;
    }),
    ...{ complete: keep("completed"), fail: keep("failed_permanent"), release: undo, doubt: undo },
    abandon: async (reason) => {
      controller.abort(new OutcomeUnknown(reason));
      if (!ended) await undo();
      return { kind: "unkept" };
    },
    endBy: () => Promise.reject(new Error(`${operation} has no record to end.`)),
  };
  return attempt;
}

/** Of a version that stands nowhere. */
const NOTHING_YET = { attempt: 0, revision: 0, updatedAt: 0 };

interface Committing<Tx> {
  readonly number: () => number;
  readonly commit: <T>(run: (tx: Tx) => Awaitable<Worked<T>>) => Promise<OneCommitted<T>>;
  /** Ends without an effect; where a commit is in doubt it is first made sure that it can never be applied. */
  readonly undo: () => Promise<Ended | NotOurs>;
}

type OneCommitted<T> = Exclude<Transacted<T>, { kind: "lost" }> | NotOurs;

/** The commits of one attempt, one after another. */
function committing<Tx>(context: Context<Tx>, { request, asked }: OneStart): Committing<Tx> {
  const { driver, policy, runtime } = context;
  const startedMs = runtime.monotonicMs();
  const serially = createQueue();
  const untilMs = startedMs + policy.leaseMs;
  let [number, inDoubt] = [0, false];
  const tell = tellingOnce(context, request);
  const budget = (): Budget =>
    number === 0
      ? { untilMs: startedMs + policy.storeTimeoutMs, tries: CLAIM_TRIES }
      : { untilMs, tries: TRANSACTION_TRIES };
  const commit = async <T>(run: (tx: Tx) => Awaitable<Worked<T>>): Promise<OneCommitted<T>> => {
    const numbered = (tx: Tx, given: number) => {
      number = given;
      return run(tx);
    };
    const withinMs = Math.max(1, untilMs - runtime.monotonicMs());
    const claiming = { asked, run: numbered, retainMs: policy.retentionMs, withinMs };
    try {
      const end = await driver.drive(oneCommitFlow<Tx, T>(claiming, budget));
      if (end.kind === "answered") tell(outcomeOf({ kind: "final", decision: end.answered, moved: [] }));
      else tell("claimed");
      return end;
    } catch (error) {
      inDoubt = number > 0 && error instanceof StoreUnavailable;
      if (number > 0) throw error;
      return { kind: "answered", answered: answeredFailure(context, request, error) };
    }
  };
  return {
    number: () => number,
    commit: (run) => serially(() => commit(run)),
    undo: () =>
      serially(async () => {
        tell("claimed");
        if (inDoubt)
          return await driver.drive(
            undoFlow(asked, policy.releasedRetentionMs, { untilMs, tries: CLAIM_TRIES }),
          );
        return { kind: "kept", record: stamp(renounce(asked.claim, { retainMs: 0 }), NOTHING_YET) };
      }),
  };
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
