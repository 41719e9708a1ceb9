import { type Due, type Identity, instantOf, type KeyRecord, type RecordWrite } from "../../core/record.ts";
import { RecordCorrupt } from "../../errors.ts";
import { base64, dueOf, fromBase64, integer, json, orNull, parsedText } from "../codec.ts";
import { fromRow, type Row } from "../row.ts";

/**
 * A row as the table has it: a column for what SQL compares, orders or finds by, all else in two texts of JSON and the
 * body of the answer. Every column, the empty ones too, costs something at every statement; a text costs once.
 */
export interface Packed {
  readonly id: Uint8Array;
  readonly owner: string;
  readonly state: PackedState;
  /** When the row is to be looked at next: at its lease's end, its next look, or its retention's end. */
  readonly due: Due | null;
  /** What stays for as long as the claim does. */
  readonly head: string;
  /** What every version has of its own. */
  readonly tail: string;
  readonly body: Uint8Array | null;
}

/** The state and, of an `unknown`, who is to end it, in one word. */
export type PackedState = (typeof PACKED_STATES)[number];

export const PACKED_STATES = [
  "in_progress",
  "released",
  "completed",
  "failed_permanent",
  "unknown_reconcile",
  "unknown_review",
  "unknown_hold",
] as const;

/** Those that time alone may remove: neither what runs nor an unknown that somebody is to end. */
export const ENDED_STATES = ["completed", "failed_permanent", "released", "unknown_hold"] as const;

/** The columns of a row. */
export function packed(row: Row<Due>): Packed {
  const { id, owner, answer_body: body } = row;
  return { id, owner, body, state: stateOf(row), due: nextDueOf(row), head: headOf(row), tail: tailOf(row) };
}

/** Whether a write's `head` is that of the version before it. */
export function keepsHead(write: RecordWrite, from: KeyRecord): boolean {
  const [next, before] = [write.fingerprint, from.fingerprint];
  return (
    write.operation === from.operation &&
    write.effects === from.effects &&
    write.correlationId === from.correlationId &&
    next.version === before.version &&
    next.salt === before.salt &&
    next.raw === before.raw &&
    next.canonical === before.canonical
  );
}

/**
 * A member as a `head` has it. Whether a row has it can be told by looking for this text, without reading the JSON, which
 * in a damaged row would fail the statement for all others: inside a value no quote stands bare.
 */
export function memberOfHead(
  name: "principal" | "key" | "operation" | "correlation_id",
  value: string,
): string {
  return `${JSON.stringify(name)}:${JSON.stringify(value)}`;
}

/** The record whose row was told in lines (`toldIn`); `RecordCorrupt` when we cannot have written it. */
export function recordIn(told: string, asked?: Identity): KeyRecord {
  const { lines, rest } = cut(told, LINES);
  const [id, attempt, revision, updated, due, word, owner, head, tail] = lines;
  const updatedAt = integer(updated, "updated_at");
  const [state, disposition] = wordsOf(word);
  const texts = members(head, "head");
  const version = members(tail, "tail");
  const row: Record<string, unknown> = {
    ...{ id: Buffer.from(id ?? "", "hex"), attempt, revision, updated_at: updatedAt, state, disposition },
    owner: parsedText(() => String(owner), "owner"),
    lease_until: state === "in_progress" && due !== "" ? due : null,
    answer_body: rest === null ? null : Buffer.from(rest, "base64"),
  };
  for (const name of HEAD_TEXTS) row[name] = texts[name] ?? null;
  for (const name of HEAD_BYTES) row[name] = orNull(texts[name] ?? null, name, fromBase64);
  for (const name of TAIL_VALUES) row[name] = version[name] ?? null;
  for (const name of TAIL_BYTES) row[name] = orNull(version[name] ?? null, name, fromBase64);
  for (const name of TAIL_JSON) row[name] = orNull(version[name] ?? null, name, json);
  for (const name of TAIL_TIMES) {
    const time = orNull(version[name] ?? null, name, dueOf);
    row[name] = time === null ? null : instantOf(time, updatedAt);
  }
  return fromRow(row, asked);
}

/** The id in hex of the row that was told, whatever else is wrong with it. */
export function hexIdIn(told: string): string {
  return told.slice(0, told.indexOf("\n"));
}

/** The id of the write that a `tail` is of. */
export function writeIdIn(tail: unknown): unknown {
  return members(tail, "tail")["write_id"];
}

/** A row named `record` in lines, as `recordIn` reads it. No setting of a session has a say in them. */
export function toldIn(record: string): string {
  const column = (name: string) => `${record}.${name}`;
  return `concat_ws(E'\\n', encode(${column("id")}, 'hex'), ${column("attempt")}, ${column("revision")},
      ${column("updated_at")}, coalesce(${column("due_at")}::text, ''), ${column("state")},
      to_json(${column("owner")})::text, ${column("head")}, ${column("tail")}, encode(${column("body")}, 'base64'))`;
}

/** Before the body, which has lines of its own and is left out where it was not kept. */
const LINES = 9;

const HEAD_TEXTS = [
  ...(["kind", "principal", "identity_operation", "key", "operation", "effects"] as const),
  ...(["fingerprint_version", "correlation_id"] as const),
] as const;
const HEAD_BYTES = ["fingerprint_salt", "fingerprint_raw", "fingerprint_canonical"] as const;
/** `tombstone_ms` is the first of all members, by which the purge knows what is to leave a tombstone. */
const TAIL_VALUES = ["tombstone_ms", "write_id", "looks", "answer_status"] as const;
const TAIL_BYTES = ["reference", "answer_digest"] as const;
const TAIL_JSON = ["steps", "evidence", "answer_headers"] as const;
const TAIL_TIMES = ["created_at", "claimed_at", "next_look_at", "retain_until"] as const;

function stateOf({ state, disposition }: Row<Due>): PackedState {
  if (state !== "unknown") return state;
  return `unknown_${disposition ?? "review"}`;
}

function wordsOf(word: string | undefined): readonly [state: string, disposition: string | null] {
  const known = PACKED_STATES.find((state) => state === word);
  if (known === undefined) throw new RecordCorrupt(`state is none of ${PACKED_STATES.join(", ")}`);
  const disposition = known.startsWith("unknown_") ? known.slice("unknown_".length) : null;
  return disposition === null ? [known, null] : ["unknown", disposition];
}

function nextDueOf(row: Row<Due>): Due | null {
  switch (stateOf(row)) {
    case "in_progress":
      return row.lease_until;
    case "unknown_reconcile":
      return row.next_look_at;
    case "unknown_review":
      return null;
    case "released":
    case "completed":
    case "failed_permanent":
    case "unknown_hold":
      return row.retain_until;
  }
}

function headOf(row: Row<Due>): string {
  const members: Record<string, string> = {};
  for (const name of HEAD_TEXTS) {
    const value = row[name];
    if (value !== null) members[name] = value;
  }
  for (const name of HEAD_BYTES) members[name] = base64(row[name]);
  return JSON.stringify(members);
}

/** What is JSON already goes into it as it is. */
function tailOf(row: Row<Due>): string {
  const members: Record<string, string | number | Due> = {};
  for (const name of [...TAIL_VALUES, ...TAIL_TIMES]) {
    const value = row[name];
    if (value !== null) members[name] = value;
  }
  for (const name of TAIL_BYTES) {
    const value = row[name];
    if (value !== null) members[name] = base64(value);
  }
  const ready = TAIL_JSON.flatMap((name) => {
    const value = row[name];
    return value === null ? [] : [`"${name}":${Buffer.from(value).toString()}`];
  });
  return `${JSON.stringify(members).slice(0, -1)},${ready.join(",")}}`;
}

function members(text: unknown, name: string): Readonly<Record<string, unknown>> {
  const value = parsedText(() => String(text), name);
  if (typeof value !== "object" || value === null) throw new RecordCorrupt(`${name} is not an object`);
  return Object.fromEntries(Object.entries(value));
}

/** The first lines of a text, and what follows them; `null` where nothing does. */
export function cut(
  text: string,
  count: number,
): { readonly lines: readonly string[]; readonly rest: string | null } {
  const lines: string[] = [];
  let from = 0;
  for (let end = text.indexOf("\n"); lines.length < count; end = text.indexOf("\n", from)) {
    if (end === -1) return { lines: [...lines, text.slice(from)], rest: null };
    lines.push(text.slice(from, end));
    from = end + 1;
  }
  return { lines, rest: text.slice(from) };
}
