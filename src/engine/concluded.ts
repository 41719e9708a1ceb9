import { type Conclusion, concludeEnding, type Ending } from "../core/ending.ts";
import type { Answer } from "../core/record.ts";
import type { Attempt, Ended, NotOurs } from "./attempt.ts";
import type { Context } from "./context.ts";

/** Ends an attempt by what its handler's end means for its record. */
export async function concludedBy<Tx>(attempt: Attempt<Tx>, ending: Ending): Promise<Ended | NotOurs> {
  return await concludedAs(attempt, concludeEnding(attempt.record(), ending), null);
}

/** Ends an attempt by what was concluded of it. */
export async function concludedAs<Tx>(
  attempt: Attempt<Tx>,
  conclusion: Conclusion,
  onDoubt: (() => Promise<Ended | NotOurs>) | null,
): Promise<Ended | NotOurs> {
  switch (conclusion.kind) {
    case "release":
      return await attempt.release();
    case "doubt":
      return onDoubt === null ? await attempt.doubt(conclusion.doubt) : await onDoubt();
    case "conclude":
      return await (conclusion.state === "completed"
        ? attempt.complete(conclusion.answer)
        : attempt.fail(conclusion.answer));
  }
}

/** Keeps an error as the answer although nobody knows what it did: the programmer's word, counted and audited. */
export async function keptInDoubt<Tx>(
  { tellOverride }: Context<Tx>,
  attempt: Attempt<Tx>,
  error: Answer,
): Promise<Ended | NotOurs> {
  const { operation, identity, number } = attempt;
  const before = attempt.record().state;
  const ended = await attempt.complete(error);
  if (ended.kind === "kept")
    await tellOverride({
      policy: "replay",
      operation,
      identity,
      attempt: number,
      before,
      after: ended.record.state,
    });
  return ended;
}
