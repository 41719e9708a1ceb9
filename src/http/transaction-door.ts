import { type Answer, isConcluded, type KeyRecord } from "../core/record.ts";
import { ABORTING } from "../engine/aborting.ts";
import { type AnswerInit, toAnswer } from "../engine/answer.ts";
import type { Attempt } from "../engine/attempt.ts";
import type { Answered } from "../engine/begin.ts";
import { following } from "../engine/command.ts";
import type { Awaitable, Returned, Settling } from "../engine/returned.ts";
import type { Worked } from "../engine/transaction.ts";
import { OncekeyError } from "../errors.ts";
import { type Keeping, keptPart } from "./outgoing.ts";

/** What `transaction` hands back for the handler to return: proof that the answer is kept, or that it was refused. */
export interface KeptAnswer {
  readonly [KEPT]: true;
  readonly status: number;
}

export const KEPT: unique symbol = Symbol("oncekey.kept");

/** Commits what `work` does together with the record and its answer; at most once in a request. */
export type RouteTransaction<Tx, Settles extends Settling> = (
  work: (tx: Tx) => Returned<Settles, AnswerInit>,
) => Promise<KeptAnswer>;

/** What the handler's transaction came to, whatever the handler did afterwards. */
export type TransactionOutcome =
  | { readonly kind: "committed"; readonly answer: Answer; readonly record: KeyRecord }
  | { readonly kind: "refused"; readonly answer: Answer }
  | { readonly kind: "lost"; readonly record: KeyRecord | null }
  | { readonly kind: "answered"; readonly answered: Answered };

export interface TransactionDoor<Tx, Settles extends Settling> {
  readonly transaction: RouteTransaction<Tx, Settles>;
  readonly outcome: () => TransactionOutcome | null;
  /** Says that the handler has ended, although its answer may still be in the making. */
  readonly handlerEnded: () => void;
  /** Waits for a transaction that was under way when its handler ended; its failure is then the handler's. */
  readonly unheard: () => Promise<{ readonly error: unknown } | null>;
  /** Whether the handler went through it at all. */
  readonly used: () => boolean;
}

export function createTransactionDoor<Tx, Settles extends Settling>(
  attempt: Attempt<Tx>,
  keeping: Keeping,
): TransactionDoor<Tx, Settles> {
  let outcome: TransactionOutcome | null = null;
  let used = false;
  const { follow, handlerEnded, unheard } = followed();
  const commit: RouteTransaction<Tx, Settles> = async (work) => {
    const transacted = await attempt.transaction((tx) => {
      const returned: Awaitable<AnswerInit> = work(tx);
      return following(returned, (init) => worked(toAnswer(init), keeping));
    });
    switch (transacted.kind) {
      case "committed": {
        const answer = transacted.value ?? answerOf(transacted.record);
        outcome = { kind: "committed", answer, record: transacted.record };
        return { [KEPT]: true, status: answer.status };
      }
      case "undone":
        outcome = { kind: "refused", answer: transacted.value };
        return { [KEPT]: true, status: transacted.value.status };
      case "lost":
        outcome = transacted;
        throw attempt[ABORTING].reason();
      case "answered":
        outcome = transacted;
        throw new OncekeyError("attempt_ended", COPY);
    }
  };
  const transaction: RouteTransaction<Tx, Settles> = (work) => {
    const committing = commit(work);
    follow(committing, { counts: !used }); // a second one is refused, and ends nothing
    used = true;
    return committing;
  };
  return { transaction, outcome: () => outcome, handlerEnded, unheard, used: () => used };
}

/** Remembers whether a transaction was still under way when its handler ended. */
function followed() {
  let underWay: Unheard = null;
  let left: Unheard = null;
  const follow = (committing: Promise<unknown>, { counts }: { readonly counts: boolean }) => {
    const heard = failureOf(committing).finally(() => {
      if (underWay === heard) underWay = null;
    });
    if (counts) underWay = heard;
  };
  const handlerEnded = () => {
    left ??= underWay;
  };
  return { follow, handlerEnded, unheard: async () => await (left ?? underWay) };
}

type Unheard = Promise<{ readonly error: unknown } | null> | null;

const COPY =
  "This request is a copy, or may not run: its transaction was not run, and it is answered without it.";

async function failureOf(work: Promise<unknown>): Promise<{ readonly error: unknown } | null> {
  return await work.then(
    () => null,
    (error: unknown) => ({ error }),
  );
}

function worked(answer: Answer, keeping: Keeping): Worked<Answer> {
  if (answer.status >= 400) return { kind: "undo", value: answer };
  return { kind: "keep", state: "completed", answer: keptPart(answer, keeping), value: answer };
}

function answerOf(record: KeyRecord): Answer {
  if (isConcluded(record)) return record.answer;
  throw new Error(`A committed transaction left its record ${record.state}.`);
}
