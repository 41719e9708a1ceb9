import type { Answer, Due, InProgress, KeyRecord, ProviderKind, StepOf } from "../core/record.ts";
import { hasInherited } from "../core/step.ts";
import { judgeOpenMarks } from "../core/verdict.ts";
import { NotPerformed, OncekeyError } from "../errors.ts";
import type { Awaitable } from "../stores/store.ts";
import { ABORTING } from "./aborting.ts";
import type { Attempt, Ended, NotOurs } from "./attempt.ts";
import { type Answered, askedFor, type BeginRequest, beginWith } from "./begin.ts";
import type { Context } from "./context.ts";
import type { Held, Written } from "./ending.ts";
import { tellLate } from "./late.ts";
import { openingFlow } from "./opening.ts";
import type { Budget } from "./retry.ts";
import { settled } from "./settled.ts";
import type { Settler } from "./settler.ts";
import { abandonFlow, finishFlow } from "./settling.ts";
import { retryOf } from "./waiting.ts";

/** How an operation ended for the request that asked for it. */
export type Executed =
  | Answered
  /** This request's own answer, kept. */
  | { readonly kind: "settled"; readonly answer: Answer; readonly record: KeyRecord }
  /** Proved that nothing happened: the same key may try again. */
  | { readonly kind: "not_performed"; readonly error: Error }
  /** This request's effect may have happened; a worker will find out, or a person. */
  | { readonly kind: "in_doubt"; readonly record: KeyRecord | null; readonly retryAfterMs: number | null }
  /** The attempt lost its key while it ran. */
  | { readonly kind: "lost"; readonly record: KeyRecord | null };

export interface Execution<Tx> {
  readonly request: BeginRequest;
  readonly provider: ProviderKind;
  readonly keyTtlMs: number | null;
  /** How long after the claim the provider takes the request. */
  readonly validForMs: number | null;
  readonly open: (tx: Tx, record: InProgress) => Awaitable<Uint8Array>;
  readonly perform: (record: KeyRecord, signal: AbortSignal) => Promise<Uint8Array>;
}

type Performed =
  | { readonly kind: "result"; readonly result: Uint8Array }
  | { readonly kind: "not_performed"; readonly error: Error }
  | { readonly kind: "unheard"; readonly reason: string; readonly late: Promise<Uint8Array> | null };

/** Runs an operation once: claim and open in one commit, perform outside, finish and answer in one commit. */
export async function executeOperation<Tx>(
  context: Context<Tx>,
  settler: Settler<Tx>,
  execution: Execution<Tx>,
): Promise<Executed> {
  const { request, open } = execution;
  const { driver, policy } = context;
  const asked = askedFor(context, request, new Map([[settler.step, openMark(execution)]]));
  const opening = { asked, open, withinMs: policy.storeTimeoutMs };
  const undo = (held: Held) => writtenBy(driver.drive(abandonFlow(context, settler, held, "nothing_sent")));
  const claiming = (budget: Budget) => driver.drive(openingFlow(opening, budget), budget);
  const begun = await beginWith(context, request, asked, claiming, undo);
  if (begun.kind !== "proceed") return begun;
  const { attempt } = begun;
  const performed = await perform(context, attempt, execution);
  switch (performed.kind) {
    case "result": {
      const { result } = performed;
      const finish = (held: Held, untilMs: number) =>
        writtenBy(driver.drive(finishFlow(context, settler, held, { result, untilMs })));
      return ended(await attempt.endBy(finish));
    }
    case "not_performed": {
      const end = await attempt.endBy(undo);
      return isReleased(end) ? { kind: "not_performed", error: performed.error } : ended(end);
    }
    case "unheard":
      return await leaveInDoubt(context, settler, attempt, performed);
  }
}

async function perform<Tx>(
  { emit }: Context<Tx>,
  attempt: Attempt<Tx>,
  execution: Execution<Tx>,
): Promise<Performed> {
  const performing = () => execution.perform(attempt.record(), attempt.signal);
  const ran = await settled(() => attempt.watched(performing), attempt[ABORTING]);
  switch (ran.kind) {
    case "returned":
      return { kind: "result", result: ran.value };
    case "aborted":
      if (ran.late === null && !hasInherited(attempt.record()))
        return { kind: "not_performed", error: new NotPerformed("The attempt had no time left to begin.") };
      return { kind: "unheard", reason: saidBy(ran.reason), late: ran.late };
    case "threw":
      emit({ type: "failure", what: `performing ${attempt.operation}`, error: ran.error });
      if (ran.error instanceof NotPerformed && !hasInherited(attempt.record()))
        return { kind: "not_performed", error: ran.error };
      return { kind: "unheard", reason: saidBy(ran.error), late: null };
  }
}

async function leaveInDoubt<Tx>(
  context: Context<Tx>,
  settler: Settler<Tx>,
  attempt: Attempt<Tx>,
  { reason, late }: Extract<Performed, { kind: "unheard" }>,
): Promise<Executed> {
  const held = attempt.record();
  const verdict = held.state === "in_progress" ? judgeOpenMarks(held, reason) : null;
  if (verdict !== null && verdict.kind === "release")
    throw new Error(`${held.operation} lost its open mark.`);
  const end = verdict === null ? await attempt.abandon(reason) : await attempt.doubt(verdict.doubt);
  if (late !== null) void bringLate(context, settler, attempt, late);
  return ended(end);
}

/** A result that came after the record was given up is one more verdict, as long as nobody has taken it over. */
async function bringLate<Tx>(
  context: Context<Tx>,
  settler: Settler<Tx>,
  attempt: Attempt<Tx>,
  late: Promise<Uint8Array>,
): Promise<void> {
  const { operation } = attempt;
  try {
    const result = await late;
    const held = attempt.record();
    const written = await context.driver.drive(finishFlow(context, settler, held, { result }));
    if (written.kind === "lost") return tellContradiction(context, settler, held, written.record);
    const reason = "The provider's answer came late.";
    tellLate(context, attempt, { from: held.state, to: written.record.state, reason });
  } catch (error) {
    context.emit({ type: "failure", what: `bringing the late result of ${operation}`, error });
  }
}

/** A result for an effect that others have meanwhile proved not to have happened. */
function tellContradiction<Tx>(
  { emit }: Context<Tx>,
  { step }: Settler<Tx>,
  held: Held,
  stands: KeyRecord | null,
): void {
  const generation = (record: KeyRecord | null) => record?.steps.get(step)?.generation ?? 0;
  if (stands?.state !== "released" && generation(stands) === generation(held)) return;
  const { operation, identity, attempt } = held;
  const reason = "It was proved not to have happened; then the provider's answer came after all.";
  emit({ type: "contradiction", operation, identity, attempt, reason });
}

function ended(end: Ended | NotOurs): Executed {
  switch (end.kind) {
    case "kept":
      return outcomeOf(end.record);
    case "lost":
      return end;
    case "unkept":
      return { kind: "in_doubt", record: null, retryAfterMs: null };
    case "answered":
      return end.answered;
  }
}

function outcomeOf(record: KeyRecord): Executed {
  switch (record.state) {
    case "completed":
    case "failed_permanent":
      return { kind: "settled", answer: record.answer, record };
    case "unknown":
      return { kind: "in_doubt", record, retryAfterMs: retryOf(record) };
    case "released":
    case "in_progress":
      throw new Error(`An operation ended with its record ${record.state}.`);
  }
}

/** Released by us, even when the reply of that write was lost. */
function isReleased(end: Ended | NotOurs): boolean {
  return (end.kind === "kept" || end.kind === "lost") && end.record?.state === "released";
}

async function writtenBy(writing: Promise<Written>): Promise<Ended> {
  const written = await writing;
  return written.kind === "lost" ? written : { kind: "kept", record: written.record };
}

function openMark({
  provider,
  keyTtlMs,
  validForMs,
}: Pick<Execution<never>, "provider" | "keyTtlMs" | "validForMs">): StepOf<Due> {
  const validUntil = validForMs === null ? null : { inMs: validForMs }; // stamped in the claim's own write
  return { state: "open", provider, generation: 0, openedAt: { inMs: 0 }, keyTtlMs, validUntil };
}

/** Internal error texts stay on the record as evidence for operators; no client ever sees them. */
function saidBy(error: unknown): string {
  if (error instanceof OncekeyError) return error.message;
  return error instanceof Error
    ? `${error.name} while the provider was called.`
    : "Something was thrown while the provider was called.";
}
