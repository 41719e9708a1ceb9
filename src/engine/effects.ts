import { standingStep } from "../core/kept.ts";
import { type Learnt, learnInTime, learnLate } from "../core/learning.ts";
import type { Due, InProgress, Step, StepOf } from "../core/record.ts";
import { checkpoint } from "../core/transition.ts";
import {
  ConfigurationError,
  LeaseLost,
  NotPerformed,
  OncekeyError,
  OutcomeUnknown,
  PermanentFailure,
} from "../errors.ts";
import type { Awaitable } from "../stores/store.ts";
import { ABORTING } from "./aborting.ts";
import type { Attempt } from "./attempt.ts";
import { codec } from "./codec.ts";
import type { Context } from "./context.ts";
import { createGate, type Gate } from "./gate.ts";
import { keptResult } from "./kept-result.ts";
import { tellLate } from "./late.ts";
import type { DeclaredStep } from "./settler.ts";
import { checkedStep, type InlineStep } from "./step-definitions.ts";
import { neverSent } from "./unsent.ts";
import { encodeValue } from "./values.ts";

/** What a call is told beside its downstream key. */
export interface CallContext {
  /** Aborts when the attempt's time is up or its key is lost. */
  readonly signal: AbortSignal;
  readonly number: number;
  /** Of a `query` step: after this the provider must refuse the request. It is an instant of the database's clock. */
  readonly validUntil: Date | null;
}

/** Calls the provider. `NotPerformed` says that nothing was done, `PermanentFailure` that it declined for good; any other throw says nothing. */
export type Call<Result> = (downstreamKey: string, given: CallContext) => Awaitable<Result>;

/**
 * Makes one external effect: its mark stands before the call starts, what came of it is kept before this returns. Where an
 * earlier attempt has kept a result, that is returned without a call.
 */
export interface Effect {
  /** A step that was described where the route was made. */
  <Result>(step: string, call: Call<Result>): Promise<Result>;
  /** A step that is described here. */
  <Result>(step: string, provider: InlineStep, call: Call<Result>): Promise<Result>;
}

/** The effects of one attempt. */
export interface Effects {
  readonly effect: Effect;
  readonly gate: Gate;
}

/** What an attempt's effects stand on. */
export interface EffectGround<Tx> {
  readonly context: Context<Tx>;
  readonly attempt: Attempt<Tx>;
  readonly steps: ReadonlyMap<string, DeclaredStep>;
  readonly maxRunMs: number;
}

export function createEffects<Tx>(ground: EffectGround<Tx>): Effects {
  const gate = createGate(ground.context, ground.attempt);
  const running = new Set<string>();
  const done = new Set<string>();
  const called = new Set<string>();
  const effect = async <Result>(
    name: string,
    second: InlineStep | Call<Result>,
    third?: Call<Result>,
  ): Promise<Result> => {
    const { step, call } = asked(ground, name, second, third);
    gate.refuseClosed(`the effect ${name}`);
    if (running.has(name) || done.has(name)) throw repeated(name);
    running.add(name);
    try {
      const result = await performed({ ...ground, gate, called, name, step }, call);
      done.add(name);
      return result;
    } finally {
      running.delete(name);
    }
  };
  return { effect, gate };
}

/** Where effects are not declared a mark would say nothing of the others. */
export const undeclaredEffect: Effect = () =>
  Promise.reject(
    new ConfigurationError("effects", 'must be "declared" for effect() to be there; nothing was called'),
  );

function repeated(name: string): OncekeyError {
  const message = `The effect ${name} was asked for a second time in one attempt, and nothing was called for it: each effect needs a step of its own, such as "${name}:2".`;
  return new OncekeyError("step_repeated", message);
}

function asked<Tx, Result>(
  { steps, maxRunMs }: EffectGround<Tx>,
  name: string,
  second: InlineStep | Call<Result>,
  third: Call<Result> | undefined,
): { readonly step: DeclaredStep; readonly call: Call<Result> } {
  const known = steps.get(name);
  const call = typeof second === "function" ? second : third;
  if (typeof call !== "function") throw unusable(name, "has no call: hand in a function that makes it");
  if (typeof second !== "function") {
    if (known !== undefined)
      throw unusable(name, "is described twice: where the route was made, and at its call");
    return { step: checkedStep(name, second, maxRunMs), call };
  }
  if (known === undefined)
    throw unusable(name, "is not known: describe it in steps, or give its provider before the call");
  return { step: known, call };
}

function unusable(name: string, reason: string): OncekeyError {
  return new OncekeyError(
    "step_unusable",
    `The effect ${JSON.stringify(name)} ${reason}. Nothing was called.`,
  );
}

/** One effect on its way. */
interface Performing<Tx> extends EffectGround<Tx> {
  readonly gate: Gate;
  /** The effects that this attempt has called itself, whatever became of them. */
  readonly called: Set<string>;
  readonly name: string;
  readonly step: DeclaredStep;
}

async function performed<Tx, Result>(performing: Performing<Tx>, call: Call<Result>): Promise<Result> {
  const { attempt, name } = performing;
  const results = codec<Result>(`the result of ${name}`);
  const earlier = attempt.record().steps.get(name);
  if (earlier?.state === "finished") return results.decode(earlier.result);
  if (earlier?.state === "refused")
    throw new PermanentFailure(codec<unknown>(`the refusal of ${name}`).decode(earlier.result));
  const doubted = earlier?.state === "open";
  if (doubted) refuseInDoubt(performing, earlier);
  await opened(performing, doubted);
  const made = await called(performing, call, doubted);
  const result = keptResult(name, made);
  await learnt(performing, { kind: "finished", result });
  return results.decode(result);
}

/** A call in doubt may go out again once where its claim said so, or where the provider knows our key. */
function refuseInDoubt<Tx>({ called, name }: Performing<Tx>, mark: Extract<Step, { state: "open" }>): void {
  if (!called.has(name) || deduplicates(mark)) return;
  throw new OutcomeUnknown(
    `The effect ${name} is in doubt after its call, and its provider does not know our key: it was not called again.`,
  );
}

function deduplicates({ provider }: Pick<DeclaredStep, "provider">): boolean {
  return provider === "repeatable" || provider === "keyed";
}

/** Writes the open mark. An attempt whose time ended meanwhile takes it back, because nothing was called. */
async function opened<Tx>(performing: Performing<Tx>, doubted: boolean): Promise<void> {
  const { attempt, context, gate, name } = performing;
  await gate.during(async () => {
    await attempt.checkpoint((record) => {
      const writeId = context.runtime.newId();
      return checkpoint(record, { writeId, step: name, mark: openMark(performing, record) });
    });
    if (!attempt[ABORTING].isAborted()) return;
    if (!doubted) await attempt.learn(learning(performing, { kind: "not_performed" }));
    gate.refuseClosed(`the effect ${name}`);
  });
}

/** A mark that is open already stays as it is: the provider's memory of our key began with the first call. */
function openMark<Tx>({ step, name, maxRunMs }: Performing<Tx>, record: InProgress): StepOf<Due> {
  const { provider, keyTtlMs, validForMs } = step;
  const earlier = record.steps.get(name);
  const validUntil = validForMs === null ? null : { at: record.claimedAt + validForMs };
  if (earlier?.state === "open")
    return { ...standingStep(earlier), ...(validUntil === null ? {} : { validUntil }) };
  return {
    state: "open",
    provider,
    generation: earlier?.generation ?? 0,
    openedAt: { inMs: 0 },
    keyTtlMs: keyTtlMs === null ? null : Math.max(0, keyTtlMs - maxRunMs),
    validUntil,
  };
}

async function called<Tx, Result>(
  performing: Performing<Tx>,
  call: Call<Result>,
  doubted: boolean,
): Promise<Result> {
  const { attempt, step, name } = performing;
  const { signal, number } = attempt;
  performing.called.add(name);
  const { validForMs } = step;
  const validUntil = validForMs === null ? null : new Date(attempt.record().claimedAt + validForMs);
  try {
    return await call(attempt.downstreamKey(name), { signal, number, validUntil });
  } catch (error) {
    throw await judged(performing, error, doubted);
  }
}

/** What a call's error says of its effect; that a second call did nothing says nothing of the first. */
async function judged<Tx>(performing: Performing<Tx>, error: unknown, doubted: boolean): Promise<unknown> {
  const { context, attempt, name, step } = performing;
  if (error instanceof PermanentFailure) {
    if (!doubted || deduplicates(step))
      await learnt(performing, { kind: "refused", result: refusalOf(performing, error) });
    return error;
  }
  context.emit({ type: "failure", what: `calling ${name} of ${attempt.operation}`, error });
  if (doubted || !(error instanceof NotPerformed || neverSent(error))) return error;
  await learnt(performing, { kind: "not_performed" });
  if (error instanceof NotPerformed) return error;
  return new NotPerformed(`The effect ${name} was not sent.`, { cause: error });
}

/** A refusal whose value cannot be kept is a refusal all the same. */
function refusalOf<Tx>({ context, name }: Performing<Tx>, failure: PermanentFailure): Uint8Array {
  const encoded = encodeValue(failure.answer);
  if (encoded.kind === "encoded") return encoded.bytes;
  const error = new OncekeyError("value_unsupported", `${encoded.path} ${encoded.reason}`);
  context.emit({ type: "failure", what: `keeping the refusal of ${name}`, error });
  return codec<undefined>(`the refusal of ${name}`).encode(undefined);
}

/** Keeps what a call came to before anybody relies on it, however late. Of an attempt that is over the listeners hear what it changed. */
async function learnt<Tx>(performing: Performing<Tx>, fact: Learnt): Promise<void> {
  const { context, attempt, name } = performing;
  const from = attempt.record().state;
  const written = await keeping(performing, fact);
  if (written.kind === "lost")
    throw new LeaseLost(`The key was lost before the result of ${name} could be kept.`);
  const to = written.record.state;
  if (to !== from) tellLate(context, attempt, { from, to, reason: "A call's answer came late." });
}

/** An ending that still waits for something else sees this, too, before it judges. */
async function keeping<Tx>(performing: Performing<Tx>, fact: Learnt) {
  const { context, attempt, gate, name } = performing;
  try {
    return await gate.during(() => attempt.learn(learning(performing, fact)));
  } catch (error) {
    // Where an attempt is over, its handler's throw is nobody's answer any more.
    const what = `bringing the late result of ${name} of ${attempt.operation}`;
    if (isLate(performing)) context.emit({ type: "failure", what, error });
    throw error;
  }
}

/** Of an attempt that is over nobody else brings the record on. */
function learning<Tx>(performing: Performing<Tx>, fact: Learnt) {
  const { context, name } = performing;
  const { runtime, policy } = context;
  return (record: Parameters<typeof learnLate>[0]) => {
    const change = { writeId: runtime.newId(), step: name, learnt: fact };
    if (!isLate(performing)) return learnInTime(record, { ...change, lookInMs: policy.leaseMs });
    return learnLate(record, { ...change, retainMs: policy.releasedRetentionMs });
  };
}

function isLate<Tx>({ attempt, gate }: Performing<Tx>): boolean {
  return gate.closed() || attempt[ABORTING].isAborted();
}
