import { keptInProgress, keptUnknown } from "./kept.ts";
import type { InProgress, RecordWrite, Step, Unknown } from "./record.ts";
import { type OpenMark, openMarks } from "./step.ts";
import { release, type Writing } from "./transition.ts";
import { judgeOpenMarks } from "./verdict.ts";

/** What became of a step whose call was open. */
export type Learnt =
  | { readonly kind: "finished" | "refused"; readonly result: Uint8Array }
  | { readonly kind: "not_performed" }
  /** Proved dead at the provider, under this generation and for ever. */
  | { readonly kind: "cancelled" };

interface Fact extends Writing {
  readonly step: string;
  readonly learnt: Learnt;
}

/** in_progress → in_progress, unknown → unknown: one open step ends, and nothing else changes. */
export function learn(record: InProgress | Unknown, fact: Fact): RecordWrite {
  const knowing = { ...record, steps: learntBy(record.steps, fact) };
  return knowing.state === "unknown" ? keptUnknown(knowing, fact) : keptInProgress(knowing, fact);
}

/**
 * The same of an attempt that a worker may have judged dead, and that may still end by itself. Should it die with nothing
 * in doubt any more, a worker that looks `lookInMs` later finds that out; nobody else would.
 */
export function learnInTime(
  record: InProgress | Unknown,
  fact: Fact & { readonly lookInMs: number },
): RecordWrite {
  if (record.state === "in_progress") return learn(record, fact);
  const knowing = { ...record, steps: learntBy(record.steps, fact) };
  const write = keptUnknown(knowing, fact);
  if (openMarks(knowing.steps).length > 0) return write;
  return { ...write, disposition: "reconcile", nextLookAt: { inMs: fact.lookInMs } };
}

/**
 * in_progress → in_progress, unknown → released or unknown: the same of an attempt that is over. Once no call is in doubt
 * the next attempt goes on where this one stopped; until then the calls that are left say who ends the doubt.
 */
export function learnLate(
  record: InProgress | Unknown,
  fact: Fact & { readonly retainMs: number },
): RecordWrite {
  if (record.state === "in_progress") return learn(record, fact);
  const knowing = { ...record, steps: learntBy(record.steps, fact) };
  const reason = "A call of an attempt that is over was heard of; others are still in doubt.";
  const verdict = judgeOpenMarks(knowing, reason);
  if (verdict.kind === "release") return release(knowing, fact);
  const { disposition, nextLookAt } = verdict.doubt;
  return { ...keptUnknown(knowing, fact), disposition, nextLookAt };
}

/** Only an open step can end; whatever else stands was learnt before. */
function learntBy(steps: ReadonlyMap<string, Step>, { step: name, learnt }: Fact): ReadonlyMap<string, Step> {
  const step = steps.get(name);
  if (step?.state !== "open") return steps;
  return new Map(steps).set(name, after(step, learnt));
}

function after(open: OpenMark, learnt: Learnt): Step {
  switch (learnt.kind) {
    case "finished":
    case "refused":
      return { ...open, state: learnt.kind, result: learnt.result };
    case "not_performed":
      return { state: "clear", generation: open.generation };
    case "cancelled":
      return { state: "clear", generation: open.generation + 1 };
  }
}
