import { ConfigurationError } from "../../errors.ts";
import type { Finding, History, HistoryCall, HistoryViolation, KeyHistory, Whose } from "./history.ts";
import { type Life, livesOf } from "./lives.ts";

/**
 * Judges what callers saw of a service, key by key: whether some order of the calls explains every answer (each call at one
 * instant between its sending and its answer, against a record that is free, then running, then has its one answer until its
 * retention ends); whether there is one effect for it; whether nothing that was told of is missing. A call without an answer may
 * have been carried out, at any time, or not. An empty list says that every guarantee held as far as the history shows.
 *
 * Since a record has one answer, the instants at which it can have been kept decide everything: sorting is the most
 * expensive part, n log n in the calls of a key and its number of lives.
 *
 * @throws ConfigurationError naming what is unusable: a call that ends before it begins, a time that is no number.
 */
export function checkHistory(history: History): readonly HistoryViolation[] {
  const { retentionMs = Number.POSITIVE_INFINITY } = history;
  if (!(retentionMs > 0))
    throw new ConfigurationError("retentionMs", "must be a positive number of milliseconds");
  history.calls.forEach(refuseUnusable);
  const keys = new Map<string, Mutable>();
  const keyOf = ({ principal, key }: Whose): Mutable => {
    const name = JSON.stringify([principal, key]);
    const one = keys.get(name) ?? { whose: { principal, key }, calls: [], effects: [], retentionMs };
    keys.set(name, one);
    return one;
  };
  for (const call of history.calls) keyOf(call).calls.push(call);
  for (const effect of history.effects) keyOf(effect).effects.push(effect);
  return [...keys.values()].flatMap((one) =>
    findingsOf(one).map((finding) => ({ ...one.whose, ...finding })),
  );
}

interface Mutable extends KeyHistory {
  readonly whose: Whose;
  readonly calls: HistoryCall[];
  readonly effects: History["effects"][number][];
}

function refuseUnusable({ fromMs, toMs }: HistoryCall, index: number): void {
  if (Number.isFinite(fromMs) && Number.isFinite(toMs) && fromMs <= toMs) return;
  throw new ConfigurationError(
    `calls[${index}]`,
    `must begin before it ends, and goes from ${fromMs} to ${toMs} ms`,
  );
}

function findingsOf(one: KeyHistory): readonly Finding[] {
  const { calls, effects } = one;
  if (calls.length === 0)
    return effects.map(({ id }) => ({ guarantee: "G2", what: `nobody asked for ${id}` }));
  const { lives, findings } = livesOf(one);
  const { retentionMs } = one;
  const ground = { begun: begunBy(calls), lives, retentionMs };
  return [...findings, ...calls.flatMap((call) => unfounded(call, ground)), ...effectsIn(one, lives)];
}

/** What a call was told of other requests, of which there are none that it can mean. */
function unfounded(
  call: HistoryCall,
  { begun, lives, retentionMs }: Pick<KeyHistory, "retentionMs"> & { begun: Begun; lives: readonly Life[] },
): readonly Finding[] {
  const { told, intent, fromMs, toMs } = call;
  const another = [...begun].some(([other, [first]]) => other !== intent && first <= toMs);
  switch (told.kind) {
    case "in_progress": {
      const copy = (begun.get(intent)?.[1] ?? Number.POSITIVE_INFINITY) <= toMs;
      if (another || copy) return [];
      return [{ guarantee: "G12", what: `was told in_progress at ${toMs} ms, and nobody else had asked` }];
    }
    case "key_reused": {
      const within = lives.some(
        ({ keptAtMs, finals: [first] }) =>
          first.intent === intent && fromMs > first.toMs && toMs < keptAtMs + retentionMs,
      );
      if (!within && another) return [];
      const what = `was told at ${toMs} ms that its key is another request's, which it is not`;
      return [{ guarantee: "G12", what }];
    }
    case "final":
    case "outcome_unknown":
    case "not_performed":
    case "unheard":
      return [];
  }
}

/** When the first two calls of each intent were sent. */
type Begun = ReadonlyMap<string, readonly [number, number]>;

function begunBy(calls: readonly HistoryCall[]): Begun {
  const begun = new Map<string, readonly [number, number]>();
  for (const { intent, fromMs } of calls) {
    const [first, second] = begun.get(intent) ?? [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    begun.set(intent, fromMs < first ? [fromMs, first] : [first, Math.min(second, fromMs)]);
  }
  return begun;
}

/** One effect for each life that tells of one; a life whose answer nobody heard may have one more. */
function effectsIn({ calls, effects, retentionMs }: KeyHistory, lives: readonly Life[]): readonly Finding[] {
  const told = lives.flatMap(({ finals }) => finals.slice(0, 1).map((final) => final.told));
  const made = told.filter(({ effect }) => effect === "made");
  const unheard = unheardLives(calls, lives, retentionMs);
  const findings: Finding[] = [];
  const count = effects.length;
  if (count > Math.max(1, made.length + unheard))
    findings.push({
      guarantee: "G1",
      what: `has ${count} effects: ${effects.map(({ id }) => id).join(", ")}`,
    });
  else if (count > made.length + unheard)
    findings.push({
      guarantee: "G4",
      what: `has the effect ${effects[0]?.id ?? ""}, and everybody was told that there is none`,
    });
  if (count < made.length)
    findings.push({
      guarantee: "G4",
      what: `${made.length} answers tell of an effect, and there are ${count}`,
    });
  for (const effectId of namedIn(lives))
    if (count > 0 && !effects.some(({ id }) => id === effectId))
      findings.push({ guarantee: "G4", what: `was told of the effect ${effectId}, which does not exist` });
  return findings;
}

/** The effects that anybody was told of by name. */
function namedIn(lives: readonly Life[]): ReadonlySet<string> {
  const named = lives.flatMap(({ finals }) => finals.map(({ told }) => told.effectId));
  return new Set(named.filter((effectId) => effectId !== undefined));
}

/** How many lives there can have been beside those whose answer was heard: of callers left in doubt, as far as retentions fit in. */
function unheardLives(calls: readonly HistoryCall[], lives: readonly Life[], retentionMs: number): number {
  const doubtful = calls.filter(({ told }) => told.kind === "unheard" || told.kind === "outcome_unknown");
  const spanMs = Math.max(...calls.map(({ toMs }) => toMs)) - Math.min(...calls.map(({ fromMs }) => fromMs));
  return Math.max(0, Math.min(doubtful.length, 1 + Math.floor(spanMs / retentionMs) - lives.length));
}
