import {
  IncomingMessage,
  ServerResponse,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} from "node:http";
import { Socket } from "node:net";
import { RESERVED_HEADERS } from "../engine/header-policy.ts";
import type { Header } from "./exchange.ts";

/** The head of an answer that nothing may change any more. */
export interface Head {
  readonly status: number;
  readonly message: string;
  /** Lines that were given as an array to a response without headers: sent in that very order, repeats and all. */
  readonly raw: readonly Header[] | null;
}

/** What `writeHead` makes of its arguments: the same checks, the same errors, the same headers on the response. */
export function fixedHead(response: ServerResponse, given: readonly unknown[]): Head {
  const [asked, second, third] = given;
  const status = Number(asked) | 0;
  if (status < 100 || status > 999) {
    throw nodeError(RangeError, "ERR_HTTP_INVALID_STATUS_CODE", `Invalid status code: ${String(asked)}`);
  }
  const said = typeof second === "string" ? second : response.statusMessage;
  const message = said || STATUS_CODES[status] || "unknown";
  const raw = applied(response, typeof second === "string" ? third : (third ?? second));
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(message)) {
    throw nodeError(TypeError, "ERR_INVALID_CHAR", "Invalid character in statusMessage");
  }
  response.statusCode = status;
  response.statusMessage = message;
  return { status, message, raw };
}

function applied(response: ServerResponse, headers: unknown): readonly Header[] | null {
  if (Array.isArray(headers)) return appliedList(response, headers);
  if (typeof headers !== "object" || headers === null) return null;
  const entries = Object.entries(headers).filter(([name]) => name !== "");
  const names = new Set(entries.map(([name]) => name.toLowerCase()));
  // Two spellings of one name are two lines to Node, as long as no header was set.
  if (names.size < entries.length && response.getHeaderNames().length === 0)
    return appliedList(response, entries.flat());
  for (const [name, value] of entries) response.setHeader(name, value);
  return null;
}

function appliedList(response: ServerResponse, list: readonly unknown[]): readonly Header[] | null {
  const flat = list.every(Array.isArray) ? list.flat() : list;
  if (flat.length % 2 !== 0) {
    throw nodeError(TypeError, "ERR_INVALID_ARG_VALUE", "The argument 'headers' is invalid.");
  }
  const pairs = flat.flatMap((name, at) =>
    at % 2 === 0 ? textsOf(flat[at + 1]).map((value): Header => [String(name), value]) : [],
  );
  if (response.getHeaderNames().length > 0) {
    const repeats = keepsRepeats();
    if (repeats) for (const [name] of pairs) response.removeHeader(name);
    for (const [name, value] of pairs) {
      if (repeats) response.appendHeader(name, value);
      else response.setHeader(name, value);
    }
    return null;
  }
  for (const [name, value] of pairs) {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  }
  return pairs;
}

/** Versions of Node differ in what a list does to headers that were set before: this one is asked. */
function keepsRepeats(): boolean {
  const probe = new ServerResponse(new IncomingMessage(new Socket()));
  probe.setHeader("a", "0");
  probe.writeHead(200, ["b", "1", "b", "2"]);
  return Array.isArray(probe.getHeader("b"));
}

/** The headers of a response, one entry for each line, spelled and ordered as they would be sent. */
export function headerLines(response: ServerResponse): readonly Header[] {
  return rawNames(response).flatMap((name) =>
    textsOf(response.getHeader(name)).map((value): Header => [name, value]),
  );
}

/** Node has it on every response, and its types on requests only. */
function rawNames(response: ServerResponse): readonly string[] {
  const method: unknown = Reflect.get(response, "getRawHeaderNames");
  const names: unknown = typeof method === "function" ? Reflect.apply(method, response, []) : null;
  return Array.isArray(names) ? names.map(String) : response.getHeaderNames();
}

/** Gives a response these headers and no others. */
export function setLines(response: ServerResponse, lines: readonly Header[]): void {
  const kept = new Set(lines.map(([name]) => name.toLowerCase()));
  for (const name of response.getHeaderNames()) if (!kept.has(name)) response.removeHeader(name);
  putLines(response, linesSince(headerLines(response), lines));
}

/** Puts headers in the place of any of the same names. */
export function putLines(response: ServerResponse, lines: readonly Header[]): void {
  for (const { name, values } of byName(lines).values()) {
    const [only = ""] = values;
    response.setHeader(name, values.length === 1 ? only : values);
  }
}

/** Puts headers of ours on whatever head leaves, although its maker may clear or replace what was set before. */
export function putAtHead(response: ServerResponse, lines: readonly Header[]): void {
  const { writeHead } = response;
  const value = (...given: readonly unknown[]): unknown => {
    if (response.headersSent) return Reflect.apply(writeHead, response, given);
    for (const name of RESERVED_HEADERS) response.removeHeader(name);
    putLines(response, lines);
    return Reflect.apply(writeHead, response, given.map(withoutReserved));
  };
  if (lines.length > 0)
    Object.defineProperty(response, "writeHead", { value, configurable: true, writable: true });
}

/** What `writeHead` is given, without what only we say. */
function withoutReserved(given: unknown): unknown {
  if (Array.isArray(given)) return given.filter((_, at) => !RESERVED_HEADERS.includes(nameAt(given, at)));
  if (typeof given !== "object" || given === null) return given;
  return Object.fromEntries(
    Object.entries(given).filter(([name]) => !RESERVED_HEADERS.includes(name.toLowerCase())),
  );
}

/** Names and values take turns. */
function nameAt(list: readonly unknown[], at: number): string {
  return String(list[at - (at % 2)]).toLowerCase();
}

/** The lines whose names had other values, or none, before: what an outer layer says it says again to every copy. */
export function linesSince(before: readonly Header[], lines: readonly Header[]): readonly Header[] {
  const [was, is] = [byName(before), byName(lines)];
  const valuesIn = (named: typeof was, name: string) => named.get(name.toLowerCase())?.values.join("\n");
  return lines.filter(([name]) => valuesIn(was, name) !== valuesIn(is, name));
}

interface Named {
  /** As it was spelled first. */
  readonly name: string;
  readonly values: readonly string[];
}

/** The lines of each name together, by the name in lower case. */
export function byName(lines: readonly Header[]): ReadonlyMap<string, Named> {
  const names = new Map<string, Named>();
  for (const [name, value] of lines) {
    const known = names.get(name.toLowerCase()) ?? { name, values: [] };
    names.set(name.toLowerCase(), { name: known.name, values: [...known.values, value] });
  }
  return names;
}

/** An error as Node's own HTTP classes throw it. */
export function nodeError(kind: ErrorConstructor, code: string, message: string): Error {
  const error = Object.assign(new kind(message), { code });
  const value = () => `${error.name} [${code}]: ${message}`;
  return Object.defineProperty(error, "toString", { value, configurable: true, writable: true });
}

export function headersSent(what: "set" | "remove" | "write"): Error {
  return nodeError(
    Error,
    "ERR_HTTP_HEADERS_SENT",
    `Cannot ${what} headers after they are sent to the client`,
  );
}

function textsOf(value: unknown): readonly string[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value.map(String) : [String(value)];
}
