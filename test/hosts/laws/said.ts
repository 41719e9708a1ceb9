import assert from "node:assert/strict";
import { type ErrorCode, REGISTRY } from "../../../src/errors.ts";
import { type HeaderLine, linesOf, type WireAnswer } from "../wire.ts";

/** What a law expects of a problem beyond its registry entry. */
interface Expected {
  readonly status?: number;
  readonly retry?: string;
  readonly effect?: string;
  readonly retryAfter?: boolean;
}

/** Parses an answer as the problem of this code, and holds it to the registry. */
export function problemOf(
  answer: WireAnswer,
  code: ErrorCode,
  expected: Expected = {},
): Readonly<Record<string, unknown>> {
  const said = `${answer.status} ${answer.body}`;
  const { status, retry, effect } = { ...REGISTRY[code], ...expected };
  assert.equal(answer.status, status, said);
  assert.deepEqual(linesOf(answer, "content-type"), ["application/problem+json"], said);
  assert.deepEqual(linesOf(answer, "idempotent-replayed"), [], said);
  const document: unknown = JSON.parse(answer.body.toString());
  assert.ok(typeof document === "object" && document !== null);
  const problem = new Map<string, unknown>(Object.entries(document));
  for (const [name, value] of Object.entries({ code, status, retry, effect })) {
    assert.equal(problem.get(name), value, `${name}: ${said}`);
  }
  assert.equal(problem.get("type"), `urn:oncekey:error:${code}`);
  assert.ok(answer.complete);
  const retryAfter = linesOf(answer, "retry-after");
  assert.equal(retryAfter.length, expected.retryAfter === true ? 1 : 0, said);
  for (const seconds of retryAfter) assert.match(seconds, /^[1-9]\d*$/);
  return Object.fromEntries(problem);
}

export function isReplay(answer: WireAnswer): boolean {
  return linesOf(answer, "idempotent-replayed").length > 0;
}

/** The handler's own answer, sent once and whole. */
export function assertFirst(answer: WireAnswer, status: number): void {
  assert.equal(answer.status, status, `${answer.status} ${answer.body}`);
  assert.ok(!isReplay(answer));
  assert.ok(answer.complete);
}

/** The same answer again: status, bytes and every header that is kept. */
export function assertReplay(first: WireAnswer, copy: WireAnswer): void {
  assert.equal(copy.status, first.status, `${copy.status} ${copy.body}`);
  assert.deepEqual(linesOf(copy, "idempotent-replayed"), ["true"]);
  assert.equal(copy.body.toString("hex"), first.body.toString("hex"));
  assert.deepEqual(keptOf(copy), keptOf(first));
  assert.ok(copy.complete);
}

/** The headers that belong to the answer; the rest belongs to one exchange of it. */
function keptOf({ headers }: WireAnswer): readonly HeaderLine[] {
  const ofExchange = new Set([
    "date",
    "connection",
    "keep-alive",
    "content-length",
    "transfer-encoding",
    "trailer",
  ]);
  const ours = new Set(["idempotent-replayed", "idempotency-expires"]);
  return headers.filter(([name]) => !ofExchange.has(name) && !ours.has(name)).toSorted();
}

/** A request line and its key, and what else a law adds to them. */
export function keyed(
  key: string,
  more: readonly HeaderLine[] = [],
): { readonly headers: readonly HeaderLine[] } {
  return { headers: [["Idempotency-Key", key], ...more] };
}

/** A JSON request with a key. */
export function json(
  key: string,
  body: unknown,
  more: readonly HeaderLine[] = [],
): { readonly headers: readonly HeaderLine[]; readonly body: string } {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { ...keyed(key, [["Content-Type", "application/json"], ...more]), body: text };
}
