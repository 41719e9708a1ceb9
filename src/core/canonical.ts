import { type Pointer, pointersTo } from "./pointer.ts";

/** The canonical text, or where and why the text is no JSON document (the caller then compares its bytes). */
export type CanonicalJson =
  | { readonly kind: "canonical"; readonly text: string }
  | { readonly kind: "invalid"; readonly at: number; readonly reason: string };

/**
 * Gives every JSON document (RFC 8259, strictly: no byte order mark either) a text that two documents share exactly
 * when they are the same value.
 *
 * - Numbers are exact decimals of any size: `1`, `1.0` and `10e-1` are one, `9007199254740993` is not its neighbour.
 * - Strings are sequences of UTF-16 code units, however they were escaped. The canonical text itself is always
 *   well-formed, so that encoding it as UTF-8 keeps lone surrogates apart.
 * - The order of array elements counts, that of object members does not. A repeated member name is kept as often as
 *   it stands there, in its order: parsers differ in which one they read, so no such document equals a plain one.
 * - What `ignore` points at is left out: an object member as if it had never been there, an array element (which
 *   must not shift its neighbours) as a placeholder that equals any value at that index.
 *
 * Nesting has no limit, and time grows with the length of the text (times its logarithm where members need sorting).
 */
export function canonicalJson(
  text: string,
  { ignore = [] }: { readonly ignore?: readonly Pointer[] } = {},
): CanonicalJson {
  const reader: Reader = { text, at: 0, problem: "" };
  const document = readDocument(reader, ignore);
  if (document === undefined) return { kind: "invalid", at: reader.at, reason: reader.problem };
  return { kind: "canonical", text: write(document) };
}

/** Where reading stands. A function that reads answers `undefined` when it failed at `at` because of `problem`. */
type Reader = { readonly text: string; at: number; problem: string };

/** A leaf is its canonical text. */
type Value = string | Branch;

/** An array or object: filled by reading, then walked by writing. `outer` replaces the call stack in both. */
type Branch = {
  readonly shape: "array" | "object";
  readonly outer: Branch | undefined;
  readonly depth: number;
  readonly members: { readonly name: string; readonly value: Value }[];
  /** The pointers that lead here. */
  readonly watched: readonly Pointer[];
  /** The quoted name of the member being read (nothing in an array), and those of `watched` that lead to it. */
  name: string;
  below: readonly Pointer[];
  written: number;
};

/** Not JSON, so no value can be mistaken for it. */
const ignoredElement = "#";

const noPointers: readonly Pointer[] = [];

function readDocument(reader: Reader, ignore: readonly Pointer[]): Value | undefined {
  let branch: Branch | undefined;
  for (;;) {
    let value = readValue(reader, branch, ignore);
    if (value === undefined) return undefined;
    if (typeof value !== "string" && !takeClose(reader, value)) {
      branch = value;
      if (!startMember(reader, branch)) return undefined;
      continue;
    }
    while (branch !== undefined) {
      addMember(branch, value);
      skipBlank(reader);
      if (take(reader, ",")) {
        if (!startMember(reader, branch)) return undefined;
        break;
      }
      if (!takeClose(reader, branch)) return fail(reader, `expected "," or the end of the ${branch.shape}`);
      value = branch;
      branch = branch.outer;
    }
    if (branch !== undefined) continue;
    skipBlank(reader);
    return reader.at === reader.text.length ? value : fail(reader, "expected the end of the text");
  }
}

function readValue(reader: Reader, outer: Branch | undefined, ignore: readonly Pointer[]): Value | undefined {
  skipBlank(reader);
  if (take(reader, "{")) return newBranch("object", outer, ignore);
  if (take(reader, "[")) return newBranch("array", outer, ignore);
  if (take(reader, '"')) return readString(reader);
  for (const word of ["true", "false", "null"]) {
    if (!reader.text.startsWith(word, reader.at)) continue;
    reader.at += word.length;
    return word;
  }
  return readNumber(reader);
}

function newBranch(shape: Branch["shape"], outer: Branch | undefined, ignore: readonly Pointer[]): Branch {
  const depth = outer === undefined ? 0 : outer.depth + 1;
  const watched = outer === undefined ? ignore : outer.below;
  return { shape, outer, depth, members: [], watched, name: "", below: noPointers, written: 0 };
}

function startMember(reader: Reader, branch: Branch): boolean {
  const name = branch.shape === "object" ? readName(reader) : "";
  if (name === undefined) return false;
  branch.name = name;
  if (branch.watched.length > 0) {
    const step = String(branch.shape === "object" ? JSON.parse(name) : branch.members.length);
    branch.below = pointersTo(branch.watched, branch.depth, step);
  }
  return true;
}

function readName(reader: Reader): string | undefined {
  skipBlank(reader);
  if (!take(reader, '"')) return fail(reader, "expected a member name in double quotes");
  const name = readString(reader);
  if (name === undefined) return undefined;
  skipBlank(reader);
  return take(reader, ":") ? name : fail(reader, 'expected ":" after a member name');
}

function addMember(branch: Branch, value: Value): void {
  const ignored = branch.below.some(({ steps }) => steps.length === branch.depth + 1);
  if (!ignored) branch.members.push({ name: branch.name, value });
  else if (branch.shape === "array") branch.members.push({ name: branch.name, value: ignoredElement });
}

/** Reads what follows an opening quote. The answer is quoted, and escaped in the one way of `JSON.stringify`. */
function readString(reader: Reader): string | undefined {
  const { text, at: start } = reader;
  let decoded = "";
  let from = start;
  let plain = true;
  for (;;) {
    const code = text.charCodeAt(reader.at);
    if (code === 0x22) {
      reader.at += 1;
      if (plain) return text.slice(start - 1, reader.at);
      return JSON.stringify(decoded + text.slice(from, reader.at - 1));
    }
    if (code === 0x5c) {
      decoded += text.slice(from, reader.at);
      const unit = readEscape(reader);
      if (unit === undefined) return undefined;
      decoded += unit;
      from = reader.at;
      plain = false;
    } else if (code >= 0x20) {
      if (code >= 0xd800 && code <= 0xdfff) plain = false;
      reader.at += 1;
    } else {
      const ended = reader.at >= text.length;
      return fail(reader, ended ? "the text ends inside a string" : "a control character must be escaped");
    }
  }
}

const escapes: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ["\\", "\\"],
  ["/", "/"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
]);

function readEscape(reader: Reader): string | undefined {
  const letter = reader.text.charAt(reader.at + 1);
  const hex = letter === "u" ? reader.text.slice(reader.at + 2, reader.at + 6) : "";
  const unit = /^[0-9a-f]{4}$/i.test(hex)
    ? String.fromCharCode(Number.parseInt(hex, 16))
    : escapes.get(letter);
  if (unit === undefined) return fail(reader, "this escape does not exist");
  reader.at += 2 + hex.length;
  return unit;
}

function readNumber(reader: Reader): string | undefined {
  const negative = take(reader, "-");
  const whole = take(reader, "0") ? "0" : readDigits(reader);
  if (whole === "") return fail(reader, negative ? "expected a digit" : "expected a value");
  const pointed = take(reader, ".");
  const fraction = pointed ? readDigits(reader) : "";
  if (pointed && fraction === "") return fail(reader, 'expected a digit after "."');
  const raised = take(reader, "e") || take(reader, "E");
  const lowered = raised && !take(reader, "+") && take(reader, "-");
  const exponent = raised ? readDigits(reader) : "0";
  if (exponent === "") return fail(reader, "expected a digit of the exponent");
  return canonicalNumber(negative, whole, fraction, lowered ? `-${exponent}` : exponent);
}

/** Digits that neither begin nor end with a zero, then the power of ten unless it is 0; every zero is `0`. */
function canonicalNumber(negative: boolean, whole: string, fraction: string, exponent: string): string {
  const digits = whole + fraction;
  let end = digits.length;
  while (end > 0 && digits.charCodeAt(end - 1) === 0x30) end -= 1;
  if (end === 0) return "0";
  const power = add(exponent, whole.length - end);
  const sign = negative ? "-" : "";
  return `${sign}${withoutLeadingZeros(digits.slice(0, end))}${power === "0" ? "" : `e${power}`}`;
}

/** Below this many digits a sum with an index into a text is an exact `number`. */
const exactDigits = 15;

/** Adds an index into a text to an exponent of any length, in time that grows with that length. */
function add(exponent: string, summand: number): string {
  const negative = exponent.startsWith("-");
  const digits = withoutLeadingZeros(negative ? exponent.slice(1) : exponent);
  if (digits.length <= exactDigits) return String((negative ? -Number(digits) : Number(digits)) + summand);
  const modulus = 10 ** exactDigits;
  const head = digits.slice(0, -exactDigits);
  const tail = Number(digits.slice(-exactDigits)) + (negative ? -summand : summand);
  const carry = Math.floor(tail / modulus);
  const sum = addCarry(head, carry) + String(tail - carry * modulus).padStart(exactDigits, "0");
  return (negative ? "-" : "") + withoutLeadingZeros(sum);
}

/** `carry` is -1, 0 or 1; `head` is at least 1. */
function addCarry(head: string, carry: number): string {
  if (carry === 0) return head;
  const [rolling, rolled] = carry > 0 ? ["9", "0"] : ["0", "9"];
  let end = head.length;
  while (end > 0 && head.charAt(end - 1) === rolling) end -= 1;
  const step = end === 0 ? "1" : `${head.slice(0, end - 1)}${Number(head.charAt(end - 1)) + carry}`;
  return step + rolled.repeat(head.length - end);
}

function withoutLeadingZeros(digits: string): string {
  let start = 0;
  while (digits.charCodeAt(start) === 0x30) start += 1;
  return digits.slice(start);
}

function readDigits(reader: Reader): string {
  const start = reader.at;
  for (;;) {
    const code = reader.text.charCodeAt(reader.at);
    if (!(code >= 0x30 && code <= 0x39)) return reader.text.slice(start, reader.at);
    reader.at += 1;
  }
}

function skipBlank(reader: Reader): void {
  for (;;) {
    const code = reader.text.charCodeAt(reader.at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
    reader.at += 1;
  }
}

/** Steps over one character when it stands here. */
function take(reader: Reader, character: string): boolean {
  if (reader.text[reader.at] !== character) return false;
  reader.at += 1;
  return true;
}

function takeClose(reader: Reader, branch: Branch): boolean {
  skipBlank(reader);
  return take(reader, branch.shape === "array" ? "]" : "}");
}

function fail(reader: Reader, problem: string): undefined {
  reader.problem = problem;
  return undefined;
}

function write(document: Value): string {
  let text = "";
  let value = document;
  let branch: Branch | undefined;
  for (;;) {
    if (typeof value === "string") {
      text += value;
    } else {
      branch = value;
      if (branch.shape === "object") branch.members.sort(byName);
      text += branch.shape === "array" ? "[" : "{";
    }
    while (branch !== undefined && branch.written === branch.members.length) {
      text += branch.shape === "array" ? "]" : "}";
      branch = branch.outer;
    }
    const member = branch?.members[branch.written];
    if (branch === undefined || member === undefined) return text;
    if (branch.written > 0) text += ",";
    if (branch.shape === "object") text += `${member.name}:`;
    branch.written += 1;
    value = member.value;
  }
}

/** By the UTF-16 code units of the quoted names. Sorting is stable, so repeated names stay in their order. */
function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}
