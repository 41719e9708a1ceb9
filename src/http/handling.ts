import type { Answer } from "../core/record.ts";
import { ABORTING } from "../engine/aborting.ts";
import { type AnswerInit, toAnswer } from "../engine/answer.ts";
import type { Attempt } from "../engine/attempt.ts";
import type { Awaitable, Settling } from "../engine/returned.ts";
import { settled } from "../engine/settled.ts";
import { NotPerformed, OutcomeUnknown, PermanentFailure } from "../errors.ts";
import type { Outgoing } from "./outgoing.ts";
import { KEPT, type KeptAnswer, type TransactionDoor } from "./transaction-door.ts";

/** How a host runs a handler. */
export interface Handling<Tx, Settles extends Settling> {
  readonly run: (door: TransactionDoor<Tx, Settles>) => Awaitable<Outgoing | KeptAnswer>;
  /** An error that carries an HTTP status is an answer; `null` for any other. */
  readonly answerOfError: (error: unknown) => Awaitable<Outgoing | null>;
}

/** How the handler ended, in its own word. What its transaction came to, the door says. */
export type Handled =
  | { readonly kind: "responded"; readonly outgoing: Outgoing }
  | { readonly kind: "refused"; readonly answer: Answer }
  | { readonly kind: "not_performed"; readonly error: NotPerformed }
  | { readonly kind: "outcome_unknown"; readonly error: OutcomeUnknown }
  | { readonly kind: "threw"; readonly error: unknown }
  /** Its time was up, or its key lost, before it ended. */
  | { readonly kind: "unsettled" };

/** Runs a handler as long as its attempt may run; never throws. */
export async function handled<Tx, Settles extends Settling>(
  attempt: Attempt<Tx>,
  door: TransactionDoor<Tx, Settles>,
  { run, answerOfError }: Handling<Tx, Settles>,
): Promise<Handled> {
  const end = await settled(() => attempt.watched(() => run(door)), attempt[ABORTING]);
  if (end.kind === "aborted") return end.late === null ? NEVER_BEGAN : { kind: "unsettled" };
  const unheard = await door.unheard();
  if (unheard !== null) return { kind: "threw", error: unheard.error };
  return end.kind === "threw" ? await wordOf(end.error, answerOfError) : returned(end.value, door, attempt);
}

const NEVER_BEGAN: Handled = {
  kind: "not_performed",
  error: new NotPerformed("The attempt had no time left to begin."),
};

function returned<Tx, Settles extends Settling>(
  value: Outgoing | KeptAnswer,
  door: TransactionDoor<Tx, Settles>,
  { operation }: Attempt<Tx>,
): Handled {
  if (!isKept(value)) return { kind: "responded", outgoing: value };
  // With an outcome, the door's own counts and not this.
  if (door.outcome() !== null) return { kind: "unsettled" };
  return { kind: "threw", error: new Error(`${operation} returned the kept answer of another request.`) };
}

async function wordOf(
  error: unknown,
  answerOfError: Handling<never, never>["answerOfError"],
): Promise<Handled> {
  // Inside the try: what is thrown may be anything, one whose very nature cannot be asked included.
  try {
    if (error instanceof NotPerformed) return { kind: "not_performed", error };
    if (error instanceof OutcomeUnknown) return { kind: "outcome_unknown", error };
    if (error instanceof PermanentFailure) return { kind: "refused", answer: refusal(error.answer) };
    const outgoing = await answerOfError(error);
    return outgoing === null ? { kind: "threw", error } : { kind: "responded", outgoing };
  } catch (unusable) {
    return { kind: "threw", error: unusable };
  }
}

/** An answer as it is to be sent, or any other value as the JSON of a 422. */
function refusal(value: unknown): Answer {
  return toAnswer(isAnswerInit(value) ? value : { status: 422, json: value });
}

/** Domain objects may well have a `status` of their own; only one that is nothing but an answer is taken for one. */
function isAnswerInit(value: unknown): value is AnswerInit {
  if (typeof value !== "object" || value === null || !("status" in value)) return false;
  const members = new Set(["status", "headers", "json", "body"]);
  return typeof value.status === "number" && Object.keys(value).every((name) => members.has(name));
}

/** Proof that a transaction of ours made the answer. */
export function isKept(value: unknown): value is KeptAnswer {
  return typeof value === "object" && value !== null && KEPT in value;
}
