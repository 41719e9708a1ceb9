import { type Identity, isConcluded, type KeyRecord } from "../../src/core/record.ts";
import type { Change } from "./database.ts";
import type { Row } from "./open-tx.ts";
import type { Call } from "./provider.ts";
import { processOf } from "./world.ts";

/** The invariants of the guarantees, by the numbers under which the documentation lists them. */
export type Invariant =
  | "S1"
  | "S2"
  | "S3"
  | "S4"
  | "S5"
  | "S6"
  | "S7"
  | "S8"
  | "S9"
  | "S10"
  | "S11"
  | "S12"
  | "S13"
  | "S14"
  | "L1"
  | "L2"
  | "L5";

export interface Violation {
  readonly invariant: Invariant;
  readonly what: string;
}

/** One life of a key, from its first claim until it is forgotten. */
interface Epoch {
  readonly number: number;
  rows: number;
  executions: number;
  /** Attempts up to this one are proved to have made no effect, now and for ever. */
  deadUpTo: number;
  refused: boolean;
  kept: string | null;
}

/** All that is known of one key. */
interface Scope {
  epoch: Epoch;
  last: number;
  readonly epochs: Map<number, Epoch>;
  readonly kept: Map<string, Epoch>;
  readonly effects: Set<string>;
  readonly started: Set<number>;
}

export interface JudgeOptions {
  readonly graceMs: number;
  readonly latestMs: () => number;
  /** Where a worker's own writes come from. */
  readonly isWorker: (process: string) => boolean;
  /** Whether the same attempt may be called again: a unit of a transaction that was rolled back. */
  readonly repeats: boolean;
  /** Whether effects are rows of the user's own. */
  readonly local: boolean;
  /** Leaves to the other invariants what a store that breaks its own promises does. */
  readonly storeOnTrial?: boolean;
}

/** Watches everything that is committed, executed and told, and keeps the first promise that was broken. */
export interface Judge {
  readonly onChange: (change: Change, by: string) => void;
  readonly onCommit: (rows: readonly Row[]) => void;
  readonly onPurge: (record: KeyRecord, now: number) => void;
  readonly onExecuted: (call: Call, id: string) => void;
  /** Says that the programmer's part begins under this number. */
  readonly started: (scope: string, attempt: number) => void;
  /** Says what a client was told for good. */
  readonly told: (told: Told) => void;
  readonly report: (invariant: Invariant, what: string) => void;
  readonly violation: () => Violation | null;
  readonly epochOf: (scope: string) => number;
  /** All that it has seen so far and will judge by, as a text. */
  readonly digest: () => string;
}

export interface Told {
  readonly scope: string;
  readonly input: string;
  readonly value: string;
  /** The epoch in which it was asked for. */
  readonly since: number;
}

/** What an answer holds, so that it tells whose it is and what it rests on. */
export function answerText(scope: string, input: string, attempt: number, effect: string): string {
  return `<${scope}|${input}|${attempt}|${effect}>`;
}

export function scopeOf({ principal, key }: Pick<Identity, "principal" | "key">): string {
  return `${principal}/${key}`;
}

/** What the court shares. */
interface Court extends JudgeOptions {
  readonly scopes: Map<string, Scope>;
  readonly report: Judge["report"];
}

export function createJudge(options: JudgeOptions): Judge {
  let violation: Violation | null = null;
  const report: Judge["report"] = (invariant, what) => {
    violation ??= { invariant, what };
  };
  const court: Court = { ...options, scopes: new Map(), report };
  return {
    onChange: (change, by) => changed(court, change, by),
    onCommit: (rows) => {
      for (const row of rows) committed(court, row);
    },
    onPurge: (record, now) => purged(court, record, now),
    onExecuted: (call, id) => executed(court, call, id),
    started: (scope, attempt) => started(court, scope, attempt),
    told: (told) => judgeTold(court, told),
    report,
    violation: () => violation,
    epochOf: (scope) => scopeIn(court, scope).epoch.number,
    digest: () => [...court.scopes.values()].map(scopeText).join(),
  };
}

function scopeText({ epoch, epochs, last, kept, effects, started }: Scope): string {
  const lives = new Set([...epochs.values(), epoch]);
  const told = [...lives].map((each) => Object.values(each).join(" "));
  return `${last};${told};${[...epochs].map(([attempt, { number }]) => `${attempt} ${number}`)};${[...kept.keys()]};${[...effects]};${[...started]}`;
}

function newEpoch(number: number): Epoch {
  return { number, rows: 0, executions: 0, deadUpTo: -1, refused: false, kept: null };
}

function scopeIn({ scopes }: Court, name: string): Scope {
  const known = scopes.get(name);
  if (known !== undefined) return known;
  const scope: Scope = {
    ...{ epoch: newEpoch(0), last: 0, epochs: new Map(), kept: new Map() },
    ...{ effects: new Set(), started: new Set() },
  };
  scopes.set(name, scope);
  return scope;
}

function changed(court: Court, change: Change, by: string): void {
  const { from, to, now } = change;
  const scope = scopeIn(court, scopeOf(to.identity));
  const anew = from === null || from.createdAt !== to.createdAt;
  if (from !== null && anew && !isOver(from, court.latestMs()))
    court.report("S6", `a ${from.state} record was forgotten before its time`);
  if (anew) scope.epoch = newEpoch(scope.epoch.number + 1);
  else if (isConcluded(from)) court.report("S6", `a ${from.state} record became ${to.state}`);
  judgeToken(court, scope, change);
  if (from !== null) judgeLease(court, from, to, by);
  scope.epochs.set(to.attempt, scope.epoch);
  scope.last = Math.max(scope.last, to.attempt);
  if (isConcluded(to)) concluded(court, scope, to);
  else if (!court.local) judgeDead(court, scope, from, to);
  void now;
}

function isOver(record: KeyRecord, now: number): boolean {
  return record.state !== "in_progress" && record.retainUntil !== null && record.retainUntil <= now;
}

function judgeToken({ report, storeOnTrial = false }: Court, scope: Scope, { from, to, seen }: Change): void {
  const sameHands = from !== null && from.owner === to.owner;
  const isNext = !sameHands || from.attempt !== to.attempt; // who claims its own lapsed claim again gets a number, too
  if (isNext && to.attempt <= scope.last) report("S9", `attempt ${to.attempt} came after ${scope.last}`);
  if (storeOnTrial || from === null || seen === null) return;
  if (from.owner !== seen.owner || from.revision !== seen.revision)
    report(
      "S10",
      `a write over revision ${seen.revision} of ${seen.owner} replaced ${from.revision} of ${from.owner}`,
    );
}

function judgeLease(
  { report, graceMs, latestMs, isWorker }: Court,
  from: KeyRecord,
  to: KeyRecord,
  by: string,
): void {
  if (from.state !== "in_progress" || by === processOf(from.owner)) return;
  const now = latestMs();
  if (from.leaseUntil > now)
    report("S11", `${by} made ${to.state} of an attempt whose lease had ${from.leaseUntil - now} ms left`);
  else if (isWorker(by) && from.leaseUntil + graceMs > now) report("S11", `${by} did not wait for the grace`);
}

function concluded(
  { report }: Court,
  { epoch, kept }: Scope,
  record: Extract<KeyRecord, { answer: unknown }>,
): void {
  const value = valueIn(record.answer.body);
  epoch.kept = value;
  kept.set(value, epoch);
  if (record.state !== "failed_permanent") return;
  epoch.refused = true;
  if (epoch.executions > 0 || epoch.rows > 0)
    report("S8", "a refusal was kept where an effect had been made");
}

/** The value inside an answer, whatever it is encoded in. */
export function valueIn(body: Uint8Array | null): string {
  if (body === null) return "";
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1");
  const [from, to] = [text.indexOf("<"), text.indexOf(">")];
  return from < 0 ? text : text.slice(from, to + 1);
}

/** Where nothing is open or finished any more, it is said that nothing has happened. */
function judgeDead({ report }: Court, { epoch }: Scope, from: KeyRecord | null, to: KeyRecord): void {
  const attempt = to.state === "released" ? to.attempt : (from?.attempt ?? -1);
  const silent =
    to.state === "released" || (to.state === "in_progress" && from !== null && from.owner !== to.owner);
  if (!silent) return;
  const said = to.state === "released" ? to : (from ?? to);
  if ([...said.steps.values()].some(({ state }) => state === "finished" || state === "open")) return;
  if (epoch.executions > 0)
    report("S8", `it was released (attempt ${attempt}) although an effect had been made`);
  epoch.deadUpTo = Math.max(epoch.deadUpTo, attempt);
}

function committed(court: Court, { scope: name, attempt, what }: Row): void {
  const scope = scopeIn(court, name);
  if (what === "open" || what === "abandoned") return;
  const epoch = scope.epochs.get(attempt) ?? scope.epoch;
  if (epoch !== scope.epoch) court.report("S10", `attempt ${attempt} committed in a later life of its key`);
  epoch.rows += 1;
  scope.effects.add(what);
  if (epoch.rows > 1) court.report("S1", `${epoch.rows} effects were committed under one key`);
  if (epoch.refused) court.report("S8", "an effect was committed after a refusal was kept");
}

function executed(court: Court, { scope: name, attempt }: Call, id: string): void {
  const scope = scopeIn(court, name);
  const epoch = scope.epochs.get(attempt) ?? scope.epoch;
  epoch.executions += 1;
  scope.effects.add(id);
  if (attempt <= epoch.deadUpTo)
    court.report("S8", `attempt ${attempt} executed after it was proved that nothing happens`);
  if (epoch.executions > 1)
    court.report("S2", `${epoch.executions} executions at the provider under one key`);
  if (epoch.refused) court.report("S8", "an execution after a refusal was kept");
}

function purged({ report }: Court, record: KeyRecord, now: number): void {
  const ends =
    record.state !== "in_progress" && (record.state !== "unknown" || record.disposition === "hold");
  if (!ends || (record.retainUntil ?? Number.POSITIVE_INFINITY) > now)
    report("S14", `a ${record.state} record was purged`);
}

function started(court: Court, name: string, attempt: number): void {
  const scope = scopeIn(court, name);
  if (!court.repeats && scope.started.has(attempt)) court.report("S12", `attempt ${attempt} ran twice`);
  if (!court.repeats && !scope.epochs.has(attempt))
    court.report("S9", `attempt ${attempt} ran without a claim`);
  scope.started.add(attempt);
}

function judgeTold(court: Court, { scope: name, input, value, since }: Told): void {
  const scope = scopeIn(court, name);
  const [whose, what, , effect] = value.slice(1, -1).split("|");
  if (whose !== name) court.report("S4", `${name} was told ${value}`);
  if (what !== input && what !== "*") court.report("S5", `a request for ${input} was told ${value}`);
  const epoch = scope.kept.get(value);
  if (epoch === undefined) {
    court.report("S13", `${value} was told, and was never kept`);
    return;
  }
  if (epoch.kept !== value) court.report("S3", `${value} was told where ${epoch.kept} is kept`);
  if (epoch.number < since) court.report("S3", `${value} was told after its key was forgotten`);
  if (effect !== undefined && effect !== "declined" && !scope.effects.has(effect))
    court.report("S7", `${value} was told, and there is no such effect`);
}
