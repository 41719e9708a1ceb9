import { createHash } from "node:crypto";
import { canonicalJson } from "../core/canonical.ts";
import { lengthPrefixed } from "../core/key.ts";
import { type Pointer, parsePointer } from "../core/pointer.ts";
import type { Material, Recognisable } from "../engine/fingerprint.ts";
import { ConfigurationError } from "../errors.ts";
import type { Exchange } from "./exchange.ts";

export interface FingerprintSettings {
  /** `json` compares JSON documents as values and other bodies by bytes; `raw` compares bytes. */
  readonly mode?: "json" | "raw";
  /** Request headers that belong to the intent; none by default. */
  readonly fingerprintHeaders?: readonly string[];
  /** JSON pointers of members that may differ between attempts; `*` stands for one level. */
  readonly ignore?: readonly string[];
}

/** The rule of a route: what of a request makes it the same request. */
export interface FingerprintRule {
  /** Changes whenever the same request would hash differently. */
  readonly version: string;
  readonly mode: "json" | "raw";
  readonly headers: readonly string[];
  readonly ignore: readonly Pointer[];
}

/** Raise it when the digests of an unchanged request change. */
const RULE_REVISION = 1;

export function fingerprintRule(settings: FingerprintSettings): FingerprintRule {
  const { mode = "json", fingerprintHeaders = [], ignore = [] } = settings;
  const headers = fingerprintHeaders.map((name) => name.toLowerCase()).sort();
  const pointers = [...ignore].sort().map(usablePointer);
  const parts = [
    mode,
    String(RULE_REVISION),
    ...headers.map((name) => `+${name}`),
    ...ignore.map((text) => `-${text}`),
  ];
  return { version: parts.join(" "), mode, headers, ignore: pointers };
}

/** A request's digests under its route's rule; records of any other rule cannot be verified by it. */
export function recognisable(rule: FingerprintRule, exchange: Exchange, body: Uint8Array): Recognisable {
  const digests = material(rule, exchange, body);
  return { version: rule.version, material: (version) => (version === rule.version ? digests : null) };
}

function material(rule: FingerprintRule, exchange: Exchange, body: Uint8Array): Material {
  const { method, path, query } = exchange;
  const headers = rule.headers.flatMap((name) => [name, lengthPrefixed(exchange.header(name))]);
  const head = [method.toUpperCase(), path, mediaType(exchange), ...headers];
  let canonical: Uint8Array | undefined;
  return {
    raw: digest([...head, query], body),
    canonical: () => {
      canonical ??= digest([...head, sortedQuery(query)], canonicalBody(rule, exchange, body));
      return canonical;
    },
  };
}

function digest(head: readonly string[], body: Uint8Array | string): Uint8Array {
  const hash = createHash("sha256").update(lengthPrefixed(head));
  // The kind of the body is part of the hash: bytes that look like a canonical form are not one.
  return hash
    .update(typeof body === "string" ? "value:" : "bytes:")
    .update(body)
    .digest();
}

function canonicalBody(rule: FingerprintRule, exchange: Exchange, body: Uint8Array): Uint8Array | string {
  if (rule.mode === "raw" || body.length === 0 || !isJson(mediaType(exchange))) return body;
  const text = utf8(body);
  if (text === null) return body;
  const canonical = canonicalJson(text, { ignore: rule.ignore });
  return canonical.kind === "canonical" ? canonical.text : body;
}

/** Sorted by name, repeats in their own order; a name and a value stay apart whatever is in them. */
function sortedQuery(query: string): string {
  const pairs = [...new URLSearchParams(query)];
  pairs.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0));
  return lengthPrefixed(pairs.flat());
}

/** The essence (RFC 9110, 8.3.1): parameters such as a charset do not make another request. */
function mediaType(exchange: Exchange): string {
  return (exchange.header("content-type")[0] ?? "").split(";", 1).join("").trim().toLowerCase();
}

function isJson(essence: string): boolean {
  return essence === "application/json" || essence.endsWith("+json");
}

function utf8(body: Uint8Array): string | null {
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
  return text.includes("\ufffd") && !sameBytes(new TextEncoder().encode(text), body) ? null : text;
}

function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}

function usablePointer(text: string): Pointer {
  const parsed = parsePointer(text);
  if (parsed.kind === "pointer") return parsed.pointer;
  throw new ConfigurationError("ignore", `has a bad JSON pointer ${JSON.stringify(text)}: ${parsed.reason}`);
}
