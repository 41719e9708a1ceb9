import { RecordCorrupt } from "../errors.ts";
import { utf8 } from "./utf8.ts";

/** The bytes to keep, or what stands in the way: `path` leads there from `value`, the value as a whole. */
export type EncodedValue =
  | { readonly kind: "encoded"; readonly bytes: Uint8Array }
  | { readonly kind: "unsupported"; readonly path: string; readonly reason: string };

/**
 * Turns what a function returned into bytes from which `decodeValue` makes an equal value; never throws.
 *
 * Kept exactly: `undefined`, `null`, booleans, numbers with NaN, the infinities and -0, bigints, strings with damaged
 * Unicode, dates with invalid ones, `Uint8Array`, plain objects with `undefined` members and one called `__proto__`,
 * arrays, `Map` and `Set`, nested up to `maxNesting` levels and up to 16 Mi characters of text.
 *
 * Kept in a plainer form: a `Buffer` as `Uint8Array`, an object without a prototype as a plain one, a hole in an
 * array as `undefined`, a getter as the value it gave, an object met twice as two. Non-enumerable members are left out.
 *
 * All else is unsupported rather than altered: functions, symbols, instances of classes, and what contains itself.
 */
export function encodeValue(value: unknown): EncodedValue {
  const sink: Sink = { text: format, full: false, ancestors: [] };
  const refusal = write(sink, value) ?? (sink.full ? tooLarge() : undefined);
  if (refusal === undefined) return { kind: "encoded", bytes: utf8(sink.text) };
  return { kind: "unsupported", path: `value${refusal.path}`, reason: refusal.reason };
}

/** Gives back the value of which `encodeValue` made these bytes; throws `RecordCorrupt` when it made no such bytes. */
export function decodeValue(bytes: Uint8Array): unknown {
  const text = orCorrupt("a kept value is not UTF-8", () => DECODER.decode(bytes));
  if (!text.startsWith(format)) {
    return corrupt(`a kept value does not begin with "${format}"; a later release may have written it`);
  }
  const node: unknown = orCorrupt("a kept value is not JSON", () => JSON.parse(text.slice(format.length)));
  return read(node, 0);
}

const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Stands before the JSON text, in which an object whose only member begins with `$` says what JSON cannot. */
const format = "v1:";

/** Far above what people nest, far below what overflows the call stack. */
export const maxNesting = 200;

/** Far above what a store takes; ends the writing of sparse arrays, and of objects shared over and over. */
const maxCharacters = 16 * 2 ** 20;

/** `full` once a piece did not fit any more; `ancestors` are the objects being written, outermost first. */
type Sink = { text: string; full: boolean; readonly ancestors: object[] };

type Refusal = { readonly path: string; readonly reason: string };

function write(sink: Sink, value: unknown): Refusal | undefined {
  if (sink.full) return tooLarge();
  switch (typeof value) {
    case "undefined":
      return put(sink, '{"$undefined":true}');
    case "boolean":
      return put(sink, String(value));
    case "number":
      if (Number.isFinite(value) && !Object.is(value, -0)) return put(sink, String(value));
      return put(sink, `{"$number":"${Object.is(value, -0) ? "-0" : value}"}`);
    case "bigint":
      return put(sink, `{"$bigint":"${value}"}`);
    case "string":
      // Asked before it is escaped, because the escaped text could be longer than a string can be.
      return value.length > maxCharacters ? tooLarge() : put(sink, JSON.stringify(value));
    case "function":
      return refuse("a function cannot be kept");
    case "symbol":
      return refuse("a symbol cannot be kept");
    case "object":
      return value === null ? put(sink, "null") : writeObject(sink, value);
  }
}

function put(sink: Sink, text: string): undefined {
  if (sink.text.length + text.length > maxCharacters) sink.full = true;
  else sink.text += text;
}

function tooLarge(): Refusal {
  return refuse(`up to here it is larger than ${maxCharacters} characters; keep a reference to it instead`);
}

function refuse(reason: string): Refusal {
  return { path: "", reason };
}

function writeObject(sink: Sink, value: object): Refusal | undefined {
  if (sink.ancestors.includes(value)) return refuse("it contains itself");
  if (sink.ancestors.length === maxNesting) return refuse(`it is nested deeper than ${maxNesting} levels`);
  sink.ancestors.push(value);
  try {
    return symbolMember(value) ?? writeContent(sink, value);
  } catch (error) {
    return threw(error);
  } finally {
    sink.ancestors.pop();
  }
}

function threw(error: unknown): Refusal {
  return refuse(`reading it threw ${error instanceof Error ? `"${error.message}"` : `a ${typeof error}`}`);
}

/** Refuses members that would not be written, so that none gets lost. */
function symbolMember(value: object): Refusal | undefined {
  const isEnumerable = (name: symbol) => Object.prototype.propertyIsEnumerable.call(value, name);
  const symbol = Object.getOwnPropertySymbols(value).find(isEnumerable);
  return symbol === undefined ? undefined : refuse(`its member ${String(symbol)} is named by a symbol`);
}

function writeContent(sink: Sink, value: object): Refusal | undefined {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (isPlain(prototype)) return writeMembers(sink, value);
  if (Array.isArray(value) && Array.isArray(prototype)) {
    return strayMember(value, value.length) ?? writeList(sink, value, (index) => `[${index}]`);
  }
  if (value instanceof Uint8Array && (prototype === Uint8Array.prototype || prototype === Buffer.prototype)) {
    return put(sink, `{"$bytes":"${base64(value)}"}`);
  }
  if (value instanceof Date && prototype === Date.prototype)
    return strayMember(value, 0) ?? writeDate(sink, value);
  if (value instanceof Map && prototype === Map.prototype)
    return strayMember(value, 0) ?? writeMap(sink, value);
  if (value instanceof Set && prototype === Set.prototype)
    return strayMember(value, 0) ?? writeSet(sink, value);
  return refuse(
    `${className(value)} cannot be kept; return plain objects, arrays, Map, Set, Date or Uint8Array`,
  );
}

/** Indices come first in the order of members, so that one look at the last one finds a stray. */
function strayMember(value: object, length: number): Refusal | undefined {
  const last = Object.keys(value).at(-1);
  if (last === undefined || Number(last) < length) return undefined;
  return below(memberStep(last), refuse("a member added to an object that is not plain cannot be kept"));
}

/** Object literals of any realm, and objects without a prototype. */
function isPlain(prototype: unknown): boolean {
  if (typeof prototype !== "object" || prototype === null) return prototype === null;
  return Object.hasOwn(prototype, "isPrototypeOf");
}

function className(value: object): string {
  const maker: unknown = value.constructor;
  const named = typeof maker === "function" && maker.name !== "";
  return named ? `an instance of ${maker.name}` : "an instance of a class without a name";
}

function base64({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("base64");
}

function writeDate(sink: Sink, date: Date): undefined {
  put(sink, `{"$date":${Number.isNaN(date.getTime()) ? "null" : `"${date.toISOString()}"`}}`);
}

function writeMap(sink: Sink, map: ReadonlyMap<unknown, unknown>): Refusal | undefined {
  put(sink, '{"$map":[');
  const refusal = writeList(sink, map.keys(), (index) => `.keys()[${index}]`);
  if (refusal !== undefined) return refusal;
  put(sink, ",");
  return writeList(sink, map.values(), (index) => `.values()[${index}]`) ?? put(sink, "]}");
}

function writeSet(sink: Sink, set: ReadonlySet<unknown>): Refusal | undefined {
  put(sink, '{"$set":');
  return writeList(sink, set, (index) => `.values()[${index}]`) ?? put(sink, "}");
}

function writeList(
  sink: Sink,
  values: Iterable<unknown>,
  step: (index: number) => string,
): Refusal | undefined {
  let index = 0;
  put(sink, "[");
  for (const value of values) {
    if (index > 0) put(sink, ",");
    const refusal = write(sink, value);
    if (refusal !== undefined) return below(step(index), refusal);
    index += 1;
  }
  return put(sink, "]");
}

function below(step: string, { path, reason }: Refusal): Refusal {
  return { path: step + path, reason };
}

/** A name that begins with `$` could be taken for a tag, so then the members stand behind a tag of their own. */
function writeMembers(sink: Sink, value: object): Refusal | undefined {
  const names = Object.keys(value);
  const tagged = names.some((name) => name.startsWith("$"));
  put(sink, tagged ? '{"$object":{' : "{");
  let before = "";
  for (const name of names) {
    put(sink, `${before}${JSON.stringify(name)}:`);
    before = ",";
    const refusal = writeMember(sink, value, name);
    if (refusal !== undefined) return below(memberStep(name), refusal);
  }
  return put(sink, tagged ? "}}" : "}");
}

function writeMember(sink: Sink, value: object, name: string): Refusal | undefined {
  let member: unknown;
  try {
    member = Reflect.get(value, name);
  } catch (error) {
    return threw(error);
  }
  return write(sink, member);
}

function memberStep(name: string): string {
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}

function corrupt(reason: string): never {
  throw new RecordCorrupt(reason);
}

function orCorrupt<Made>(reason: string, make: () => Made): Made {
  try {
    return make();
  } catch (error) {
    return corrupt(`${reason}: ${String(error)}`);
  }
}

function read(node: unknown, depth: number): unknown {
  if (typeof node !== "object" || node === null) return node;
  if (depth > maxNesting) return corrupt(`a kept value is nested deeper than ${maxNesting} levels`);
  if (Array.isArray(node)) return node.map((item) => read(item, depth + 1));
  const names = Object.keys(node);
  const tag = names.find((name) => name.startsWith("$"));
  if (tag === undefined) return readMembers(node, depth + 1);
  const reader = readers.get(tag);
  if (reader === undefined || names.length > 1) return corrupt(`a kept value has the unknown tag ${tag}`);
  return reader(Reflect.get(node, tag), depth + 1);
}

type TagReader = (content: unknown, depth: number) => unknown;

const readers: ReadonlyMap<string, TagReader> = new Map<string, TagReader>([
  ["$undefined", (content) => (content === true ? undefined : foreign("$undefined"))],
  ["$number", (content) => Number(matching("$number", content, /^(NaN|-?Infinity|-0)$/))],
  ["$bigint", (content) => BigInt(matching("$bigint", content, /^-?[0-9]+$/))],
  ["$date", readDate],
  ["$bytes", readBytes],
  ["$map", readMap],
  ["$set", (content, depth) => new Set(listOf("$set", content).map((item) => read(item, depth)))],
  ["$object", readMembers],
]);

function foreign(tag: string): never {
  return corrupt(`a kept value has something foreign behind its tag ${tag}`);
}

function matching(tag: string, content: unknown, pattern: RegExp): string {
  return typeof content === "string" && pattern.test(content) ? content : foreign(tag);
}

function listOf(tag: string, content: unknown): readonly unknown[] {
  return Array.isArray(content) ? content : foreign(tag);
}

function readDate(content: unknown): Date {
  if (content === null) return new Date(Number.NaN);
  const text = matching("$date", content, /^[-+]?\d+-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? foreign("$date") : date;
}

function readBytes(content: unknown): Uint8Array {
  const text = typeof content === "string" ? content : foreign("$bytes");
  const bytes = new Uint8Array(Buffer.from(text, "base64"));
  return base64(bytes) === text ? bytes : foreign("$bytes");
}

function readMap(content: unknown, depth: number): ReadonlyMap<unknown, unknown> {
  const [keys, values, ...more] = listOf("$map", content).map((list) => listOf("$map", list));
  if (keys === undefined || values?.length !== keys.length || more.length > 0) return foreign("$map");
  return new Map(keys.map((key, index) => [read(key, depth), read(values[index], depth)]));
}

function readMembers(content: unknown, depth: number): object {
  if (typeof content !== "object" || content === null || Array.isArray(content)) return foreign("$object");
  // In its own place: what JSON.parse made is nobody else's, and has its members as its own, `__proto__` too.
  for (const name of Object.keys(content)) {
    const item: unknown = Reflect.get(content, name);
    if (typeof item === "object" && item !== null) Reflect.set(content, name, read(item, depth));
  }
  return content;
}
