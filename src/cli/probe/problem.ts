import type { WireAnswer } from "./answer-reader.ts";

/** What a problem document is known by, or why an answer is none. */
export type Said =
  | { readonly kind: "code"; readonly code: string }
  | { readonly kind: "no problem"; readonly reason: string };

/** By RFC 9457 the type is what a problem is known by; most send a short code besides. */
export function saidBy({ headers, body }: WireAnswer): Said {
  const type = headers.find(([name]) => name === "content-type")?.[1] ?? "none";
  if (!/^application\/problem\+json\s*(;|$)/i.test(type)) {
    return { kind: "no problem", reason: `its Content-Type is ${printable(type)}` };
  }
  const document = documentIn(body);
  for (const name of ["code", "type"]) {
    const value = document?.get(name);
    if (typeof value === "string" && value !== "" && value !== "about:blank") {
      return { kind: "code", code: printable(value) };
    }
  }
  return { kind: "no problem", reason: "it has neither a code nor a type" };
}

/** Text of a server's with nothing in it that a terminal obeys, as far as it fits on a line. */
export function printable(text: string): string {
  const plain = text.replace(/[^\x20-\x7e]+/g, " ").trim();
  return plain.length > LONGEST ? `${plain.slice(0, LONGEST)}…` : plain;
}

const LONGEST = 120;

function documentIn(body: Buffer): ReadonlyMap<string, unknown> | null {
  try {
    const document: unknown = JSON.parse(body.toString("utf8"));
    return typeof document === "object" && document !== null ? new Map(Object.entries(document)) : null;
  } catch {
    return null; // said of it: it has neither a code nor a type
  }
}
