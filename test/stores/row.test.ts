import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Answer,
  type Due,
  type Evidence,
  type Identity,
  instantOf,
  type KeyRecord,
  type RecordWrite,
  type StepOf,
  stamp,
} from "../../src/core/record.ts";
import { OncekeyError, RecordCorrupt } from "../../src/errors.ts";
import { recordId } from "../../src/stores/codec.ts";
import { memberOfHead, packed, recordIn } from "../../src/stores/postgres/packed.ts";
import { fromRow, stampRow, toRow } from "../../src/stores/row.ts";
import { seed } from "../support/seed.ts";
import { answerOf, claimOf, httpIdentity } from "./sample.ts";

const NOW = 1_750_000_000_000;

const text = fc.string({ unit: "binary" }).filter((value) => !/\p{Surrogate}|\0/u.test(value));
const anyText = fc.oneof(
  fc.constantFrom("", "__proto__", "constructor", "a\0b", "\ud800", "\ufffd"),
  fc.string({ unit: "binary" }),
);
const latin1 = fc.string({
  unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)),
});
const bytes = fc.uint8Array({ maxLength: 40 });
const due: fc.Arbitrary<Due> = fc.oneof(
  fc.record({ inMs: fc.integer({ min: -1_000, max: 10_000_000_000 }) }),
  fc.record({ at: fc.integer({ min: 0, max: 4_000_000_000_000 }) }),
);
const orNull = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: null });

const identity: fc.Arbitrary<Identity> = fc.oneof(
  fc.record({ kind: fc.constant("http" as const), principal: text, key: text }),
  fc.record({ kind: fc.constant("run" as const), principal: text, operation: text, key: text }),
);

const mark = {
  provider: fc.constantFrom("repeatable" as const, "keyed" as const, "query" as const, "blind" as const),
  generation: fc.nat(9),
  openedAt: due,
  keyTtlMs: orNull(fc.nat()),
  validUntil: orNull(due),
};
const step: fc.Arbitrary<StepOf<Due>> = fc.oneof(
  fc.record({ ...mark, state: fc.constant("open" as const) }),
  fc.record({ ...mark, state: fc.constantFrom("finished" as const, "refused" as const), result: bytes }),
  fc.record({ state: fc.constant("clear" as const), generation: fc.nat(9) }),
);
const answer: fc.Arbitrary<Answer> = fc.record({
  status: fc.integer({ min: 200, max: 599 }),
  headers: fc.array(fc.tuple(latin1, latin1), { maxLength: 4 }),
  body: orNull(bytes),
});
const evidence: fc.Arbitrary<Evidence> = fc.record({ reason: anyText, result: orNull(bytes) });

const common = {
  identity,
  operation: text,
  effects: fc.constantFrom("transaction" as const, "declared" as const, "none" as const),
  fingerprint: fc.record({ version: text, salt: bytes, raw: bytes, canonical: bytes }),
  owner: text,
  writeId: text,
  attempt: fc.nat(),
  steps: fc.array(fc.tuple(anyText, step), { maxLength: 4 }).map((entries) => new Map(entries)),
  reference: orNull(bytes),
  correlationId: orNull(text),
  createdAt: due,
  claimedAt: due,
};
const write: fc.Arbitrary<RecordWrite> = fc.oneof(
  fc.record({ ...common, state: fc.constant("in_progress" as const), leaseUntil: due }),
  fc.record({ ...common, state: fc.constant("released" as const), retainUntil: due }),
  fc.record({
    ...common,
    state: fc.constant("unknown" as const),
    evidence,
    looks: fc.nat(99),
    nextLookAt: orNull(due),
    disposition: fc.constantFrom("reconcile" as const, "review" as const, "hold" as const),
    retainUntil: orNull(due),
  }),
  fc.record({
    ...common,
    state: fc.constantFrom("completed" as const, "failed_permanent" as const),
    answer,
    retainUntil: due,
    tombstoneMs: orNull(fc.nat()),
  }),
);

describe("a row", () => {
  test("holds every write, and gives back the record that the write became", () => {
    fc.assert(
      fc.property(write, fc.nat(), (asked, revision) => {
        const attempt = asked.attempt === "next" ? 1 : asked.attempt;
        const row = stampRow(toRow(asked), { attempt, revision, now: NOW });
        expect(fromRow(row, asked.identity)).toEqual(stamp(asked, { attempt, revision, updatedAt: NOW }));
      }),
      { seed: seed(), numRuns: 500 },
    );
  });

  test("is packed into few columns without losing any of it", () => {
    fc.assert(
      fc.property(write, fc.nat(), (asked, revision) => {
        const attempt = asked.attempt === "next" ? 1 : asked.attempt;
        const told = toldOf(asked, { attempt, revision });
        expect(recordIn(told, asked.identity)).toEqual(stamp(asked, { attempt, revision, updatedAt: NOW }));
      }),
      { seed: seed(), numRuns: 500 },
    );
  });

  test("is found by a member of its head and by nothing that looks like one", () => {
    fc.assert(
      fc.property(write, text, (asked, other) => {
        const { head } = packed(toRow(asked));
        expect(head).toContain(memberOfHead("key", asked.identity.key));
        const { principal } = asked.identity;
        expect(head.includes(memberOfHead("principal", other))).toBe(principal === other);
        const spoof = { ...asked, operation: memberOfHead("key", other) };
        expect(packed(toRow(spoof)).head.includes(memberOfHead("key", other))).toBe(
          asked.identity.key === other,
        );
      }),
      { seed: seed(), numRuns: 500 },
    );
  });

  test("never gives two identities one id", () => {
    fc.assert(
      fc.property(identity, identity, (one, other) => {
        const same = JSON.stringify(one) === JSON.stringify(other);
        expect(Buffer.compare(recordId(one), recordId(other)) === 0).toBe(same);
      }),
      { seed: seed(), numRuns: 2_000 },
    );
  });

  test.each<[Identity, Identity]>([
    [httpIdentity("c", "a:b"), httpIdentity("b:c", "a")],
    [httpIdentity("k", "a"), { kind: "run", principal: "a", operation: "", key: "k" }],
    [httpIdentity("\ud800"), httpIdentity("\ud801")],
    [httpIdentity("e\u0301"), httpIdentity("\u00e9")],
    [httpIdentity("Abc"), httpIdentity("abc")],
    [httpIdentity("1:a1:b", ""), httpIdentity("", "1:a1:b")],
  ])("keeps apart %j and %j", (one, other) => {
    expect(recordId(one)).toHaveLength(16);
    expect(recordId(one)).not.toEqual(recordId(other));
  });

  test("brings a time that no calendar knows back to the nearest one that it can keep", () => {
    const times = {
      nextLookAt: { at: Number.NEGATIVE_INFINITY },
      retainUntil: { inMs: Number.POSITIVE_INFINITY },
    };
    const doubted: RecordWrite = { ...unknownOf(), ...times };
    const record = kept(doubted);
    expect(record).toMatchObject({ nextLookAt: 0, retainUntil: NOW + 8_640_000_000_000_000 });
    expect(kept({ ...claimOf(httpIdentity("k")), createdAt: { at: 10.2 } })).toMatchObject({ createdAt: 11 });
  });

  test.each(["a\0b", "\udfff"])("refuses to keep the key %j, which some database would alter", (key) => {
    expect(() => toRow(claimOf(httpIdentity(key)))).toThrowError(OncekeyError);
    expect(() => toRow(claimOf(httpIdentity(key)))).toThrowError(
      /The key holds NUL or half of a surrogate pair/,
    );
  });
});

describe("CL-12, SL-02: a damaged row is called damaged", () => {
  const answered = completedOf(answerOf(new TextEncoder().encode('{"paid":true}'), [["a", "b"]]));

  test.each<[string, Record<string, unknown>, RegExp]>([
    [
      "no answer",
      { answer_status: null, answer_headers: null, answer_body: null, answer_digest: null },
      /answer is missing/,
    ],
    ["a shorter body", { answer_body: new Uint8Array([123]) }, /cut or altered/],
    ["an empty body", { answer_body: new Uint8Array() }, /cut or altered/],
    ["a lost body", { answer_body: null }, /cut or altered/],
    ["another status", { answer_status: 200 }, /cut or altered/],
    ["other headers", { answer_headers: new TextEncoder().encode("[]") }, /cut or altered/],
    ["no digest", { answer_digest: null }, /answer_digest is not bytes/],
    ["an unknown state", { state: "done" }, /state is none of/],
    [
      "an answer while it runs",
      { state: "in_progress", lease_until: NOW },
      /retain_until is there|answer_status is there/,
    ],
    ["steps that are no JSON", { steps: new TextEncoder().encode('[["a"') }, /steps is not JSON/],
    ["steps that are no UTF-8", { steps: new Uint8Array([34, 255, 34]) }, /steps is not JSON/],
    ["steps of another shape", { steps: new TextEncoder().encode('{"a":1}') }, /steps is not a list/],
    [
      "a step without a generation",
      { steps: new TextEncoder().encode('[["a",{"state":"clear"}]]') },
      /generation is no integer/,
    ],
    ["a key that was changed", { key: "other" }, /id is of another key/],
    ["a principal that was changed", { principal: "Alice" }, /id is of another key/],
    ["an operation in an HTTP identity", { identity_operation: "x" }, /does not fit the kind/],
    ["a fractional attempt", { attempt: 1.5 }, /attempt is no integer/],
    ["text where bytes belong", { fingerprint_raw: "abc" }, /fingerprint_raw is not bytes/],
    ["a missing column", { retain_until: undefined }, /retain_until is no integer/],
  ])("%s", (_name, damage, reason) => {
    const read = () => fromRow({ ...answered, ...damage }, httpIdentity("k"));
    expect(read).toThrowError(RecordCorrupt);
    expect(read).toThrowError(reason);
  });

  test.each<[string, (lines: string[]) => void, RegExp]>([
    ["another id", (lines) => lines.splice(0, 1, "00".repeat(16)), /id is of another key/],
    ["no id", (lines) => lines.splice(0, 1, "zz"), /id is of another key/],
    ["an attempt that is no number", (lines) => lines.splice(1, 1, "x"), /attempt is no integer/],
    ["a time that is none", (lines) => lines.splice(3, 1, "infinity"), /updated_at is no integer/],
    ["a state that is none", (lines) => lines.splice(5, 1, "unknown"), /state is none of/],
    ["the state of another row", (lines) => lines.splice(5, 1, "unknown_hold"), /is there in state unknown/],
    ["a head that is cut", (lines) => lines.splice(7, 1, "{"), /head is not JSON/],
    ["a head that is a list", (lines) => lines.splice(7, 1, "[]"), /kind is none of/],
    ["a tail that is null", (lines) => lines.splice(8, 1, "null"), /tail is not an object/],
    ["an empty tail", (lines) => lines.splice(8, 1, "{}"), /steps is not bytes|write_id is not text/],
    ["no lines", (lines) => lines.splice(0, 9), /no integer|not JSON|state is none of/],
    ["another body", (lines) => lines.splice(9, 1, "AAAA"), /cut or altered/],
    ["no body", (lines) => lines.splice(9, 1), /cut or altered/],
  ])("packed, with %s", (_name, damage, reason) => {
    const lines = toldOf(completedWrite(answerOf(new Uint8Array([1, 2]))), { attempt: 1, revision: 2 }).split(
      "\n",
    );
    damage(lines);
    const read = () => recordIn(lines.join("\n"), httpIdentity("k"));
    expect(read).toThrowError(RecordCorrupt);
    expect(read).toThrowError(reason);
  });

  test("a lease that its own column does not have", () => {
    const told = toldOf(claimOf(httpIdentity("k")), { attempt: 1, revision: 1 });
    const lines = told.split("\n");
    lines.splice(4, 1, "");
    expect(() => recordIn(lines.join("\n"))).toThrowError(/lease_until is no integer/);
  });

  test("as is the record of another key under the id asked for", () => {
    expect(() => fromRow(answered, httpIdentity("K"))).toThrowError(/record of another key/);
  });

  test("an empty body that is gone altogether", () => {
    const emptied = { ...completedOf(answerOf(new Uint8Array())), answer_body: null };
    expect(() => fromRow(emptied)).toThrowError(/cut or altered/);
  });

  test("a body that was not kept and an empty one are told apart", () => {
    const bodies = [null, new Uint8Array()].map((body) => fromRow(completedOf(answerOf(body))));
    expect(bodies).toMatchObject([{ answer: { body: null } }, { answer: { body: new Uint8Array() } }]);
  });

  test("integers may come as bigint or as text, as drivers like it", () => {
    const wide = { attempt: 7n, created_at: String(NOW), answer_status: "201" };
    expect(fromRow({ ...answered, ...wide })).toMatchObject({
      attempt: 7,
      createdAt: NOW,
      answer: { status: 201 },
    });
  });
});

function completedOf(given: Answer) {
  return stampRow(toRow(completedWrite(given)), { attempt: 1, revision: 2, now: NOW });
}

function completedWrite(given: Answer): RecordWrite {
  const { leaseUntil: _, ...rest } = inProgress();
  return { ...rest, state: "completed", answer: given, retainUntil: { inMs: 1_000 }, tombstoneMs: null };
}

/** The lines in which PostgreSQL tells the row of a write that it kept at NOW. */
function toldOf(
  asked: RecordWrite,
  version: { readonly attempt: number; readonly revision: number },
): string {
  const { id, owner, state, due: next, head, tail, body } = packed(toRow(asked));
  const dueAt = next === null ? "" : String(instantOf(next, NOW));
  const fixed = [Buffer.from(id).toString("hex"), version.attempt, version.revision, NOW, dueAt, state];
  const kept = body === null ? [] : [Buffer.from(body).toString("base64")];
  return [...fixed, JSON.stringify(owner), head, tail, ...kept].join("\n");
}

function unknownOf() {
  const { leaseUntil: _, ...rest } = inProgress();
  const doubt = { evidence: { reason: "?", result: null }, looks: 0, disposition: "reconcile" as const };
  return { ...rest, ...doubt, state: "unknown" as const };
}

function inProgress() {
  const write = claimOf(httpIdentity("k"));
  if (write.state !== "in_progress") throw new Error("A claim is in progress.");
  return write;
}

function kept(asked: RecordWrite): KeyRecord {
  return fromRow(stampRow(toRow(asked), { attempt: 1, revision: 1, now: NOW }));
}
