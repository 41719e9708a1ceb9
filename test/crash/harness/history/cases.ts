import type {
  Answer,
  Asked,
  Call,
  Effect,
  Execution,
  History,
  Look,
  Standing,
  Trace,
  Whose,
} from "./history.ts";

/** Everything that was seen of one key. */
export interface Case {
  readonly asked: Asked;
  /** Copies of the request, in the order in which they were answered. */
  readonly calls: readonly Call[];
  /** Calls under its key that asked for something else. */
  readonly others: readonly Call[];
  /** The answers of its own calls that are for good, in that order. */
  readonly finals: readonly Final[];
  readonly effects: readonly Effect[];
  readonly executions: readonly Execution[];
  readonly standing: Standing;
  /** In the order in which they were there. */
  readonly looks: readonly Look[];
  readonly runs: readonly Extract<Trace, { kind: "ran" }>[];
  readonly moves: readonly Extract<Trace, { kind: "moved" }>[];
  readonly stepped: readonly Extract<Trace, { kind: "called" | "kept" }>[];
  readonly times: History["times"];
}

export interface Final {
  readonly call: Call;
  readonly answer: Answer;
}

/** The same text for the same principal and key, and for no other. */
export function sameWhose({ principal, key }: Whose): string {
  return JSON.stringify([principal, key]);
}

/** The history, key by key. */
export function casesOf(history: History): readonly Case[] {
  const calls = grouped([...history.calls].sort((one, other) => one.toMs - other.toMs));
  const effects = grouped(history.effects);
  const executions = grouped(history.executions);
  const standing = grouped(history.standing);
  const looks = grouped([...history.looks].sort((one, other) => one.toMs - other.toMs));
  const traces = grouped([...history.traces].sort((one, other) => one.atMs - other.atMs));
  return history.asked.map((asked) => {
    const own = calls(asked).filter(({ intent }) => intent === asked.intent);
    const told = traces(asked);
    return {
      asked,
      calls: own,
      others: calls(asked).filter(({ intent }) => intent !== asked.intent),
      finals: own.flatMap((call) => finalIn(call)),
      effects: effects(asked),
      executions: executions(asked),
      standing: standing(asked)[0] ?? absent(asked),
      looks: looks(asked),
      runs: told.flatMap((trace) => (trace.kind === "ran" ? [trace] : [])),
      moves: told.flatMap((trace) => (trace.kind === "moved" ? [trace] : [])),
      stepped: told.flatMap((trace) => (trace.kind === "called" || trace.kind === "kept" ? [trace] : [])),
      times: history.times,
    };
  });
}

function finalIn(call: Call): readonly Final[] {
  return call.told.kind === "answer" && isFinal(call.told) ? [{ call, answer: call.told }] : [];
}

/** True for an answer that is the work's own, and not a word about the state of its key. */
export function isFinal(answer: Answer): boolean {
  return answer.status < 500 && problemIn(answer) === null;
}

/** What a problem document says of a key; `null` where the answer is none of Oncekey's. */
export function problemIn({ body, headers }: Answer): Problem | null {
  const isProblem = headers.some(
    ([name, value]) => name === "content-type" && value.startsWith("application/problem+json"),
  );
  if (!isProblem) return null;
  const document: unknown = JSON.parse(Buffer.from(body, "latin1").toString("utf8"));
  if (typeof document !== "object" || document === null) return null;
  const members = new Map<string, unknown>(Object.entries(document));
  const text = (name: string) => String(members.get(name));
  if (!text("type").startsWith("urn:oncekey:error:")) return null;
  return { code: text("code"), retry: text("retry"), effect: text("effect") };
}

export interface Problem {
  readonly code: string;
  readonly retry: string;
  readonly effect: string;
}

export function absent({ principal, key }: Whose): Standing {
  return { principal, key, state: "absent", disposition: null, attempt: 0, revision: 0, answer: null };
}

export function isConcluded({ state }: Standing): boolean {
  return state === "completed" || state === "failed_permanent";
}

/** An `unknown` that only a person ends, where the provider's silence can say nothing. */
export function mayStayUnknown({ effect }: Asked): boolean {
  return effect === "blind" || effect === "query" || effect === "declared"; // which has a step of such a kind
}

function grouped<Item extends Whose>(items: readonly Item[]): (whose: Whose) => readonly Item[] {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(sameWhose(item));
    if (group === undefined) groups.set(sameWhose(item), [item]);
    else group.push(item);
  }
  return (whose) => groups.get(sameWhose(whose)) ?? [];
}
