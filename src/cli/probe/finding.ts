import type { CheckId } from "./checks.ts";

/**
 * `fault`: a breach was seen. `passed`: it was tried, and what could be seen keeps the promise. `not shown`: it could not
 * be tried, or its result not be seen. `told`: what the server does is said and not judged.
 */
export type Verdict = "fault" | "passed" | "not shown" | "told";

export interface Finding {
  readonly id: CheckId;
  readonly verdict: Verdict;
  /** What came back, in words. */
  readonly came: string;
}

export function passed(id: CheckId, came: string): Finding {
  return { id, verdict: "passed", came };
}

export function fault(id: CheckId, came: string): Finding {
  return { id, verdict: "fault", came };
}

export function notShown(id: CheckId, came: string): Finding {
  return { id, verdict: "not shown", came };
}

export function told(id: CheckId, came: string): Finding {
  return { id, verdict: "told", came };
}

/** One finding of several looks at the same promise: any fault is one; what one look did not show, all did not. */
export function joined(id: CheckId, looks: readonly Finding[], ifNone: string): Finding {
  if (looks.length === 0) return notShown(id, ifNone);
  for (const verdict of WORST_FIRST) {
    const found = looks.filter((look) => look.verdict === verdict);
    if (found.length > 0) return { id, verdict, came: found.map(({ came }) => came).join("; ") };
  }
  return notShown(id, ifNone);
}

const WORST_FIRST: readonly Verdict[] = ["fault", "not shown", "told", "passed"];
