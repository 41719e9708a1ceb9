import { type Final, type Finding, type HistoryCall, isFinal, type KeyHistory } from "./history.ts";

/** One life of a record: from the instant at which its answer was kept until its retention ends. */
export interface Life {
  /** All that were given this answer, by the time at which they had it. */
  readonly finals: readonly [Final, ...Final[]];
  /** The earliest instant at which the answer can have been kept. */
  readonly keptAtMs: number;
}

export interface Lives {
  readonly lives: readonly Life[];
  readonly findings: readonly Finding[];
}

/**
 * Finds instants at which the record can have been concluded, so that every call fits an instant of its own: whoever has the
 * answer was there while it was kept, whoever was told something else was not. The earliest such instant is taken,
 * since it leaves most room to the next life; where there is none, no order of the calls explains what they were told.
 */
export function livesOf(one: KeyHistory): Lives {
  const { calls, retentionMs } = one;
  const open = calls.filter(({ told }) => isBeforeTheEnd(told)).sort(byBeginning);
  const lives: Life[] = [];
  const findings: Finding[] = [];
  let fromMs = Math.min(...calls.map((call) => call.fromMs));
  for (const finals of answersOf(one)) {
    const [first] = finals;
    const askedMs = Math.min(
      ...calls.filter(({ intent }) => intent === first.intent).map((call) => call.fromMs),
    );
    const keptAtMs = Math.max(fromMs, askedMs);
    if (keptAtMs > first.toMs) {
      findings.push(disagreeing(lives.at(-1)?.finals[0] ?? first, finals));
      continue;
    }
    const last = Math.max(...finals.map((call) => call.fromMs));
    const pushed = afterThose(open, Math.max(keptAtMs, last - retentionMs), retentionMs);
    if (last - retentionMs > first.toMs) findings.push(tooLate(first, last));
    else if (pushed.keptAtMs > first.toMs) findings.push(forgotten(first, pushed.by));
    const life = { finals, keptAtMs: Math.min(pushed.keptAtMs, first.toMs) };
    lives.push(life);
    fromMs = life.keptAtMs + retentionMs;
  }
  return { lives, findings };
}

/** Told by a record that has no answer: such a call has an instant outside every life. */
function isBeforeTheEnd({ kind }: HistoryCall["told"]): boolean {
  return kind === "in_progress" || kind === "outcome_unknown" || kind === "not_performed";
}

function byBeginning(one: HistoryCall, other: HistoryCall): number {
  return one.fromMs - other.fromMs;
}

/** The final answers, each with all that were given it, in the order in which they were first heard. */
function answersOf({ calls }: KeyHistory): readonly (readonly [Final, ...Final[]])[] {
  const answers = new Map<string, [Final, ...Final[]]>();
  for (const call of calls.filter(isFinal).sort((one, other) => one.toMs - other.toMs)) {
    const same = JSON.stringify([call.intent, call.told.answer]);
    const group = answers.get(same);
    if (group === undefined) answers.set(same, [call]);
    else group.push(call);
  }
  return [...answers.values()];
}

/** Whoever was told of no answer within the life has to be before it: one pass, since a later beginning only helps the earlier calls. */
function afterThose(
  open: readonly HistoryCall[],
  fromMs: number,
  retentionMs: number,
): { readonly keptAtMs: number; readonly by: HistoryCall | null } {
  let keptAtMs = fromMs;
  let by: HistoryCall | null = null;
  for (const call of open) {
    if (call.fromMs <= keptAtMs || call.toMs >= keptAtMs + retentionMs) continue;
    keptAtMs = call.fromMs;
    by = call;
  }
  return { keptAtMs, by };
}

function disagreeing(standing: Final, [first]: readonly [Final, ...Final[]]): Finding {
  if (standing.intent !== first.intent) {
    const what = `a request for ${first.intent} was answered ${first.told.answer}, while the key was that of ${standing.intent}`;
    return { guarantee: "G8", what };
  }
  return { guarantee: "G3", what: `was answered ${standing.told.answer}, and then ${first.told.answer}` };
}

function tooLate({ told }: Final, fromMs: number): Finding {
  const what = `a request sent at ${fromMs} ms was answered ${told.answer}, whose retention was over`;
  return { guarantee: "G3", what };
}

function forgotten(first: Final, by: HistoryCall | null): Finding {
  const told = by?.told.kind ?? "nothing";
  const what = `was answered by ${first.toMs} ms, and a request sent at ${by?.fromMs ?? first.fromMs} ms was told ${told}`;
  return { guarantee: "G11", what };
}
