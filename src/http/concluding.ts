import { type Conclusion, concludeEnding, type Ending } from "../core/ending.ts";
import type { Answer } from "../core/record.ts";
import type { Attempt, Ended, NotOurs } from "../engine/attempt.ts";
import { concludedAs, keptInDoubt } from "../engine/concluded.ts";
import type { Context } from "../engine/context.ts";
import type { Gate } from "../engine/gate.ts";
import type { Settling } from "../engine/returned.ts";
import { OncekeyError } from "../errors.ts";
import type { Authorise } from "./authorising.ts";
import { judged } from "./finality.ts";
import { saidByOthers } from "./foreign.ts";
import type { Guard } from "./guard.ts";
import type { Outgoing } from "./outgoing.ts";
import * as replies from "./replies.ts";
import type { TransactionDoor } from "./transaction-door.ts";

/** One attempt of a route on its way to an answer. */
export interface Running<Tx, Settles extends Settling> {
  readonly context: Context<Tx>;
  readonly guard: Guard;
  readonly attempt: Attempt<Tx>;
  readonly door: TransactionDoor<Tx, Settles>;
  readonly authorise: Authorise;
  /** What is still written of an attempt whose effects are steps, or begin by a word. */
  readonly gate: Gate | null;
}

/** Ends the attempt, once what its handler had written stands. One that a closing process has ended is as good as unheard. */
export async function conclude<Tx, Settles extends Settling>(
  running: Running<Tx, Settles>,
  said: Ending,
  { foreign = false }: Pick<Outgoing, "foreign"> = {},
): Promise<Ended | NotOurs> {
  const { context, guard, attempt, gate } = running;
  const ending = foreign ? saidByOthers(attempt.record(), said) : said;
  const error = guard.replaysErrors ? errorOf(ending) : null;
  const onDoubt = error === null ? null : () => keptInDoubt(context, attempt, error);
  const end = async (): Promise<Ended | NotOurs> => {
    try {
      return await concludedAs(attempt, conclusionOf(running, ending, foreign), onDoubt);
    } catch (error) {
      if (error instanceof OncekeyError && error.code === "attempt_ended") return { kind: "unkept" };
      throw error;
    }
  };
  return await (gate === null ? end() : gate.ended(end));
}

/** The route has a word of its own about its handler's answers, and about nothing else. */
function conclusionOf<Tx, Settles extends Settling>(
  { context, guard, attempt }: Running<Tx, Settles>,
  ending: Ending,
  foreign: boolean,
): Conclusion {
  const { finality } = guard;
  if (finality === null || foreign || ending.kind !== "answered")
    return concludeEnding(attempt.record(), ending);
  return judged(context, attempt, ending.answer, finality);
}

/** The answer that an error is; `null` where its handler may still be running, or has broken off. */
function errorOf(ending: Ending): Answer | null {
  switch (ending.kind) {
    case "answered":
      return ending.answer;
    case "threw":
    case "outcome_unknown":
      return replies.keptError();
    case "permanent_failure":
      return ending.answer;
    case "not_performed":
    case "unsettled":
      return null;
  }
}
