import { hash } from "node:crypto";
import {
  type Answer,
  type Due,
  type Evidence,
  type Identity,
  type Instant,
  instantOf,
  type RecordWrite,
  type Step,
  type StepOf,
} from "../core/record.ts";
import { RecordCorrupt } from "../errors.ts";

/** The steps of a record as JSON bytes; whatever their names are, none is lost and none is special. */
export function encodeSteps(steps: ReadonlyMap<string, StepOf<Due>>): Uint8Array {
  return json([...steps].map(([name, step]) => [name, jsonOfStep(step)]));
}

/**
 * The steps that `encodeSteps` wrote. Their times may have stayed relative, since SQL cannot stamp what is inside
 * JSON: every write rewrites the whole record, so a relative one is always counted from the row's own `updatedAt`.
 */
export function decodeSteps(bytes: Uint8Array, updatedAt: Instant): ReadonlyMap<string, Step> {
  const entries = list(parsed(bytes, "steps"), "steps").map((entry) => {
    const [name, step, ...more] = list(entry, "steps");
    if (more.length > 0) throw new RecordCorrupt("steps: more than a name and a step");
    return [text(name, "step name"), stepOf(members(step, "step"), updatedAt)] as const;
  });
  return new Map(entries);
}

/** Evidence as JSON bytes. */
export function encodeEvidence({ reason, result }: Evidence): Uint8Array {
  return json({ reason, result: result === null ? null : base64(result) });
}

/** The evidence that `encodeEvidence` wrote. */
export function decodeEvidence(bytes: Uint8Array): Evidence {
  const { reason, result } = members(parsed(bytes, "evidence"), "evidence");
  return { reason: text(reason, "evidence"), result: orNull(result, "evidence", fromBase64) };
}

/** The headers of an answer as JSON bytes. */
export function encodeHeaders(headers: Answer["headers"]): Uint8Array {
  return json(headers);
}

/** The headers that `encodeHeaders` wrote. */
export function decodeHeaders(bytes: Uint8Array): Answer["headers"] {
  return list(parsed(bytes, "answer_headers"), "answer_headers").map((header) => {
    const [name, value] = list(header, "answer_headers");
    return [text(name, "header name"), text(value, "header value")] as const;
  });
}

/** Names the row of an identity: half a SHA-256, so that the index stays small however long keys are. */
export function recordId(identity: Identity): Uint8Array {
  const known = ids.get(identity);
  if (known !== undefined) return known;
  // UTF-16 tells any two strings apart; UTF-8 would make one of all damaged ones.
  const digest = hash("sha256", Buffer.from(identityText(identity), "utf16le"), "buffer");
  const id = plain(digest.subarray(0, 16));
  ids.set(identity, id);
  return id;
}

/** The same for a caller, who may do with the bytes as it likes. */
export function ownRecordId(identity: Identity): Uint8Array {
  return new Uint8Array(recordId(identity));
}

/** Every statement about a record asks for its id. */
const ids = new WeakMap<Identity, Uint8Array>();

/** Writes an identity as one text; no two identities share it. */
export function identityText(identity: Identity): string {
  const { kind, principal, key } = identity;
  const parts = kind === "http" ? [kind, principal, key] : [kind, principal, identity.operation, key];
  return parts.map((part) => `${part.length}:${part}`).join("");
}

/** Whether the bytes of an answer are its body, or a body that only who has its key can read. */
export type AnswerForm = "plain" | "sealed";

/** Tells a kept answer from one that was cut or altered, a body that was not kept from an empty one, and a sealed one from both. */
export function answerDigest(
  { status, form = "plain" }: { readonly status: number; readonly form?: AnswerForm },
  headers: Uint8Array,
  body: Uint8Array | null,
): Uint8Array {
  const size = body === null ? "not kept" : body.length;
  const shape = `${status} ${headers.length} ${size} ${form === "sealed" ? "sealed " : ""}`;
  return plain(hash("sha256", Buffer.concat([Buffer.from(shape), headers, body ?? NOTHING]), "buffer"));
}

const NOTHING = new Uint8Array();

/** A time that every store can keep: whole milliseconds, from the epoch to the last day that `Date` knows. */
export function storable(due: Due): Due {
  if ("inMs" in due) return { inMs: Math.min(Math.ceil(due.inMs), LATEST) };
  return { at: Math.min(Math.max(Math.ceil(due.at), 0), LATEST) };
}

/** A write as a store hands it back: times that every store can keep, bytes of no driver's subclass. */
export function storableWrite(write: RecordWrite): RecordWrite {
  const { version, salt, raw, canonical } = write.fingerprint;
  const common = {
    fingerprint: { version, salt: plain(salt), raw: plain(raw), canonical: plain(canonical) },
    steps: new Map([...write.steps].map(([name, step]) => [name, storableStep(step)] as const)),
    reference: plainOrNull(write.reference),
    createdAt: storable(write.createdAt),
    claimedAt: storable(write.claimedAt),
  };
  const dueOrNull = (due: Due | null) => (due === null ? null : storable(due));
  switch (write.state) {
    case "in_progress":
      return { ...write, ...common, leaseUntil: storable(write.leaseUntil) };
    case "released":
      return { ...write, ...common, retainUntil: storable(write.retainUntil) };
    case "unknown": {
      const evidence = { ...write.evidence, result: plainOrNull(write.evidence.result) };
      const [nextLookAt, retainUntil] = [dueOrNull(write.nextLookAt), dueOrNull(write.retainUntil)];
      return { ...write, ...common, evidence, nextLookAt, retainUntil };
    }
    case "completed":
    case "failed_permanent": {
      const { sealed } = write.answer;
      const body = plainOrNull(write.answer.body);
      const answer = { ...write.answer, body, ...(sealed === undefined ? {} : { sealed: plain(sealed) }) };
      const tombstoneMs = storableMs(write.tombstoneMs);
      return { ...write, ...common, answer, retainUntil: storable(write.retainUntil), tombstoneMs };
    }
  }
}

function plainOrNull(value: Uint8Array | null): Uint8Array | null {
  return value === null ? null : plain(value);
}

/** A duration that every database's integer holds, in whole milliseconds. */
export function storableMs(ms: number | null): number | null {
  return ms === null ? null : Math.min(Math.ceil(ms), LATEST);
}

function storableStep(step: StepOf<Due>): StepOf<Due> {
  if (step.state === "clear") return step;
  const keyTtlMs = storableMs(step.keyTtlMs);
  const validUntil = step.validUntil === null ? null : storable(step.validUntil);
  const times = { keyTtlMs, validUntil, openedAt: storable(step.openedAt) };
  return step.state === "open" ? { ...step, ...times } : { ...step, ...times, result: plain(step.result) };
}

/** Reads one value of a row; the reader names what is wrong. */
export type Reader<Value> = (value: unknown, name: string) => Value;

export function orNull<Value>(value: unknown, name: string, read: Reader<Value>): Value | null {
  return value === null ? null : read(value, name);
}

export const text: Reader<string> = (value, name) => {
  if (typeof value !== "string") throw new RecordCorrupt(`${name} is not text`);
  return value;
};

/** Drivers hand 64-bit integers back as numbers, bigints or text. */
export const integer: Reader<number> = (value, name) => {
  const wide = typeof value === "bigint" || (typeof value === "string" && /^-?\d{1,16}$/.test(value));
  const number = wide ? Number(value) : value;
  if (typeof number !== "number" || !Number.isSafeInteger(number))
    throw new RecordCorrupt(`${name} is no integer`);
  return number;
};

export const bytes: Reader<Uint8Array> = (value, name) => {
  if (!(value instanceof Uint8Array)) throw new RecordCorrupt(`${name} is not bytes`);
  return plain(value);
};

export function oneOf<const Choice extends string>(
  value: unknown,
  name: string,
  choices: readonly Choice[],
): Choice {
  const choice = choices.find((candidate) => candidate === value);
  if (choice === undefined) throw new RecordCorrupt(`${name} is none of ${choices.join(", ")}`);
  return choice;
}

/** The same bytes, whatever subclass of `Uint8Array` a driver uses. */
function plain(value: Uint8Array): Uint8Array {
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

type Json = null | number | string | readonly Json[] | { readonly [name: string]: Json };

/** Every clock and every database here can name it. */
const LATEST: Instant = 8_640_000_000_000_000;
const STEP_STATES = ["open", "finished", "refused", "clear"] as const;
const PROVIDERS = ["repeatable", "keyed", "query", "blind"] as const;

/** A value as JSON bytes. */
export function json(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

function jsonOfStep(given: StepOf<Due>): Json {
  const step = storableStep(given);
  switch (step.state) {
    case "clear":
      return { state: step.state, generation: step.generation };
    case "open":
      return jsonOfMark(step);
    case "finished":
    case "refused":
      return { ...jsonOfMark(step), result: base64(step.result) };
  }
}

function jsonOfMark(step: Exclude<StepOf<Due>, { state: "clear" }>): { readonly [name: string]: Json } {
  const { state, provider, generation, keyTtlMs } = step;
  const validUntil = step.validUntil === null ? null : { ...step.validUntil };
  return { state, provider, generation, keyTtlMs, openedAt: { ...step.openedAt }, validUntil };
}

function stepOf(step: Members, updatedAt: Instant): Step {
  const state = oneOf(step.state, "step state", STEP_STATES);
  const generation = integer(step.generation, "step generation");
  if (state === "clear") return { state, generation };
  const timeOf: Reader<Instant> = (value, name) => instantOf(dueOf(value, name), updatedAt);
  const mark = {
    provider: oneOf(step.provider, "step provider", PROVIDERS),
    generation,
    openedAt: timeOf(step.openedAt, "step openedAt"),
    keyTtlMs: orNull(step.keyTtlMs, "step keyTtlMs", integer),
    validUntil: orNull(step.validUntil, "step validUntil", timeOf),
  };
  return state === "open"
    ? { ...mark, state }
    : { ...mark, state, result: fromBase64(step.result, "step result") };
}

/** A time as a write names it, that was kept as JSON. */
export const dueOf: Reader<Due> = (value, name) => {
  const due = members(value, name);
  return "at" in due ? { at: integer(due.at, name) } : { inMs: integer(due.inMs, name) };
};

type Member = keyof Evidence | "at" | "inMs" | "generation" | keyof Exclude<Step, { state: "clear" }>;
type Members = { readonly [Name in Member]?: unknown };

const parsed = (value: Uint8Array, name: string): unknown =>
  parsedText(() => new TextDecoder("utf-8", { fatal: true }).decode(value), name);

/** What a text of JSON holds. */
export function parsedText(read: () => string, name: string): unknown {
  try {
    return JSON.parse(read());
  } catch {
    throw new RecordCorrupt(`${name} is not JSON`);
  }
}

const list: Reader<readonly unknown[]> = (value, name) => {
  if (!Array.isArray(value)) throw new RecordCorrupt(`${name} is not a list`);
  return value;
};

const members: Reader<Members> = (value, name) => {
  if (typeof value !== "object" || value === null) throw new RecordCorrupt(`${name} is not an object`);
  return Object.fromEntries(Object.entries(value));
};

/** Bytes as text that every database and every driver hands back unaltered. */
export function base64(value: Uint8Array): string {
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
}

/** The bytes that `base64` wrote. */
export const fromBase64: Reader<Uint8Array> = (value, name) => {
  const decoded = Buffer.from(text(value, name), "base64");
  if (decoded.toString("base64") !== value) throw new RecordCorrupt(`${name} is not base64`);
  return plain(decoded);
};
