import { shown } from "./answers.ts";
import type { Examination } from "./examination.ts";
import { type Finding, fault, notShown, passed } from "./finding.ts";
import { saidBy } from "./problem.ts";
import type { Refusal } from "./trial.ts";

/** What refusals say of themselves; to be asked for after all that brings some about. */
export const saying: Examination = {
  ids: ["problem-json"],
  examine: async ({ refusals }) => [ofRefusals(refusals)],
};

function ofRefusals(refusals: readonly Refusal[]): Finding {
  const id = "problem-json";
  if (refusals.length === 0) return notShown(id, "nothing was refused as it should be");
  const codes = new Map<string, string>();
  for (const { situation, answer } of refusals) {
    const said = saidBy(answer);
    if (said.kind === "no problem") return fault(id, `${situation}: ${said.reason}: ${shown(answer)}`);
    codes.set(situation, said.code);
  }
  const [running, reused] = [codes.get("in progress"), codes.get("other body")];
  if (running !== undefined && running === reused) {
    return fault(id, `"come again" and "never again" have one code, ${running}`);
  }
  return passed(id, [...codes].map(([situation, code]) => `${situation}: ${code}`).join(", "));
}
