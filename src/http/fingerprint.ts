import { isUtf8 } from "node:buffer";
import { canonicalJson } from "../core/canonical.ts";
import { lengthPrefixed } from "../core/key.ts";
import { type Pointer, parsePointer } from "../core/pointer.ts";
import type { Material, Recognisable } from "../engine/fingerprint.ts";
import { headerNames } from "../engine/header-policy.ts";
import { taggable } from "../engine/member-tags.ts";
import { once } from "../engine/once.ts";
import { sha256 } from "../engine/sha256.ts";
import { ConfigurationError } from "../errors.ts";
import type { Content } from "./content.ts";
import type { Exchange } from "./exchange.ts";
import { mediaType } from "./received.ts";

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
  /** The whole rule in words: it changes whenever the same request would hash differently. */
  readonly version: string;
  /** `own` takes what the route's `fingerprint` says in the place of the body. */
  readonly mode: "json" | "raw" | "own";
  readonly headers: readonly string[];
  readonly ignore: readonly Pointer[];
}

/** Raise it when the digests of an unchanged request change; records of another revision cannot be verified. */
const RULE_REVISION = 1;

export function fingerprintRule(settings: FingerprintSettings): FingerprintRule {
  const { mode = "json", fingerprintHeaders = [], ignore = [] } = settings;
  if (mode !== "json" && mode !== "raw") {
    throw new ConfigurationError("mode", `must be "json" or "raw"; got ${JSON.stringify(mode)}`);
  }
  return ruleOf(mode, sorted(headerNames("fingerprintHeaders", fingerprintHeaders)), sorted(ignore));
}

function ruleOf(
  mode: FingerprintRule["mode"],
  headers: readonly string[],
  pointers: readonly string[],
): FingerprintRule {
  // Quoted, so that a pointer with blanks in it never reads as two.
  const left = pointers.map((text) => `-${JSON.stringify(text)}`);
  const version = [mode, RULE_REVISION, ...headers.map((name) => `+${name}`), ...left].join(" ");
  return { version, mode, headers, ignore: pointers.map(usablePointer) };
}

/** A request's digests under its route's rule, and under that of any kept record: its version says how to make them. */
export function recognisable(route: FingerprintRule, exchange: Exchange, content: Content): Recognisable {
  const rule = content.kind === "said" ? ruleOf("own", route.headers, []) : route;
  const digests = material(rule, exchange, content);
  return {
    version: rule.version,
    material: (version) => {
      if (version === rule.version) return digests;
      const other = ruleNamed(version);
      return other === null ? null : material(other, exchange, content);
    },
  };
}

/** The rule whose version is exactly this text, or `null`: what was not understood is missing from the rule's own. */
function ruleNamed(version: string): FingerprintRule | null {
  const [, mode, names = "", left = ""] = VERSION.exec(version) ?? [];
  if (mode !== "json" && mode !== "raw" && mode !== "own") return null;
  const fingerprintHeaders = names.split(" +").slice(1);
  const ignore = (left.match(QUOTED) ?? []).flatMap(quotedPointer);
  const rule = ruleOf(mode, sorted(fingerprintHeaders), mode === "own" ? [] : sorted(ignore));
  return rule.version === version ? rule : null;
}

const VERSION = /^(json|raw|own) \d+((?: \+[!#$%&'*+\-.^_`|~0-9a-z]+)*)((?: -"(?:[^"\\]|\\.)*")*)$/s;
const QUOTED = /"(?:[^"\\]|\\.)*"/gs;

function quotedPointer(quoted: string): readonly string[] {
  if (canonicalJson(quoted).kind === "invalid") return [];
  const text = String(JSON.parse(quoted));
  return parsePointer(text).kind === "pointer" ? [text] : [];
}

/** `null` where the rule asks for what this request has not: the bytes of a body that its route read itself, say. */
function material(rule: FingerprintRule, exchange: Exchange, content: Content): Material | null {
  const body = bodyMaterial(rule, exchange, content);
  if (body === null) return null;
  const { method, path, query } = exchange;
  const headers = rule.headers.flatMap((name) => [name, lengthPrefixed(exchange.header(name))]);
  const head = [method.toUpperCase(), path, mediaType(exchange), ...headers];
  return {
    ...body,
    raw: digest([...head, query], body.raw),
    canonical: once(() => digest([...head, sortedQuery(query)], body.canonical())),
  };
}

/** Of the body alone, or of what stands for it. */
function bodyMaterial(rule: FingerprintRule, exchange: Exchange, content: Content): Material | null {
  if (rule.mode === "own") return content.kind === "said" ? content.material : null;
  if (content.kind === "said") return null;
  const bytes = bodyDigest("bytes", content.bytes);
  if (rule.mode === "raw") return { raw: bytes, canonical: () => bytes };
  const { plain, coding } = content;
  const value = once(() => jsonOf(rule, exchange, plain));
  const plainBytes = () => (plain === content.bytes ? bytes : bodyDigest("bytes", plain));
  return {
    raw: bytes,
    canonical: () => {
      const text = value();
      return text === null ? plainBytes() : bodyDigest(coding === "" ? "value" : `value in ${coding}`, text);
    },
    members: () => {
      const text = value();
      return text === null ? null : taggable(text);
    },
  };
}

function digest(head: readonly string[], body: Uint8Array): Uint8Array {
  return sha256(Buffer.concat([Buffer.from(lengthPrefixed(head)), body]));
}

/** The kind is part of the hash: bytes that look like a canonical form are not one. */
function bodyDigest(kind: string, body: Uint8Array | string): Uint8Array {
  if (typeof body === "string") return sha256(`${kind}:${body}`);
  return sha256(Buffer.concat([Buffer.from(`${kind}:`), body]));
}

/** The value that the body is, or `null` for what is no JSON document in UTF-8: it is compared by its bytes. */
function jsonOf(rule: FingerprintRule, exchange: Exchange, body: Uint8Array): string | null {
  if (!isJson(exchange) || !isUtf8(body)) return null;
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
  const document = canonicalJson(text, { ignore: rule.ignore });
  return document.kind === "canonical" ? document.text : null;
}

/** Sorted by name, repeats in their own order; a name and a value stay apart whatever is in them. */
function sortedQuery(query: string): string {
  const pairs = query
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => {
      const at = pair.indexOf("=");
      return at < 0 ? [octets(pair), ""] : [octets(pair.slice(0, at)), octets(pair.slice(at + 1))];
    });
  pairs.sort(([left = ""], [right = ""]) => (left < right ? -1 : left > right ? 1 : 0));
  return lengthPrefixed(pairs.flat());
}

/** One character for each byte that was meant: decoding as text would make all damaged values one. */
function octets(encoded: string): string {
  const spaced = encoded.replaceAll("+", " ");
  return spaced.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** A body in letters other than those of JSON is not the document that its bytes look like. */
function isJson(exchange: Exchange): boolean {
  const essence = mediaType(exchange);
  if (essence !== "application/json" && !essence.endsWith("+json")) return false;
  const [line = ""] = exchange.header("content-type");
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(line)?.[1] ?? "utf-8";
  return /^(utf-?8|us-ascii)$/i.test(charset);
}

/** Order and repetition in a setting make no other rule. */
function sorted(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].sort();
}

function usablePointer(text: string): Pointer {
  const parsed = parsePointer(text);
  if (parsed.kind === "pointer") return parsed.pointer;
  throw new ConfigurationError(
    "ignore",
    `has a pointer that leads nowhere: ${parsed.reason.replace(/\.$/, "")}`,
  );
}
