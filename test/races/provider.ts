import type { ProviderKind } from "../../src/core/record.ts";
import { picked } from "./choices.ts";
import { answerText } from "./judge.ts";
import type { Library } from "./library.ts";
import {
  type CallFate,
  happens,
  hearing,
  late,
  meet,
  type Process,
  storeNow,
  underWay,
  type World,
} from "./world.ts";

/** What the provider says of an effect that it made, or will not make. */
export type Word =
  | { readonly kind: "done"; readonly id: string }
  | { readonly kind: "declined"; readonly value: string };

/** One call as it was sent. */
export interface Call {
  readonly key: string;
  readonly scope: string;
  readonly input: string;
  readonly attempt: number;
  /** By the store's clock; of a `query` provider. */
  readonly validUntil: number | null;
}

/** A call on its way. */
interface Sent extends Call {
  /** When the first call under its key was sent that the provider may still know. */
  readonly firstSentAt: number;
}

export type Seen = Word | { readonly kind: "not_found" | "pending" };

export interface Provider {
  readonly call: (process: Process, call: Call) => Promise<Word>;
  readonly look: (process: Process, key: string) => Promise<Seen>;
  readonly cancel: (process: Process, key: string) => Promise<Word | { readonly kind: "cancelled" }>;
  /** All that it keeps, as a text. */
  readonly digest: () => string;
}

export interface ProviderOptions {
  readonly world: World;
  readonly library: Library;
  readonly kind: ProviderKind;
  /** How long a `repeatable` one knows a key. */
  readonly keyTtlMs: number;
  readonly onExecuted: (call: Call, id: string) => void;
}

/** What the provider keeps of one key. */
interface Known {
  word: Word | null;
  cancelled: boolean;
  /** By true time, as all that a provider forgets. */
  knownSince: number;
  hiddenUntil: number;
  pendingUntil: number;
  firstSentAt: number;
  /** The last call under this key, whose refusal a look tells. */
  asked: Call | null;
}

interface Office extends ProviderOptions {
  readonly known: Map<string, Known>;
  readonly executions: { count: number };
}

/** A counterparty that keeps its own promises whatever the network does, and no others. */
export function createProvider(options: ProviderOptions): Provider {
  const office: Office = { ...options, known: new Map(), executions: { count: 0 } };
  return {
    call: (process, call) => {
      const sent = { ...call, firstSentAt: firstSent(office, call) };
      return asked(office, process, `call ${call.key.slice(0, 4)}`, (declines) =>
        executed(office, sent, declines),
      );
    },
    look: (process, key) => asked(office, process, `look ${key.slice(0, 4)}`, () => looked(office, key)),
    cancel: (process, key) =>
      asked(office, process, `cancel ${key.slice(0, 4)}`, () => cancelled(office, key)),
    digest: () => JSON.stringify([...office.known]),
  };
}

function clock({ world }: Office): number {
  storeNow(world);
  return world.latestMs;
}

const UNKNOWN: Known = {
  word: null,
  cancelled: false,
  knownSince: 0,
  hiddenUntil: 0,
  pendingUntil: 0,
  firstSentAt: Number.NEGATIVE_INFINITY,
  asked: null,
};

function entry({ known }: Office, key: string): Known {
  const found = known.get(key) ?? { ...UNKNOWN };
  known.set(key, found);
  return found;
}

/** No copy of a request is delivered later than the provider's memory lasts from the first one on. */
function firstSent(office: Office, { key }: Call): number {
  const at = entry(office, key);
  if (!isWithin(office, at.firstSentAt)) at.firstSentAt = office.world.nowMs;
  return at.firstSentAt;
}

/** A provider's memory is longer than what is said of it by all that the store's clock has ever stepped back. */
function isWithin({ world, keyTtlMs }: Office, sinceMs: number): boolean {
  return world.nowMs <= sinceMs + keyTtlMs + world.backMs;
}

/** Throws what is an answer of the provider's and no word about the effect. */
function executed(office: Office, call: Sent, declines: boolean): Word {
  const { kind, world } = office;
  const at = entry(office, call.key);
  const now = clock(office);
  at.asked = call;
  if (at.cancelled) throw new Error("This key was cancelled.");
  const remembers = kind === "keyed" || (kind === "repeatable" && isWithin(office, at.knownSince));
  if (at.word !== null && remembers) return at.word.kind === "declined" ? declinedTo(call) : at.word;
  if (kind === "query" && call.validUntil !== null && now > call.validUntil) throw new Error("Too late.");
  if (kind === "repeatable" && !isWithin(office, call.firstSentAt)) throw new Error("Too old.");
  if (declines) {
    if (kind === "query" || kind === "blind") return declinedTo(call); // which leaves no trace there
    at.word = declinedTo(call);
    at.knownSince = world.nowMs;
    return at.word;
  }
  office.executions.count += 1;
  const word: Word = { kind: "done", id: `x${office.executions.count}` };
  office.onExecuted(call, word.id);
  at.word = word;
  at.knownSince = world.nowMs;
  if (world.choices.flag(world.rates.hide)) hide(office, at, call, now);
  return word;
}

function declinedTo({ scope, input, attempt }: Call): Word {
  return { kind: "declined", value: answerText(scope, input, attempt, "declined") };
}

/** A `query` provider shows at its deadline what it has accepted by then. */
function hide({ world, kind }: Office, at: Known, { validUntil }: Call, now: number): void {
  const longest = kind === "query" ? Math.max(0, (validUntil ?? now) - now) : 4_000;
  const untilMs = now + Math.floor((longest * (1 + world.choices.below(4))) / 4);
  const pending = world.choices.flag(0.5);
  meet(world, pending ? "provider: pending" : "provider: hidden");
  if (pending) at.pendingUntil = untilMs;
  else at.hiddenUntil = untilMs;
}

function looked(office: Office, key: string): Seen {
  const { word, hiddenUntil, pendingUntil, asked } = entry(office, key);
  const now = clock(office);
  // Under one key an earlier life may have asked for something else, which a provider cannot know.
  if (word?.kind === "declined" && asked !== null) return declinedTo({ ...asked, input: "*" });
  if (word === null || now < hiddenUntil) return { kind: "not_found" };
  return now < pendingUntil ? { kind: "pending" } : word;
}

function cancelled(office: Office, key: string): Word | { readonly kind: "cancelled" } {
  const at = entry(office, key);
  if (at.word !== null) return at.word;
  at.cancelled = true;
  return { kind: "cancelled" };
}

const CALL_ONLY: ReadonlySet<CallFate> = new Set(["not sent", "declined"]);

/** Blind and unasked-for effects have no key by which a second copy would be known. */
function fateOf({ world, kind }: Office, isCall: boolean): CallFate | "done" {
  const { rates, choices } = world;
  if (!choices.flag(rates.call)) return "done";
  const twice = kind === "keyed" || kind === "repeatable";
  const fates = rates.callFates.filter(
    (fate) => (isCall || !CALL_ONLY.has(fate)) && (twice || fate !== "twice"),
  );
  if (fates.length === 0) return "done";
  const fate = picked(choices, fates);
  meet(world, `provider: ${fate}`);
  return fate;
}

/** One exchange with the provider. */
interface Exchange<T> {
  readonly process: Process;
  readonly what: string;
  readonly perform: (declines: boolean) => T;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

function asked<T>(
  office: Office,
  process: Process,
  what: string,
  perform: (declines: boolean) => T,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const { world } = office;
    const exchange = { process, what, perform, ...hearing<T>(world, process, what, { resolve, reject }) };
    underWay(office.world, what, process, () => arrives(office, exchange));
  });
}

function replies<T>({ world }: Office, { process, what }: Exchange<T>, reply: () => void): void {
  if (process.state === "live") reply();
  else if (process.state === "paused") happens(world, `reply to ${what}`, process, reply);
}

/** Carries it out; what is thrown is an answer, too. */
function reached<T>(office: Office, exchange: Exchange<T>, then: (value: T) => void, declines = false): void {
  let value: T;
  try {
    value = exchange.perform(declines);
  } catch (error) {
    replies(office, exchange, () => exchange.reject(error));
    return;
  }
  then(value);
}

function arrives<T>(office: Office, exchange: Exchange<T>): void {
  const { world, library } = office;
  const { process, what, resolve, reject } = exchange;
  const fate = fateOf(office, what.startsWith("call"));
  world.trace?.(`  ${process.name} ${what}${fate === "done" ? "" : `: ${fate}`}`);
  const unheard = () => replies(office, exchange, () => reject(new Error(`${what}: the connection broke.`)));
  const heard = (value: T) => replies(office, exchange, () => resolve(value));
  const later = () => reached(office, exchange, () => {});
  switch (fate) {
    case "not sent":
      replies(office, exchange, () => reject(new library.NotPerformed("Nothing was sent.")));
      return;
    case "not arrived":
      unheard();
      return;
    case "reply lost":
      reached(office, exchange, unheard);
      return;
    case "late":
      late(world, what, later);
      unheard();
      return;
    case "silent":
      if (world.choices.flag(0.5)) late(world, what, later);
      return;
    case "slow":
      reached(office, exchange, (value) => {
        happens(world, `reply to ${what}`, process, () => resolve(value));
      });
      return;
    case "twice":
      late(world, what, later);
      reached(office, exchange, heard);
      return;
    case "done":
    case "declined":
      reached(office, exchange, heard, fate === "declined");
      return;
  }
}
