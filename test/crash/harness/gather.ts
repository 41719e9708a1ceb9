import { sameWhose } from "./history/cases.ts";
import type { Execution, History, Trace } from "./history/history.ts";
import type { Place } from "./place.ts";
import type { Times } from "./plan.ts";
import { type Recorder, standingOf } from "./recorder.ts";
import type { Wanted } from "./wanted.ts";

export interface Sources {
  readonly asked: readonly Wanted[];
  readonly recorder: Recorder;
  readonly place: Place;
  /** The bank's ledger. */
  readonly executed: readonly Readonly<Record<string, unknown>>[];
  /** What the processes said. */
  readonly lines: readonly string[];
  readonly times: Times;
}

/** Everything that was seen of a run, once nothing moves any more. */
export async function historyOf({
  asked,
  recorder,
  place,
  executed,
  lines,
  times,
}: Sources): Promise<History> {
  const standing = [];
  // With one commit nobody says that an attempt runs: what stands before its transaction may run for a duplicate, too.
  const untraced = new Set(asked.filter(({ path }) => path === "/one").map(sameWhose));
  for (const whose of asked) standing.push(await standingOf(place.store, whose));
  const { effects, accounts } = await place.found();
  return {
    effects: effects.map((effect) =>
      untraced.has(sameWhose(effect)) ? { ...effect, attempt: null } : effect,
    ),
    ...{ accounts, asked, standing, calls: recorder.calls, looks: recorder.looks },
    executions: executed.map(executionIn),
    traces: lines.flatMap((line) => traceIn(line) ?? []),
    times: { leaseMs: times.lease, sweepGraceMs: times.sweepGrace },
  };
}

/** How often what was said: which transitions there were, and which of the engine's failures. */
export function countsOf(lines: readonly string[]): Readonly<Record<string, number>> {
  const counts = new Map<string, number>();
  for (const line of lines) {
    const said = saidIn(line);
    const what = said === null ? null : whatIn(said);
    if (what !== null) counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  return Object.fromEntries([...counts].sort());
}

function whatIn(said: Readonly<Record<string, unknown>>): string | null {
  switch (said["kind"]) {
    case "ran":
    case "reached":
    case "called":
      return null;
    case "moved":
      return `${said["by"]}: ${said["from"]} to ${said["to"]}`;
    case "failure":
      return `failure while ${said["what"]}`;
    case "kept":
      return `step ${said["step"]}: ${said["called"] === true ? "made" : "skipped"}`;
    default:
      return String(said["kind"]);
  }
}

function executionIn({ id, reference }: Readonly<Record<string, unknown>>): Execution {
  const [principal = "", key = "", step = null] = String(reference).split("/");
  return { id: String(id), principal, key, step };
}

function traceIn(line: string): Trace | null {
  const said = saidIn(line);
  return said !== null && isTrace(said) ? said : null;
}

const TRACES: ReadonlySet<unknown> = new Set(["ran", "moved", "called", "kept"]);

function isTrace(said: object): said is Trace {
  return "kind" in said && TRACES.has(said.kind);
}

/** A line of JSON; a process that is killed may have begun one. */
function saidIn(line: string): Readonly<Record<string, unknown>> | null {
  if (!line.startsWith("{") || !line.endsWith("}")) return null;
  return JSON.parse(line);
}
