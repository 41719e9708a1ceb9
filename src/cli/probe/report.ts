import { CHECKS, docsOfCheck } from "./checks.ts";
import type { Finding, Verdict } from "./finding.ts";

/** One check as programs read it. */
export interface CheckDocument {
  readonly check: string;
  readonly verdict: Verdict;
  readonly promise: string;
  readonly tried: string;
  readonly came: string;
  readonly means: string;
  readonly mend: string;
  readonly docs: string;
}

export interface ReportDocument {
  readonly target: string;
  readonly faults: number;
  readonly notShown: number;
  readonly unfinished: string | null;
  readonly checks: readonly CheckDocument[];
}

/** The same findings for people and for programs. */
export function reportOf(
  target: string,
  { findings, unfinished }: { readonly findings: readonly Finding[]; readonly unfinished: string | null },
): { readonly text: string; readonly document: ReportDocument } {
  const checks = findings.map(({ id, verdict, came }): CheckDocument => {
    const { promise, tried, means, mend } = CHECKS[id];
    return { check: id, verdict, promise, tried, came, means, mend, docs: docsOfCheck(id) };
  });
  const numberOf = (verdict: Verdict) => checks.filter((check) => check.verdict === verdict).length;
  const document = {
    target,
    faults: numberOf("fault"),
    notShown: numberOf("not shown"),
    unfinished,
    checks,
  };
  return { text: textOf(document), document };
}

function textOf({ target, faults, notShown, unfinished, checks }: ReportDocument): string {
  const of = (...verdicts: readonly Verdict[]) => checks.filter(({ verdict }) => verdicts.includes(verdict));
  const blocks = [...of("fault"), ...of("passed", "told", "not shown")].map(blockOf);
  const found = faults === 0 ? "Nothing wrong was seen" : `${faults} ${faults === 1 ? "fault" : "faults"}`;
  const unseen =
    notShown === 0
      ? ""
      : `; ${notShown} of ${checks.length} checks could not be shown, which is not to say that they hold`;
  const broken = unfinished === null ? [] : [`The probe did not get to its end: ${unfinished}`];
  return [`Probed ${target}`, "", ...blocks, ...broken, `${found}${unseen}.`].join("\n");
}

/** A fault says all there is; the rest what was tried and what came. */
function blockOf({ check, verdict, promise, tried, came, means, mend, docs }: CheckDocument): string {
  const rows = [
    ["tried", tried],
    ["came", came],
    ...(verdict === "fault"
      ? [
          ["means", means],
          ["mend", mend],
          ["docs", docs],
        ]
      : []),
  ];
  const lines = rows.map(([name = "", text = ""]) => `           ${name.padEnd(6)} ${text}`);
  return [`${verdict.toUpperCase().padEnd(9)}  ${check}: ${promise}`, ...lines, ""].join("\n");
}
