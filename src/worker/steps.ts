import { type Learnt, learn } from "../core/learning.ts";
import type { Instant, KeyRecord, Unknown } from "../core/record.ts";
import { judgeNotFound } from "../core/silence.ts";
import { type OpenMark, repeatableUntil } from "../core/step.ts";
import { release, seen } from "../core/transition.ts";
import { replace, type TransactionFlow } from "../engine/command.ts";
import type { Context } from "../engine/context.ts";
import { downstreamKey } from "../engine/downstream-key.ts";
import type { DeclaredStep } from "../engine/settler.ts";
import { asked, type CallBounds, heldOn, type Unanswered } from "./sighting.ts";

/** Steps as this process knows them, by the operation's name. */
export type KnownSteps = ReadonlyMap<string, ReadonlyMap<string, DeclaredStep>>;

/** What a look at the steps of one record came to, after what was learnt is on record. */
export type StepsLooked =
  /** No call is in doubt any more: the record is released, and the next request goes on. */
  | { readonly kind: "released"; readonly record: KeyRecord }
  /** Somebody else has moved the record. */
  | { readonly kind: "passed" }
  /** Calls that are still in doubt; the most hopeful word about them decides what follows. */
  | {
      readonly kind: "in_doubt";
      readonly record: Unknown;
      readonly said: Said;
      /** Sooner than this the next look would bring no more. */
      readonly soonestMs: number;
      readonly error: unknown;
    };

/** Of a call in doubt: what stands in the way of its end. */
export type Said = "given_up" | "unreachable" | "pending" | "not_found" | "cannot_ask";

/**
 * True for the records that a look at declared steps may bring on: of a route or a function (an operation has opened with
 * a reference), whose every open call this process can ask about, or which nobody can be asked about.
 */
export function hasKnownSteps(known: KnownSteps, record: KeyRecord): boolean {
  if (record.effects !== "declared" || record.reference !== null) return false;
  const steps = known.get(record.operation);
  return [...record.steps].every(([name, step]) => {
    if (step.state !== "open") return true;
    return step.provider === "repeatable" || step.provider === "blind" || steps?.get(name)?.look != null;
  });
}

/**
 * Asks about every call in doubt of a record that this worker has taken over, outside any transaction, and keeps what it
 * learns call by call; each is asked under a lease of its own. There is nothing to finish: with no call in doubt the
 * record is released.
 */
export function* lookAtSteps<Tx>(
  bounds: CallBounds<Tx>,
  known: KnownSteps,
  taken: { readonly record: Unknown; readonly askedAt: Instant },
): TransactionFlow<StepsLooked, Tx> {
  const { context } = bounds;
  const inDoubt: Doubted[] = [];
  let { record } = taken;
  for (const [name, mark] of taken.record.steps) {
    if (mark.state !== "open") continue;
    const held = record === taken.record ? record : yield* heldOn(context, record);
    if (held === null) return { kind: "passed" };
    const step = known.get(record.operation)?.get(name) ?? null;
    const asking = { record: held, askedAt: taken.askedAt, name, mark, step };
    const said = yield* ask(bounds, asking);
    if (said === null) return { kind: "passed" };
    record = said.record;
    if (said.answer.kind === "in_doubt") {
      inDoubt.push(said.answer);
      continue;
    }
    const change = { writeId: context.runtime.newId(), step: name, learnt: said.answer };
    const written = yield* replace(seen(record), learn(record, change), "never");
    if (written.kind !== "replaced" || written.record.state !== "unknown") return { kind: "passed" };
    record = written.record;
  }
  const [first, ...others] = inDoubt;
  if (first === undefined) return yield* released(context, record);
  const hopeful = others.reduce((one, other) => (HOPE[other.said] < HOPE[one.said] ? other : one), first);
  return { ...hopeful, record, soonestMs: Math.max(...inDoubt.map(({ soonestMs }) => soonestMs)) };
}

/** As long as one call can still be asked about, nobody need decide about the others. */
const HOPE: Readonly<Record<Said, number>> = {
  ...{ given_up: 0, unreachable: 1, pending: 2, not_found: 3, cannot_ask: 4 },
};

type Doubted = Omit<Extract<StepsLooked, { readonly kind: "in_doubt" }>, "record">;

interface Asking {
  readonly record: Unknown;
  readonly askedAt: Instant;
  readonly name: string;
  readonly mark: OpenMark;
  readonly step: DeclaredStep | null;
}

interface Answered {
  readonly answer: Learnt | Doubted;
  readonly record: Unknown;
}

/** What the provider says of one call; not found there means to cancel where that can be. `null`: the record is lost. */
function* ask<Tx>(
  bounds: CallBounds<Tx>,
  { record, askedAt, name, mark, step }: Asking,
): TransactionFlow<Answered | null, Tx> {
  const { context } = bounds;
  const [look, cancel] = [step?.look ?? null, step?.cancel ?? null];
  if (look === null)
    return { answer: doubted(isCalledAgain(mark, askedAt) ? "pending" : "cannot_ask"), record };
  const attempt = {
    number: record.attempt,
    downstreamKey: downstreamKey(context.namespace, record, name),
  };
  const sighted = yield* asked(bounds, `look for ${name} of ${record.operation}`, () => look(attempt));
  if (sighted.kind === "finished" || sighted.kind === "refused") return { answer: sighted, record };
  if (sighted.kind === "not_found" && cancel !== null) {
    const held = yield* heldOn(context, record);
    if (held === null) return null;
    const said = yield* asked(bounds, `cancel ${name} of ${record.operation}`, () => cancel(attempt));
    const unanswered = said.kind === "unreachable" || said.kind === "given_up";
    return { answer: unanswered ? doubted(said.kind, 0, errorOf(said)) : said, record: held };
  }
  if (sighted.kind === "unreachable" || sighted.kind === "given_up")
    return { answer: doubted(sighted.kind, 0, errorOf(sighted)), record };
  const judged = judgeNotFound(mark, { askedAt, looks: record.looks }, context.policy);
  if (judged.kind === "inconclusive")
    return { answer: doubted(sighted.kind, cancel === null ? judged.soonestMs : 0), record };
  return { answer: sighted.kind === "pending" ? doubted("pending") : { kind: "not_performed" }, record };
}

function errorOf(said: Unanswered): unknown {
  return said.kind === "unreachable" ? said.error : null;
}

/** By the next request, under the same key. */
function isCalledAgain(mark: OpenMark, now: Instant): boolean {
  return now < repeatableUntil([mark]);
}

function doubted(said: Said, soonestMs = 0, error: unknown = null): Doubted {
  return { kind: "in_doubt", said, soonestMs, error };
}

function* released<Tx>({ runtime, policy }: Context<Tx>, record: Unknown): TransactionFlow<StepsLooked, Tx> {
  const change = { writeId: runtime.newId(), retainMs: policy.releasedRetentionMs };
  const written = yield* replace(seen(record), release(record, change), "never");
  return written.kind === "replaced" ? { kind: "released", record: written.record } : { kind: "passed" };
}
