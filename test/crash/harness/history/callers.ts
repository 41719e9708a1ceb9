import type { HistoryCall, History as Seen, Told } from "../../../../src/conformance/history/history.ts";
import { isFinal, problemIn, sameWhose } from "./cases.ts";
import type { Asked, Call, History } from "./history.ts";

/** The same run as nothing but its callers and its tables show it. */
export function callersView({ asked, calls, effects }: History): Seen {
  const known = new Map(asked.map((one) => [sameWhose(one), one]));
  return {
    calls: calls.flatMap((call) => {
      const one = known.get(sameWhose(call));
      return one === undefined ? [] : [callOf(call, one)];
    }),
    effects: effects.map(({ principal, key, id }) => ({ principal, key, id })),
  };
}

function callOf({ principal, key, intent, fromMs, toMs, told }: Call, asked: Asked): HistoryCall {
  return { principal, key, intent, fromMs, toMs, told: toldBy(told, asked) };
}

/** What is no word about the key (a store out of reach, a process that ends) leaves it open what became of the request. */
function toldBy(told: Call["told"], asked: Asked): Told {
  if (told.kind === "interrupted") return { kind: "unheard" };
  if (!isFinal(told)) return ofProblem(problemIn(told)?.code);
  const answer = `${told.status} ${JSON.stringify(told.headers)} ${told.body}`;
  // The effects of declared steps are no rows.
  const made = asked.effect !== "declared" && asked.done.includes(told.status);
  return { kind: "final", answer, effect: made ? "made" : "none" };
}

function ofProblem(code: string | undefined): Told {
  switch (code) {
    case "in_progress":
    case "outcome_unknown":
    case "not_performed":
    case "key_reused":
      return { kind: code };
  }
  return { kind: "unheard" };
}
