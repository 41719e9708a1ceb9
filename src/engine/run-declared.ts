import type { Ending } from "../core/ending.ts";
import { isConcluded } from "../core/record.ts";
import type { Awaitable } from "../stores/store.ts";
import { ABORTING, addSignal } from "./aborting.ts";
import type { Attempt, Ended, NotOurs } from "./attempt.ts";
import { concludedBy } from "./concluded.ts";
import type { Context } from "./context.ts";
import { createEffects, type Effect } from "./effects.ts";
import {
  answered,
  type Begin,
  beginRequest,
  endingOf,
  errorOf,
  keepable,
  type Ran,
  type RunAttempt,
  type RunRequest,
  ranBy,
} from "./run.ts";
import { settled } from "./settled.ts";
import type { DeclaredStep } from "./settler.ts";
import { retryOf } from "./waiting.ts";

/** A call of a function whose external effects are steps. */
export interface DeclaredRequest extends RunRequest {
  readonly effects: "declared";
}

/** What such a function is told of its attempt. */
export interface DeclaredAttempt extends RunAttempt {
  readonly effect: Effect;
}

interface Ground<Tx> {
  readonly begin: Begin<Tx>;
  readonly context: Context<Tx>;
  readonly steps: ReadonlyMap<string, DeclaredStep>;
}

/** Runs `work` unless its outcome is known; what an earlier attempt has kept of its effects is not done again. */
export async function attemptDeclared<Tx, T>(
  { begin, context, steps }: Ground<Tx>,
  request: RunRequest,
  work: (attempt: DeclaredAttempt) => Awaitable<T>,
): Promise<Ran<T>> {
  const asked = beginRequest(request, "declared");
  const begun = await begin(asked);
  if (begun.kind !== "proceed") return answered(request, begun);
  const { attempt } = begun;
  const { maxRunMs = context.policy.requestTimeoutMs } = asked;
  const { effect, gate } = createEffects({ context, attempt, steps, maxRunMs });
  const { number, downstreamKey, [ABORTING]: aborting } = attempt;
  const view = { number, downstreamKey, effect, [ABORTING]: aborting };
  addSignal(view);
  const ran = await settled(() => attempt.watched(() => work(view)), aborting);
  const end = ran.kind === "returned" ? keepable(request, ran.value) : failureOf(errorOf(ran));
  const ended = await gate.ended(() => concludedBy(attempt, end.ending));
  return outcomeOf(request, attempt, ended, end.error);
}

function failureOf(error: unknown): { readonly ending: Ending; readonly error: unknown } {
  return { ending: endingOf(error), error };
}

function outcomeOf<Tx, T>(
  request: RunRequest,
  attempt: Attempt<Tx>,
  ended: Ended | NotOurs,
  error: unknown,
): Ran<T> {
  if (ended.kind !== "kept") return ranBy(request, ended, attempt);
  const { record } = ended;
  // It threw, or its value cannot be kept: that is on record now.
  const unheard = !isConcluded(record) || record.answer.body === null;
  if (unheard && error !== null) throw error;
  if (record.state !== "unknown") return ranBy(request, ended, attempt);
  return { kind: "outcome_unknown", record, retryAfterMs: retryOf(record) };
}
