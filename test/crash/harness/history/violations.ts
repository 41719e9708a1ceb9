import { answerRules } from "./answers.ts";
import { type Case, casesOf, sameWhose } from "./cases.ts";
import { effectRules } from "./effects.ts";
import type { History, Whose } from "./history.ts";
import { recordRules } from "./records.ts";
import type { Guarantee, Rule } from "./rule.ts";
import { traceRules } from "./traces.ts";

/** Something that must not be so, and the guarantee that it breaks. */
export interface Violation extends Whose {
  readonly guarantee: Guarantee;
  readonly what: string;
}

/** Every rule that a key must keep, whatever failed meanwhile. */
export const rules: readonly Rule[] = [...answerRules, ...effectRules, ...recordRules, ...traceRules];

/** Judges a run; an empty list says that every guarantee held as far as its history shows. */
export function violationsOf(history: History, by: readonly Rule[] = rules): readonly Violation[] {
  const judged = casesOf(history).flatMap((one) => judgedBy(by, one));
  return [...strangersIn(history), ...judged, ...moneyIn(history)];
}

function judgedBy(by: readonly Rule[], one: Case): readonly Violation[] {
  const { principal, key } = one.asked;
  return by.flatMap(({ guarantee, faults }) =>
    faults(one).map((what) => ({ guarantee, principal, key, what })),
  );
}

/** Effects that nobody asked for. */
function strangersIn({ asked, effects, executions }: History): readonly Violation[] {
  const known = new Set(asked.map(sameWhose));
  const stranger = (what: string) => (one: Whose) =>
    known.has(sameWhose(one))
      ? []
      : [{ guarantee: "G2" as const, principal: one.principal, key: one.key, what }];
  return [
    ...effects.flatMap(stranger("has an effect, and nobody asked for it")),
    ...executions.flatMap(stranger("was executed by the provider, and nobody asked for it")),
  ];
}

/** Money that came from nowhere, or went there. */
function moneyIn({ accounts, effects }: History): readonly Violation[] {
  const moved = new Map<string, number>();
  for (const { account, amount } of effects.flatMap(({ moves }) => moves))
    moved.set(account, (moved.get(account) ?? 0) + amount);
  return accounts.flatMap(({ id, opening, balance }) => {
    const expected = opening + (moved.get(id) ?? 0);
    if (balance === expected) return [];
    const what = `account ${id} holds ${balance}; its opening and its effects make ${expected}`;
    return [{ guarantee: "G4" as const, principal: "", key: "", what }];
  });
}
