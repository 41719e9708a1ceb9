import { type Conclusion, concludeEnding, type Ending } from "../core/ending.ts";
import { effectOnRecord, type Finality, overrule } from "../core/finality.ts";
import type { Answer } from "../core/record.ts";
import { openMarks } from "../core/step.ts";
import type { Attempt } from "../engine/attempt.ts";
import { isPromise } from "../engine/command.ts";
import type { Context } from "../engine/context.ts";
import { ConfigurationError, type EffectKnown } from "../errors.ts";

/** The attempt that brought an answer, as its route's `finality` sees it. */
export interface JudgedAttempt {
  readonly operation: string;
  readonly principal: string;
  readonly number: number;
  /** What is on record: `maybe` where nothing was said of effects, `done` where a step has finished. */
  readonly effect: EffectKnown;
}

/**
 * What an answer means, or nothing where it means what it means by itself. The body is `null` where it is too long to be
 * kept. Must answer at once.
 */
export type JudgeFinality = (answer: Answer, attempt: JudgedAttempt) => Finality | undefined;

/**
 * What an answer means for the record. A call in doubt is its provider's to judge, and is not asked about; a word that
 * cannot be taken is told to the listeners, and costs nothing.
 */
export function judged<Tx>(
  context: Context<Tx>,
  attempt: Attempt<Tx>,
  answer: Answer,
  finality: JudgeFinality,
): Conclusion {
  const record = attempt.record();
  const ending: Ending = { kind: "answered", answer };
  const usual = concludeEnding(record, ending);
  if (openMarks(record.steps).length > 0) return usual;
  const said = wordOf(context, attempt, answer, finality);
  if (said === null) return usual;
  const overruled = overrule(record, answer, said);
  if (overruled.kind === "taken") return overruled.conclusion;
  const { operation, identity, number } = attempt;
  const { reason } = overruled;
  context.emit({ type: "finality_refused", operation, identity, attempt: number, said, reason });
  return usual;
}

function wordOf<Tx>(
  { emit }: Context<Tx>,
  attempt: Attempt<Tx>,
  answer: Answer,
  finality: JudgeFinality,
): Finality | null {
  const { operation, identity, number } = attempt;
  const failed = (error: unknown) =>
    emit({ type: "failure", what: `asking the finality of ${operation}`, error });
  try {
    const effect = effectOnRecord(attempt.record());
    // A copy: what is judged is what will be kept.
    const said: unknown = finality(structuredClone(answer), {
      ...{ operation, number, effect },
      principal: identity.principal,
    });
    if (said === undefined || isFinality(said)) return said ?? null;
    if (isPromise(said)) void said.then(() => {}, failed);
    failed(new ConfigurationError("finality", `must return ${WORDS.join(", ")} or nothing, and at once`));
  } catch (error) {
    failed(error);
  }
  return null;
}

const WORDS: readonly Finality[] = ["completed", "failed_permanent", "released", "unknown"];

function isFinality(said: unknown): said is Finality {
  return WORDS.some((word) => word === said);
}
