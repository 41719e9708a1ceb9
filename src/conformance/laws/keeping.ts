import type { Answer, Due, StepOf } from "../../core/record.ts";
import { SEALED_MARK } from "../../core/sealed.ts";
import { completed, inProgress, randomBytes, unknown } from "../draft.ts";
import { holds, insertNew, replaceSeen, stands } from "../expectation.ts";
import { same } from "../same.ts";
import type { StoreLaw, StoreSubject } from "../subject.ts";
import { at, EVERY_BYTE, everyState, everyStep } from "../variety.ts";

/** What is kept is what was written, to the byte: the answer most of all. */
export const keepingLaws: readonly StoreLaw[] = [
  {
    id: "keeping/every-field-of-every-state",
    promise: "Every field of every state comes back as it was written, filled or empty, from every handle.",
    async check(subject) {
      const handles = [subject.store, await subject.another()];
      for (const write of everyState(subject)) {
        const record = await insertNew(subject.store, write);
        holds(record, write, `an inserted record in state ${write.state}`);
        await stands(handles, record, `a record in state ${write.state}, read back`);
      }
    },
  },
  {
    id: "keeping/versions-replace-each-other-whole",
    promise: "Any version replaces any other whole: nothing of the earlier one shines through.",
    async check(subject) {
      const { store } = subject;
      for (const before of everyState(subject)) {
        let record = await insertNew(store, before);
        for (const after of everyState(subject)) {
          const write = { ...after, identity: before.identity, attempt: record.attempt };
          record = await replaceSeen(store, record, write);
          holds(record, write, `a record in state ${write.state} that replaced another version`);
          await stands([store], record, `a record in state ${write.state}, read back`);
        }
      }
    },
  },
  {
    id: "keeping/answer-of-any-bytes",
    promise:
      "The body of an answer is bytes: every value of a byte, NUL, broken UTF-8, an emoji cut in half.",
    async check(subject) {
      for (const body of BODIES) await keepsAnswer(subject, { status: 201, headers: [], body });
    },
  },
  {
    id: "keeping/empty-is-not-absent",
    promise: "An empty body, reference, result or correlation id stays apart from one that was not kept.",
    async check(subject) {
      const { store } = subject;
      const empty = new Uint8Array();
      await keepsAnswer(subject, { status: 200, headers: [], body: empty });
      await keepsAnswer(subject, { status: 200, headers: [], body: null });
      const nothing = { reference: empty, correlationId: "", evidence: { reason: "", result: empty } };
      const record = await insertNew(store, unknown(subject, nothing));
      const { reference, correlationId, evidence } = record;
      same({ reference, correlationId, evidence }, nothing, "fields that are empty and not absent");
      await stands([store], record, "a record with empty fields");
    },
  },
  {
    id: "keeping/sealed-stays-sealed",
    promise: "An answer that came sealed is handed back sealed, and never as a body.",
    async check(subject) {
      const sealed = Uint8Array.from([...SEALED_BY_NOBODY, ...randomBytes(subject, 256)]);
      await keepsAnswer(subject, { status: 201, headers: HEADERS, body: null, sealed });
    },
  },
  {
    id: "keeping/large-answer",
    promise: "A body of one mebibyte is kept whole, and so are those around the limits of common columns.",
    async check(subject) {
      const room = subject.store.capabilities.maxRecordBytes - ROOM_FOR_THE_REST;
      for (const size of [65_535, 65_536, 70_000, 1_048_575, 1_048_576]) {
        const body = randomBytes(subject, Math.min(size, room));
        await keepsAnswer(subject, { status: 200, headers: [], body });
      }
    },
  },
  {
    id: "keeping/headers-as-sent",
    promise: "Headers keep their order, their spelling, their repeats and every byte of their values.",
    async check(subject) {
      await keepsAnswer(subject, { status: 200, headers: HEADERS, body: EVERY_BYTE });
      await keepsAnswer(subject, { status: 200, headers: HEADERS.toReversed(), body: EVERY_BYTE });
    },
  },
  {
    id: "keeping/reasons-of-any-text",
    promise:
      "The reason of a doubt may be any text that an error can say: NUL, lone surrogates and emoji too.",
    async check(subject) {
      for (const reason of REASONS) {
        const record = await insertNew(
          subject.store,
          unknown(subject, { evidence: { reason, result: null } }),
        );
        same(record.evidence.reason, reason, "the reason of a doubt");
        await stands([subject.store], record, "a record whose reason is unusual text");
      }
    },
  },
  {
    id: "keeping/steps-of-any-name",
    promise: "Steps are kept under any name, in any number, and each with all it holds.",
    async check(subject) {
      const many = Array.from(
        { length: 200 },
        (_, n) => [`step-${n}`, finished(randomBytes(subject, 100))] as const,
      );
      for (const steps of [everyStep(), new Map(many), new Map([["__proto__", CLEAR]])]) {
        const write = inProgress(subject, { steps, ...TIMES });
        const record = holds(await insertNew(subject.store, write), write, "a record with many steps");
        await stands([subject.store], record, "a record with many steps, read back");
      }
    },
  },
  {
    id: "keeping/steps-move-on",
    promise: "A write may change, add and drop steps; what it does not name is gone, and nothing else moves.",
    async check(subject) {
      const { store } = subject;
      const first = inProgress(subject, { steps: everyStep(), ...TIMES });
      let record = await insertNew(store, first);
      const one = new Map([["b", CLEAR]]);
      for (const steps of [new Map(one).set("a", CLEAR), one, new Map(), everyStep()]) {
        const write = { ...first, steps, attempt: record.attempt, writeId: `${record.writeId}+` };
        record = await replaceSeen(store, record, write);
        holds(record, write, "a record whose steps were changed");
      }
    },
  },
  {
    id: "keeping/numbers-of-any-size",
    promise: "Large numbers and far instants are kept exactly.",
    async check(subject) {
      const far = { at: 8_000_000_000_001 };
      const early = { createdAt: { at: 1 }, claimedAt: { at: 1_234_567_890_123 } };
      const mark = { ...finished(EVERY_BYTE), generation: LARGEST, keyTtlMs: TEN_YEARS_MS, validUntil: far };
      const steps = new Map([["a", mark]]);
      const write = unknown(subject, { ...early, nextLookAt: far, steps, looks: LARGEST });
      const record = holds(await insertNew(subject.store, write), write, "a record with large numbers");
      await stands([subject.store], record, "a record with large numbers, read back");
    },
  },
  {
    id: "keeping/is-a-copy",
    promise:
      "What a store holds is its own: bytes that the caller changes afterwards, before or after a read, change nothing.",
    async check(subject) {
      const { store } = subject;
      const body = randomBytes(subject, 64);
      const reference = randomBytes(subject, 64);
      const kept = { body: body.slice(), reference: reference.slice() };
      const write = completed(subject, { reference, answer: { status: 200, headers: [], body } });
      const { identity } = await insertNew(store, write);
      body.fill(0);
      reference.fill(0);
      for (let looks = 0; looks < 2; looks++) {
        const { record } = await store.read(identity);
        if (record?.state !== "completed") throw new Error("The record is gone.");
        same(
          { body: record.answer.body, reference: record.reference },
          kept,
          "bytes that the caller changed",
        );
        record.answer.body?.fill(0);
        record.reference?.fill(0);
      }
    },
  },
];

const utf8 = (text: string) => new TextEncoder().encode(text);

const BODIES: readonly Uint8Array[] = [
  EVERY_BYTE,
  Uint8Array.of(0),
  Uint8Array.of(0xff, 0xfe, 0x00, 0xc3),
  utf8("🧾").subarray(0, 3),
  utf8('{"text":"\\u0000 \\ud800"}'),
  utf8("a\u0000b"),
  utf8(' { "b" : 1.0, "a" : [ ] } \r\n'),
  utf8("👩‍👩‍👧 é"),
];

const HEADERS: Answer["headers"] = [
  ["X-Note", "caf\u00e9"],
  ["link", "<a>; rel=next"],
  ["Link", "<b>; rel=prev"],
  ["link", "<a>; rel=next"],
  ["x-empty", ""],
  ["x-blank", " two  blanks "],
  ["__proto__", "1"],
  ["x-quote", '"\\'],
];

const REASONS: readonly string[] = [
  "a\u0000b",
  "\ud800",
  "x\udc00y",
  "🧾",
  "\u2028 \u202e \ufeff",
  '"\\\n\t',
];

/** The version, and an id of no key. */
const SEALED_BY_NOBODY = [...SEALED_MARK, 1, 6, ...utf8("nobody")];

/** What a record holds besides its body, generously. */
const ROOM_FOR_THE_REST = 65_536;

/** The largest number that every database's plain integer holds. */
const LARGEST = 2_147_483_647;

/** The longest duration that a setting may have. */
const TEN_YEARS_MS = 3_650 * 86_400_000;

const CLEAR: StepOf<Due> = { state: "clear", generation: 1 };
const TIMES = { createdAt: at(1), claimedAt: at(2), leaseUntil: at(3) };

function finished(result: Uint8Array) {
  const mark = { state: "finished", provider: "keyed", generation: 0, openedAt: at(0) } as const;
  return { ...mark, keyTtlMs: null, validUntil: null, result };
}

async function keepsAnswer(subject: StoreSubject, answer: Answer): Promise<void> {
  const { store } = subject;
  const write = completed(subject, { answer, createdAt: at(1), claimedAt: at(2), retainUntil: at(3) });
  const record = await insertNew(store, write);
  const repeated = (await store.insert(write)).record;
  for (const found of [record, repeated]) holds(found, write, "a record with an unusual answer");
  await stands([await subject.another()], record, "a record with an unusual answer, read back");
}
