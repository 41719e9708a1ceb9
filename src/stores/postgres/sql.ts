import { hash } from "node:crypto";
import type { Due, RecordWrite, Seen } from "../../core/record.ts";
import { base64, recordId } from "../codec.ts";
import type { Row } from "../row.ts";
import type { Patience } from "../store.ts";
import type { Statement } from "./connector.ts";
import { literals } from "./literal.ts";
import { packed } from "./packed.ts";
import type { Tables } from "./tables.ts";

/** Collects parameters while the text of a statement is written; each is named with its type, so that none is guessed. */
export function parameters(): {
  readonly values: readonly unknown[];
  readonly add: (value: Uint8Array | string | number | null, type: string) => string;
} {
  const values: unknown[] = [];
  return { values, add: (value, type) => `$${values.push(value)}::${type}` };
}

export type Parameters = ReturnType<typeof parameters>;

/**
 * Creates the record or finds the one that stands, in one trip. A claim, which holds no answer yet, is sent without
 * parameters: one message is read and planned at once for less than five.
 */
export function insertStatement(
  { claim }: Tables,
  row: Row<Due>,
  attempt: RecordWrite["attempt"],
): Statement {
  const { values, add } = row.answer_body === null ? literals() : parameters();
  const given = [idOf(row.id, add), ...writtenArguments({ row, attempt }, add)];
  return { text: `SELECT ${claim}(${given.join(", ")}) AS told`, values };
}

/** Which version, what to put in its place, and whether to wait for a lock on it. */
export interface Replacement {
  readonly seen: Seen;
  readonly row: Row<Due>;
  readonly attempt: RecordWrite["attempt"];
  readonly patience: Patience;
}

/** Puts the new version in the place of the one that was seen, or tells what stands. */
export function replaceStatement(
  { replace }: Tables,
  { seen, row, attempt, patience }: Replacement,
): Statement {
  const { values, add } = parameters();
  const waits = add(String(patience === "wait"), "boolean");
  const given = [...seenArguments(seen, add), waits, ...writtenArguments({ row, attempt }, add)];
  return { text: `SELECT ${replace}(${given.join(", ")}) AS told`, values };
}

export function readStatement({ look }: Tables, id: Uint8Array): Statement {
  const { values, add } = literals();
  return { text: `SELECT ${look}(${idOf(id, add)}) AS told`, values };
}

/** Takes the lock that says "this identity is being claimed"; freed by the end of the transaction, never waited for. */
export function tryClaimStatement(schema: string | null, id: Uint8Array): Statement {
  const text = "SELECT pg_try_advisory_xact_lock($1::bigint)::text AS claimed";
  return { text, values: [advisoryKey("claim", schema, id)] };
}

/**
 * One of PostgreSQL's 64-bit advisory locks. A hash over what it is for, so that it meets neither those of other
 * Oncekey schemas in this database nor the small numbers that people choose for theirs.
 */
export function advisoryKey(purpose: "claim" | "migrate", schema: string | null, id: Uint8Array): string {
  const space = `oncekey ${purpose} ${JSON.stringify(schema)} `;
  return hash("sha256", Buffer.concat([Buffer.from(space), id]), "buffer")
    .readBigInt64BE()
    .toString();
}

/** The id of a row, as the functions take it. */
export function idOf(id: Uint8Array, add: Parameters["add"]): string {
  return add(base64(id), "text");
}

/** The version that a compare-and-set compares, as the functions take it. */
export function seenArguments(
  { identity, owner, revision }: Seen,
  add: Parameters["add"],
): readonly string[] {
  return [idOf(recordId(identity), add), add(owner, "text"), add(revision, "bigint")];
}

/** What a version is made of. */
export interface Written {
  readonly row: Row<Due>;
  readonly attempt: RecordWrite["attempt"];
  /** Its head is that of the version before it, and need not be sent. */
  readonly keepsHead?: boolean;
}

/** The same in the order in which the functions take it; nothing is sent for what is not there. */
export function writtenArguments(
  { row, attempt, keepsHead = false }: Written,
  add: Parameters["add"],
): readonly string[] {
  const { owner, state, due, head, tail, body } = packed(row);
  const [at, inMs] = due === null ? [null, null] : "at" in due ? [due.at, null] : [null, due.inMs];
  const orNull = (value: string | number | null, type: string) => (value === null ? NULL : add(value, type));
  return [
    ...[add(owner, "text"), orNull(attempt === "next" ? null : attempt, "bigint"), add(state, "text")],
    ...[orNull(at, "bigint"), orNull(inMs, "bigint"), keepsHead ? NULL : add(head, "text")],
    ...[add(tail, "text"), orNull(body === null ? null : base64(body), "text")],
  ];
}

const NULL = "NULL";
