import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { HeaderLine } from "../wire.ts";
import { identityOf, isVolatile, OURS, valuesOf } from "./model.ts";
import { dumped, type RawAnswer } from "./raw.ts";

/**
 * The first answer is the bare one, byte for byte, but for what we say of the key and for the clock. A `Response` has no
 * framing of its own: where a host makes answers of those, how the server frames them is no part of the answer.
 */
export function assertAsBare(
  first: RawAnswer,
  bare: RawAnswer,
  { framesAnew, ownPage }: { readonly framesAnew: boolean; readonly ownPage: boolean },
): void {
  assert.deepEqual(
    told(ownPage || framesAnew ? inLatin1(first) : first, { framesAnew, ours: false }),
    told(inLatin1(bare), { framesAnew, ours: false }),
  );
  assert.deepEqual(valuesOf(first, "idempotent-replayed"), []);
}

/**
 * Node spells a head in UTF-8 where the first piece of its body is text, although it takes only Latin-1 (RFC 9110, 5.5),
 * and has checked that. Behind `protect` a head is in Latin-1 always: a copy could not say otherwise.
 */
function inLatin1(answer: RawAnswer): RawAnswer {
  const { statusLine, lines } = answer;
  return {
    ...answer,
    statusLine: fromUtf8(statusLine),
    lines: lines.map(([name, value]): HeaderLine => [name, fromUtf8(value)]),
  };
}

function fromUtf8(text: string): string {
  const decoded = Buffer.from(text, "latin1").toString("utf8");
  return decoded.includes("\ufffd") ? text : decoded;
}

/** What passes through is the bare answer with nothing added and nothing left out. */
export function assertPassed(passed: RawAnswer, bare: RawAnswer): void {
  const all = { framesAnew: false, ours: true };
  assert.deepEqual(told(inLatin1(passed), all), told(inLatin1(bare), all));
}

/**
 * The copy is the first answer: its status, its bytes without compression, and each header with its values in their order.
 * Not kept are the volatile headers, the reason phrase, what came before the head and after the body, and the framing.
 */
export function assertCopyOf(
  given: RawAnswer,
  copy: RawAnswer,
  { dropsEmpty, framesAnew }: { readonly dropsEmpty: boolean; readonly framesAnew: boolean },
): void {
  const first = dropsEmpty && [204, 205, 304].includes(given.status) ? emptied(given) : inLatin1(given);
  assert.ok(copy.complete);
  assert.equal(copy.status, first.status);
  assert.deepEqual(valuesOf(copy, "idempotent-replayed"), ["true"]);
  assert.equal(shown(copy.body), shown(identityOf(first) ?? first.body));
  assert.deepEqual(keptOf(copy, { framesAnew }), keptOf(first, { framesAnew }));
  assert.deepEqual(copy.interim, []);
  const again = copy.lines.filter(([name]) => isVolatile(name) && !OF_ANY_ANSWER.has(name.toLowerCase()));
  assert.deepEqual(again, [], "what belonged to the first exchange is not said again");
}

/** What every answer has of its own, a copy too. */
const OF_ANY_ANSWER: ReadonlySet<string> = new Set([
  ...["date", "connection", "content-length", "transfer-encoding", "content-encoding", "idempotent-replayed"],
]);

function emptied(answer: RawAnswer): RawAnswer {
  const lines = answer.lines.filter(([name]) => name.toLowerCase() !== "content-type");
  return { ...answer, lines, body: Buffer.alloc(0) };
}

export function assertProblem(answer: RawAnswer, code: string, status: number): ReadonlyMap<string, unknown> {
  assert.equal(answer.status, status);
  assert.deepEqual(valuesOf(answer, "content-type"), ["application/problem+json"]);
  assert.deepEqual(valuesOf(answer, "idempotent-replayed"), []);
  const document: unknown = JSON.parse(answer.body.toString());
  assert.ok(typeof document === "object" && document !== null);
  const problem = new Map<string, unknown>(Object.entries(document));
  assert.equal(problem.get("code"), code);
  return problem;
}

function told(
  answer: RawAnswer,
  { framesAnew, ours }: { readonly framesAnew: boolean; readonly ours: boolean },
) {
  const left = (name: string) =>
    (ours || !OURS.has(name)) && !(framesAnew && ["content-length", "transfer-encoding"].includes(name));
  const { interim, statusLine, framing, body, trailers, complete } = answer;
  return {
    ...{ interim, statusLine, framing: framesAnew ? null : framing, trailers, complete },
    lines: answer.lines
      .filter(([name]) => left(name.toLowerCase()))
      .map(([name, value]): HeaderLine => [framesAnew ? name.toLowerCase() : name, value])
      .map(([name, value]) => (name.toLowerCase() === "date" ? name : `${name}: ${value}`))
      .filter((line) => !framesAnew || !GUESSED.test(line)),
    body: shown(body),
  };
}

/** A type that a server guesses of a `Response` without one, or does not, by whether somebody had looked at its headers. */
const GUESSED = /^content-type: text\/plain; ?charset=UTF-8$/i;

/** Long ones by their hash, so that people can read what differs. */
function shown(body: Uint8Array): string {
  if (body.length <= 200) return Buffer.from(body).toString("latin1");
  return `${body.length} bytes: ${createHash("sha256").update(body).digest("hex")}`;
}

/** By name, for the order of different headers says nothing (RFC 9110, 5.3). */
function keptOf(
  { lines }: RawAnswer,
  { framesAnew }: { readonly framesAnew: boolean },
): ReadonlyMap<string, readonly string[]> {
  const kept = new Map<string, readonly string[]>();
  for (const [name, value] of lines.filter(([each]) => !isVolatile(each))) {
    if (framesAnew && GUESSED.test(`${name}: ${value}`)) continue;
    const lower = name.toLowerCase();
    kept.set(lower, [...(kept.get(lower) ?? []), value]);
  }
  return kept;
}

/** Runs a check, and says of its failure which handler it was and what the bytes were. */
export function explained(
  about: readonly string[],
  answers: Readonly<Record<string, RawAnswer | null | undefined>>,
  check: () => void,
): void {
  try {
    check();
  } catch (error) {
    const dumps = Object.entries(answers).map(([name, answer]) =>
      answer ? `--- ${name}\n${dumped(answer)}` : `--- ${name}: none`,
    );
    const said = error instanceof Error ? error.message : String(error);
    throw new Error([...about, said, ...dumps].join("\n"), { cause: error });
  }
}
