import type { Direction, Fault } from "./fault-link.ts";

/**
 * What a rule sees of a chunk before it is passed on. Chunks end where TCP lets them end: what a rule looks for may have
 * begun in an earlier one, which `window` and `messages` join again. That earlier part has been passed on by then and
 * stays so: the fault falls on the chunk that completes the match, as a whole. "Cut before" thus leaves the receiver with
 * a torn beginning at most, never with all of what was looked for.
 */
export interface Passage<Message> {
  readonly direction: Direction;
  /** Counts the proxy's connections from 1. */
  readonly connection: number;
  readonly chunk: Buffer;
  /** The chunk behind the last bytes of its direction that came before it. */
  readonly window: Buffer;
  /** How many bytes of `window` came before the chunk. */
  readonly before: number;
  /** The messages that end in this chunk, as the proxy's `reader` finds them. */
  readonly messages: readonly Message[];
}

/** Says when which fault shall happen. */
export interface Rule<Message> {
  readonly when: (passage: Passage<Message>) => boolean;
  readonly fault: Fault;
  /** For how many chunks; every one until `heal` where it is not given. */
  readonly times?: number;
}

/** Finds the messages in the bytes of one direction of one connection, chunk by chunk from its first byte. */
export type Reader<Message> = (chunk: Buffer) => readonly Message[];

/** How many bytes before a chunk a rule still sees. */
const windowBytes = 1024;

/** Makes a condition that holds for the chunk in which these bytes end, wherever they began. */
export function holds(bytes: string, direction: Direction): (passage: Passage<unknown>) => boolean {
  const wanted = Buffer.from(bytes);
  if (wanted.length > windowBytes) throw new Error(`A rule sees ${windowBytes} bytes, not ${wanted.length}.`);
  return (passage) =>
    passage.direction === direction &&
    passage.window.includes(wanted, Math.max(0, passage.before - wanted.length + 1));
}

/** The rules of one proxy, and what came of them. */
export interface RuleDesk<Message> {
  readonly plan: (rule: Rule<Message>) => void;
  readonly heal: () => void;
  /** Makes what judges the chunks of the connection of this number; it throws what a rule or a reader throws. */
  readonly judge: (connection: number) => (direction: Direction, chunk: Buffer) => Fault | undefined;
  readonly count: (kind: Fault["kind"]) => void;
  readonly happened: (kind: Fault["kind"]) => number;
}

export function openRuleDesk<Message>(reader: (direction: Direction) => Reader<Message>): RuleDesk<Message> {
  const rules: { readonly rule: Rule<Message>; left: number }[] = [];
  const counts = new Map<Fault["kind"], number>();
  const happened = (kind: Fault["kind"]) => counts.get(kind) ?? 0;
  const chosen = (passage: Passage<Message>): Fault | undefined => {
    const met = rules.find(({ rule }) => rule.when(passage));
    if (met === undefined) return undefined;
    met.left -= 1;
    if (met.left === 0) rules.splice(rules.indexOf(met), 1);
    return met.rule.fault;
  };
  return {
    plan: (rule) => void rules.push({ rule, left: rule.times ?? Number.POSITIVE_INFINITY }),
    heal: () => void rules.splice(0),
    judge: (connection) => {
      const looks = { request: look(reader("request")), reply: look(reader("reply")) };
      return (direction, chunk) => chosen({ direction, connection, chunk, ...looks[direction](chunk) });
    },
    count: (kind) => void counts.set(kind, happened(kind) + 1),
    happened,
  };
}

function look<Message>(read: Reader<Message>) {
  let last: Buffer = Buffer.alloc(0);
  return (chunk: Buffer) => {
    const before = last.length;
    const window = Buffer.concat([last, chunk]);
    last = window.subarray(-windowBytes);
    return { window, before, messages: read(chunk) };
  };
}
