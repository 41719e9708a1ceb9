import { type Case, type Final, isConcluded, mayStayUnknown } from "./cases.ts";
import type { Look, Standing } from "./history.ts";
import type { Rule } from "./rule.ts";

/** What may stand on record, and what it may become. */
export const recordRules: readonly Rule[] = [
  {
    guarantee: "G6",
    promise: "every record ends: concluded, released, or an unknown that a person is to end",
    faults: ({ asked, standing }) => {
      const { state, disposition } = standing;
      const left = state === "unknown" && disposition === "review" && mayStayUnknown(asked);
      if (state !== "in_progress" && (state !== "unknown" || left)) return [];
      return [`is still ${state}${disposition === null ? "" : `, to ${disposition}`}`];
    },
  },
  {
    guarantee: "G3",
    promise: "what was answered is what is on record",
    faults: ({ finals, standing }) =>
      finals.filter((final) => !isOnRecord(final, standing)).map((final) => unkept(final, standing)),
  },
  {
    guarantee: "G11",
    promise: "an answer was on record before its end left the server",
    faults: ({ finals, looks }) => finals.flatMap((final) => unkeptWhenSent(final, looks)),
  },
  {
    guarantee: "G3",
    promise: "a record that is concluded never changes again",
    faults: ({ looks, standing }) => changesIn([...looks, standing]),
  },
];

function isOnRecord({ answer }: Final, { answer: kept }: Standing): boolean {
  return kept !== null && kept.status === answer.status && kept.body === answer.body;
}

function unkept({ answer }: Final, { state, answer: kept }: Standing): string {
  const stands = kept === null ? state : `${state} with ${kept.status} ${kept.body}`;
  return `was answered ${answer.status} ${answer.body}, and its record is ${stands}`;
}

/** Looks that began when the answer had been heard, and saw something else. */
function unkeptWhenSent(final: Final, looks: readonly Look[]): readonly string[] {
  return looks
    .filter((look) => look.fromMs > final.call.toMs && !isOnRecord(final, look))
    .map((look) => unkept(final, look));
}

function changesIn(versions: readonly Standing[]): readonly string[] {
  const first = versions.findIndex(isConcluded);
  const concluded = versions[first];
  if (concluded === undefined) return [];
  return versions
    .slice(first + 1)
    .filter((later) => versionText(later) !== versionText(concluded))
    .map((later) => `was ${versionText(concluded)}, and then ${versionText(later)}`);
}

function versionText({ state, attempt, revision, answer }: Case["standing"]): string {
  return `${state} ${attempt}.${revision} ${answer === null ? "" : `${answer.status} ${answer.body}`}`;
}
