import type { RecordState } from "../../../src/core/record.ts";

/** What one copy of a request was told. */
export type Told =
  | (Answer & { readonly kind: "answer" })
  /** The connection died with the server. */
  | { readonly kind: "interrupted" }
  /** There was no server. */
  | { readonly kind: "unreached" };

/** An answer, as far as all copies of a request must be told the same. */
export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: Buffer;
  readonly replayed: boolean;
}

/** One row that a handler wrote. */
export interface Effect {
  readonly id: string;
  readonly key: string;
  readonly attempt: number;
  readonly note: string;
}

/** What stands in the database once every key has its answer. */
export interface Found {
  readonly effects: readonly Effect[];
  readonly states: ReadonlyMap<string, RecordState | "absent">;
}

/** What clients were told, and what of it must not be so. */
export interface Ledger {
  /** Notes what a copy of a request was told; true where that is final. */
  readonly note: (key: string, told: Told) => boolean;
  /** The same of a copy that must be a replay. */
  readonly noteReplay: (key: string, told: Told) => void;
  readonly keys: () => readonly string[];
  /** The keys that have an answer. */
  readonly answered: () => readonly string[];
  readonly counts: () => Counts;
  /** One sentence about a key for whatever is not as if each had been asked for once and answered once. */
  readonly faults: (found: Found) => readonly string[];
}

/** How many copies were told what. */
export type Counts = Readonly<Record<Meaning, number>> & {
  /** Keys whose effect was committed by an attempt that answered nobody. */
  readonly unansweredCommits: number;
};

type Meaning = "first" | "replay" | "in_progress" | "unavailable" | "interrupted" | "unreached" | "wrong";

/** The note that goes with a key, in the request and in its row. */
export function noteOf(key: string): string {
  return `for ${key}`;
}

export function openLedger(): Ledger {
  const answers = new Map<string, readonly Answer[]>();
  const counted = new Map<Meaning, number>();
  const wrong = new Set<string>();
  const note = (key: string, told: Told) => {
    const known = answers.get(key) ?? [];
    const meaning = meaningOf(told);
    counted.set(meaning, (counted.get(meaning) ?? 0) + 1);
    if (meaning === "wrong") wrong.add(`${key} was told ${shown(told)}`);
    const final = meaning === "first" || meaning === "replay";
    answers.set(key, final && told.kind === "answer" ? [...known, told] : known);
    return final;
  };
  return {
    note,
    noteReplay: (key, told) => {
      note(key, told);
      if (meaningOf(told) !== "replay") wrong.add(`${key} was not replayed, but told ${shown(told)}`);
    },
    keys: () => [...answers.keys()],
    answered: () => [...answers].filter(([, heard]) => heard.length > 0).map(([key]) => key),
    counts: () => countsOf(counted, answers),
    faults: (found) => [...wrong, ...faultsOf(answers, found)],
  };
}

/** Where effects are in the store's own database, these are the only truths that there are. */
function meaningOf(told: Told): Meaning {
  if (told.kind !== "answer") return told.kind;
  if (told.status === 201) return told.replayed ? "replay" : "first";
  const code = codeIn(told);
  if (told.status === 409 && code === "in_progress") return "in_progress";
  const undone = code === "store_unavailable" || code === "not_performed";
  return told.status === 503 && undone ? "unavailable" : "wrong";
}

function codeIn({ type, body }: Answer): unknown {
  return type.startsWith("application/problem+json") ? JSON.parse(body.toString()).code : null;
}

function shown(told: Told): string {
  return told.kind === "answer" ? `${told.status} ${told.body}` : told.kind;
}

function countsOf(
  counted: ReadonlyMap<Meaning, number>,
  answers: ReadonlyMap<string, readonly Answer[]>,
): Counts {
  const count = (meaning: Meaning) => counted.get(meaning) ?? 0;
  const ownerless = [...answers.values()].filter((heard) => heard.every(({ replayed }) => replayed));
  return {
    ...{ first: count("first"), replay: count("replay"), in_progress: count("in_progress") },
    ...{ unavailable: count("unavailable"), interrupted: count("interrupted") },
    ...{ unreached: count("unreached"), wrong: count("wrong") },
    unansweredCommits: ownerless.filter((heard) => heard.length > 0).length,
  };
}

function faultsOf(
  answers: ReadonlyMap<string, readonly Answer[]>,
  { effects, states }: Found,
): readonly string[] {
  const rows = new Map<string, readonly Effect[]>();
  for (const effect of effects) rows.set(effect.key, [...(rows.get(effect.key) ?? []), effect]);
  const strays = [...rows.keys()].filter((key) => !answers.has(key));
  return [
    ...strays.map((key) => `${key} has an effect, and nobody asked for it`),
    ...[...answers].flatMap(([key, heard]) => faultsOfKey(key, heard, rows.get(key) ?? [])),
    ...[...answers.keys()]
      .filter((key) => states.get(key) !== "completed")
      .map((key) => `the record of ${key} is ${states.get(key)}`),
  ];
}

function faultsOfKey(key: string, heard: readonly Answer[], rows: readonly Effect[]): readonly string[] {
  const [first] = heard;
  if (first === undefined) return [`${key} has no answer`];
  const faults = [];
  const differs = ({ type, body }: Answer) => type !== first.type || !body.equals(first.body);
  if (heard.some(differs)) faults.push(`${key} has different answers: ${heard.map(({ body }) => body)}`);
  if (rows.length !== 1) faults.push(`${key} has ${rows.length} effects`);
  if (!rows.some((row) => isOf(row, first)))
    faults.push(`${key} was answered ${first.body}, and its effects are ${JSON.stringify(rows)}`);
  return faults;
}

function isOf({ id, key, attempt, note }: Effect, { body }: Answer): boolean {
  return attempt > 0 && note === noteOf(key) && body.equals(Buffer.from(JSON.stringify({ id })));
}
