import { hasBegun } from "./begun.ts";
import type { Answer, KeyRecord } from "./record.ts";
import { hasFinished } from "./step.ts";
import type { Verdict } from "./verdict.ts";
import { doubtful, judgeDeath, judgeOpenMarks } from "./verdict.ts";

/** How the work itself ended, in the handler's own word. */
export type Ending =
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "permanent_failure"; readonly answer: Answer }
  | { readonly kind: "not_performed" }
  | { readonly kind: "outcome_unknown"; readonly reason: string }
  /** Threw something that says nothing about the effect. */
  | { readonly kind: "threw" }
  /** Had not settled at its time limit, or failed after it had answered. */
  | { readonly kind: "unsettled"; readonly reason: string };

/** What of a record decides about its attempt's ending. */
export type Working = Pick<KeyRecord, "effects" | "steps" | "claimedAt">;

export type Conclusion =
  | Verdict
  | { readonly kind: "conclude"; readonly state: "completed" | "failed_permanent"; readonly answer: Answer };

/** Refused for good: the same request will never succeed, and no effect was made. */
const DEFINITE: ReadonlySet<number> = new Set([402, 409, 410, 422, 451]);

/** The handler's own word that it did nothing and may be asked again. */
const NOTHING_DONE: ReadonlySet<number> = new Set([401, 403, 425, 429, 503]);

/** Errors that say nothing of the effect when nothing was declared; 5xx not listed here belong to them too. */
const AMBIGUOUS: ReadonlySet<number> = new Set([408]);

/**
 * What an ending means for the record, by where the programmer said that effects are. For `transaction` it judges an
 * attempt whose transaction did not commit: one that did has its answer already.
 */
export function concludeEnding(attempt: Working, ending: Ending): Conclusion {
  switch (ending.kind) {
    case "permanent_failure":
      return concludeRefusal(attempt, ending.answer);
    case "answered":
      return concludeAnswer(attempt, ending.answer);
    case "not_performed":
      return (
        byMarks(attempt, "The handler said that it did nothing while a call was open.") ?? { kind: "release" }
      );
    case "outcome_unknown":
      return doubted(attempt, ending.reason);
    case "unsettled":
      return judgeDeath(attempt, ending.reason);
    case "threw":
      return judgeDeath(attempt, "The handler failed without saying whether it had done anything.");
  }
}

/** A refusal in so many words; a step that has finished is an effect all the same. */
function concludeRefusal(attempt: Working, answer: Answer): Conclusion {
  const open = byMarks(attempt, "The handler refused for good while a call was open.");
  if (open !== null) return open;
  const state = hasFinished(attempt) ? "completed" : "failed_permanent";
  return { kind: "conclude", state, answer };
}

/** Where steps are declared an open one outweighs every word of the handler. */
function byMarks(attempt: Working, reason: string): Conclusion | null {
  if (attempt.effects !== "declared") return null;
  const verdict = judgeOpenMarks(attempt, reason);
  return verdict.kind === "doubt" ? verdict : null;
}

function concludeAnswer(attempt: Working, answer: Answer): Conclusion {
  const { status } = answer;
  switch (attempt.effects) {
    case "transaction":
      return status < 400 ? completed(answer) : refusedOrReleased(answer);
    case "declared":
      return concludeDeclared(attempt, answer);
    case "none":
      if (NOTHING_DONE.has(status) || (status >= 400 && !hasBegun(attempt))) return { kind: "release" };
      if (status >= 500 || AMBIGUOUS.has(status))
        return judgeDeath(attempt, `The handler answered ${status}.`);
      return completed(answer);
  }
}

function concludeDeclared(attempt: Working, answer: Answer): Conclusion {
  const open = judgeOpenMarks(attempt, `The handler answered ${answer.status} while a call was open.`);
  if (open.kind === "doubt") return open;
  if (answer.status < 400) return completed(answer);
  if (answer.status >= 500 || NOTHING_DONE.has(answer.status) || AMBIGUOUS.has(answer.status))
    return { kind: "release" };
  return hasFinished(attempt) ? completed(answer) : refusedOrReleased(answer);
}

function refusedOrReleased(answer: Answer): Conclusion {
  if (!DEFINITE.has(answer.status)) return { kind: "release" };
  return { kind: "conclude", state: "failed_permanent", answer };
}

function completed(answer: Answer): Conclusion {
  return { kind: "conclude", state: "completed", answer };
}

/** The programmer's word of an effect is believed, where nothing that is on record speaks against it. */
function doubted(attempt: Working, reason: string): Conclusion {
  return attempt.effects === "none" ? doubtful(reason, "hold", null) : judgeDeath(attempt, reason);
}
