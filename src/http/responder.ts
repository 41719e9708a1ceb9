import { type Conclusion, concludeEnding, type Ending } from "../core/ending.ts";
import type { Answer, KeyRecord } from "../core/record.ts";
import { type AnswerInit, toAnswer } from "../engine/answer.ts";
import type { Attempt, Ended } from "../engine/attempt.ts";
import type { Context } from "../engine/context.ts";
import { passes } from "../engine/retry.ts";
import type { Settling } from "../engine/returned.ts";
import { NotPerformed, OutcomeUnknown, PermanentFailure } from "../errors.ts";
import { STATUS_HEADER } from "./exchange.ts";
import type { Guard } from "./guard.ts";
import { problem } from "./problems.ts";
import { expires, first, replyToLoser, unkept, unknown } from "./replies.ts";
import { capture, flowing, keptAnswer, sameResponse, toResponse } from "./response.ts";
import { createTransactionDoor, KEPT, type KeptAnswer, type TransactionDoor } from "./transaction-door.ts";

/** A handler behind a guard, on any host that answers with a `Response`. */
export interface Work<Tx, Settles extends Settling> {
  readonly run: (door: TransactionDoor<Tx, Settles>) => Promise<Response | KeptAnswer>;
  /** An error that carries an HTTP status is an answer; `null` for any other. */
  readonly answerOfError: (error: unknown) => Response | null;
}

/** How the handler settled. */
type Settled =
  | { readonly kind: "responded"; readonly response: Response }
  | { readonly kind: "threw"; readonly error: unknown }
  | { readonly kind: "unsettled"; readonly reason: string };

/**
 * Runs a handler under its attempt and makes the answer that may leave: only after the outcome is kept, and only the
 * handler's own. Throws what the handler threw where that says nothing, once its outcome is kept.
 */
export async function respond<Tx, Settles extends Settling>(
  context: Context<Tx>,
  guard: Guard,
  attempt: Attempt<Tx>,
  work: Work<Tx, Settles>,
): Promise<Response> {
  const door = createTransactionDoor<Tx, Settles>(attempt, guard.keeps);
  const settled = await settle(attempt, door, work);
  const outcome = door.outcome();
  if (outcome?.kind === "committed") return toResponse(first(outcome.answer, outcome.record));
  if (outcome?.kind === "lost") return toResponse(replyToLoser(outcome.record));
  if (outcome?.kind === "refused")
    return await concludeAnswer(guard, attempt, toResponse(bodied(outcome.answer)));
  if (settled.kind === "responded") {
    if (attempt.record().effects === "transaction" && settled.response.status < 400) {
      context.emit({ type: "transaction_unused", operation: attempt.operation, identity: attempt.identity });
    }
    return await concludeAnswer(guard, attempt, settled.response);
  }
  return await concludeFailure(guard, attempt, settled);
}

async function settle<Tx, Settles extends Settling>(
  attempt: Attempt<Tx>,
  door: TransactionDoor<Tx, Settles>,
  work: Work<Tx, Settles>,
): Promise<Settled> {
  const { signal } = attempt;
  const running = new Promise<Response | KeptAnswer>((resolve) => resolve(work.run(door)));
  const ended = running.then(
    (returned): Settled => {
      if (!(KEPT in returned)) return { kind: "responded", response: returned };
      return door.outcome() === null ? { kind: "threw", error: foreignAnswer(attempt) } : KEPT_BY_DOOR;
    },
    (error: unknown): Settled => {
      const response = work.answerOfError(error);
      return response === null ? { kind: "threw", error } : { kind: "responded", response };
    },
  );
  const timeIsUp = new Promise<Settled>((resolve) => {
    const giveUp = () =>
      resolve({ kind: "unsettled", reason: "The handler had not ended when its time was up." });
    if (signal.aborted) giveUp();
    else signal.addEventListener("abort", giveUp, { once: true });
  });
  return await Promise.race([ended, timeIsUp]);
}

/** The door's outcome says the rest. */
const KEPT_BY_DOOR: Settled = { kind: "unsettled", reason: "The transaction's own outcome counts." };

/** Keeps what a handler answered, as far as its status says that it is an outcome. */
async function concludeAnswer<Tx>(guard: Guard, attempt: Attempt<Tx>, response: Response): Promise<Response> {
  const captured = await capture(response, guard.maxResponseBytes);
  const answer = keptAnswer(response, captured.kind === "whole" ? captured.body : null, guard.keeps);
  const conclusion = concludeEnding(attempt.record(), { kind: "answered", answer });
  if (captured.kind === "overflow") {
    const beforeEnd = async () => cutUnlessKept(await conclude(attempt, conclusion));
    return sameResponse(response, flowing(captured, beforeEnd), []);
  }
  const ended = await conclude(attempt, conclusion);
  if (ended.kind === "unkept") return toResponse(unkept());
  if (ended.kind === "lost") return toResponse(replyToLoser(ended.record));
  return sameResponse(response, captured.body, saidOf(ended.record));
}

/** Headers that tell a first answer's client what became of its key. */
function saidOf(record: KeyRecord): readonly (readonly [string, string])[] {
  return record.state === "unknown" ? [[STATUS_HEADER, "unknown"]] : expires(record);
}

async function concludeFailure<Tx>(
  guard: Guard,
  attempt: Attempt<Tx>,
  settled: Exclude<Settled, { kind: "responded" }>,
): Promise<Response> {
  const ending = endingOf(settled, guard);
  const ended = await conclude(attempt, concludeEnding(attempt.record(), ending));
  if (ended.kind === "unkept") return toResponse(unkept());
  if (ended.kind === "lost") return toResponse(replyToLoser(ended.record));
  const { record } = ended;
  const error = settled.kind === "threw" ? settled.error : null;
  if (record.state === "completed" || record.state === "failed_permanent")
    return toResponse(first(record.answer, record));
  if (ending.kind === "not_performed") return notPerformed(error);
  if (passes(error))
    return toResponse(
      problem("store_unavailable", { detail: "Its effects were rolled back.", retryAfterMs: RETRY_MS }),
    );
  if (settled.kind === "threw" && ending.kind === "threw") throw settled.error;
  return record.state === "released" ? timedOut() : toResponse(unknown(504, record, null));
}

function endingOf(settled: Exclude<Settled, { kind: "responded" }>, guard: Guard): Ending {
  if (settled.kind === "unsettled") return settled;
  const { error } = settled;
  if (error instanceof NotPerformed) return { kind: "not_performed" };
  if (error instanceof OutcomeUnknown) return { kind: "outcome_unknown", reason: error.message };
  if (!(error instanceof PermanentFailure)) return { kind: "threw" };
  const answer = toAnswer(isAnswer(error.answer) ? error.answer : { status: 422, json: error.answer });
  return { kind: "permanent_failure", answer: { ...answer, headers: answer.headers.filter(guard.keeps) } };
}

async function conclude<Tx>(attempt: Attempt<Tx>, conclusion: Conclusion): Promise<Ended> {
  switch (conclusion.kind) {
    case "release":
      return await attempt.release();
    case "doubt":
      return await attempt.doubt(conclusion.doubt);
    case "conclude":
      return await (conclusion.state === "completed"
        ? attempt.complete(conclusion.answer)
        : attempt.fail(conclusion.answer));
  }
}

function cutUnlessKept(ended: Ended): void {
  if (ended.kind !== "kept")
    throw new OutcomeUnknown("The answer could not be kept, so its end is not sent.");
}

const RETRY_MS = 1_000;

function notPerformed(error: unknown): Response {
  const detail = error instanceof Error ? error.message : "Nothing was done.";
  return toResponse(problem("not_performed", { detail, retryAfterMs: RETRY_MS }));
}

function timedOut(): Response {
  return toResponse(
    problem("not_performed", {
      detail: "The work did not end in time and its transaction was kept out.",
      status: 504,
      retryAfterMs: RETRY_MS,
    }),
  );
}

function bodied(answer: Answer): Answer & { readonly body: Uint8Array } {
  return { ...answer, body: answer.body ?? new Uint8Array(0) };
}

function isAnswer(value: unknown): value is AnswerInit {
  return typeof value === "object" && value !== null && "status" in value;
}

function foreignAnswer<Tx>({ operation }: Attempt<Tx>): Error {
  return new Error(`${operation} returned the kept answer of another request.`);
}
