import { describe, expect, onTestFinished, test } from "vitest";
import { completed, inProgress, randomBytes, unknown } from "../../src/conformance/draft.ts";
import { standingSteps } from "../../src/core/kept.ts";
import type { Answer, Identity, KeyRecord } from "../../src/core/record.ts";
import { isSealed, keyIdOf } from "../../src/core/sealed.ts";
import { ConfigurationError, RecordCorrupt } from "../../src/errors.ts";
import { recordId } from "../../src/stores/codec.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { type SealingKey, sealedStore } from "../../src/stores/sealed/index.ts";
import { migrate, sqliteStore } from "../../src/stores/sqlite/index.ts";
import type { Store } from "../../src/stores/store.ts";
import { untyped } from "../engine/untyped.ts";
import { freshSqliteFile, sqliteDriver } from "../support/databases.ts";
import { seededRandom } from "../support/seed.ts";

const subject = { random: seededRandom().fraction };

const key = (id: string): SealingKey => ({ id, secret: `${id} is a secret that has more than 32 bytes` });
const [OLD, NEW] = [key("old"), key("new")];

const bytes = (text: string) => new TextEncoder().encode(text);
const SECRET = bytes("sk_live_123");
const ANSWER: Answer = { status: 201, headers: [["location", "/charges/1"]], body: SECRET };

const mark = {
  provider: "keyed",
  generation: 0,
  openedAt: { at: 5 },
  keyTtlMs: null,
  validUntil: null,
} as const;
const STEPS = new Map([
  ["charge", { ...mark, state: "finished", result: SECRET }],
  ["mail", { ...mark, state: "refused", result: SECRET }],
  ["next", { ...mark, state: "open" }],
] as const);

/** A record of each state that holds something, with a secret in every place that may hold one. */
const drafts = () => [
  inProgress(subject, { reference: SECRET, steps: STEPS }),
  unknown(subject, { reference: SECRET, steps: STEPS, evidence: { reason: "why", result: SECRET } }),
  completed(subject, { reference: SECRET, steps: STEPS, answer: ANSWER }),
];

/** Everything in a record that may be sealed. */
function valuesOf(record: KeyRecord | null): readonly (Uint8Array | null | undefined)[] {
  if (record === null) throw new Error("There is no record.");
  const results = [...record.steps.values()].flatMap((step) => ("result" in step ? [step.result] : []));
  const values = [record.reference, ...results];
  if (record.state === "unknown") values.push(record.evidence.result);
  return record.state === "completed" ? [...values, record.answer.body] : values;
}

describe("what a sealed store keeps", () => {
  const draft = completed(subject, { answer: ANSWER });

  test("can be read with the key alone: the store itself holds none of it", async () => {
    const store = memoryStore();
    const sealed = sealedStore(store, { keys: [OLD] });
    for (const draft of drafts()) {
      const written = (await sealed.insert(draft)).record;
      const opened = (await sealed.read(draft.identity)).record;
      for (const record of [written, opened])
        expect(valuesOf(record).every((value) => value && Buffer.compare(value, SECRET) === 0)).toBe(true);
      const raw = (await store.read(draft.identity)).record;
      expect(Buffer.from(JSON.stringify(raw, inHex)).includes(Buffer.from(SECRET).toString("hex"))).toBe(
        false,
      );
      if (raw?.state === "completed")
        expect(raw.answer).toMatchObject({ status: 201, headers: ANSWER.headers, body: null });
    }
  });

  test.each([
    ["in one record", () => draft],
    ["in another", () => completed(subject, { answer: ANSWER })],
  ])("looks another way each time that it is sealed, %s", async (_where, next) => {
    const seals = new Set<string>();
    for (let n = 0; n < 100; n++) {
      const store = memoryStore();
      const { identity } = (await sealedStore(store, { keys: [OLD] }).insert(next())).record;
      seals.add(Buffer.from((await sealedAnswer(store, identity)) ?? none()).toString("hex"));
    }
    expect(seals.size).toBe(100);
  });

  test("was written by the first key of the ring, and says which it was", async () => {
    const store = memoryStore();
    const { identity } = (await sealedStore(store, { keys: [NEW, OLD] }).insert(drafts()[2] ?? none()))
      .record;
    expect(keyIdOf((await sealedAnswer(store, identity)) ?? none())).toBe("new");
  });

  test("of a claim is nothing: it is handed on as it came", async () => {
    const store = memoryStore();
    let handed: unknown;
    const insert: Store["insert"] = (write) => {
      handed = write;
      return store.insert(write);
    };
    const draft = inProgress(subject);
    await sealedStore({ ...store, insert }, { keys: [OLD] }).insert(draft);
    expect(handed).toBe(draft);
  });
});

describe("a ring", () => {
  test("opens what any of its keys has sealed, so that a new one may come in front", async () => {
    const store = memoryStore();
    for (const draft of drafts()) {
      await sealedStore(store, { keys: [OLD] }).insert(draft);
      const { record } = await sealedStore(store, { keys: [NEW, OLD] }).read(draft.identity);
      expect(valuesOf(record).every((value) => value && Buffer.compare(value, SECRET) === 0)).toBe(true);
    }
  });

  test("without the key gives the answer without its body, and the rest sealed, as a plain store does", async () => {
    const store = memoryStore();
    for (const draft of drafts()) {
      await sealedStore(store, { keys: [OLD] }).insert(draft);
      for (const blind of [sealedStore(store, { keys: [NEW] }), store]) {
        const { record } = await blind.read(draft.identity);
        if (record?.state === "completed") {
          expect(record.answer).toMatchObject({ status: 201, headers: ANSWER.headers, body: null });
          expect(record.answer.sealed).toBeInstanceOf(Uint8Array);
        }
        const values = valuesOf(record).filter((value) => value !== null && value !== undefined);
        expect(values.length).toBeGreaterThan(0);
        expect(values.every(isSealed)).toBe(true);
      }
    }
  });

  test("without the key writes on what it cannot read, and the key opens it later", async () => {
    const store = memoryStore();
    const draft = inProgress(subject, { reference: SECRET, steps: STEPS });
    await sealedStore(store, { keys: [OLD] }).insert(draft);
    const blind = sealedStore(store, { keys: [NEW] });
    const { record } = await blind.read(draft.identity);
    if (record === null) throw new Error("There is no record.");
    const { owner, revision, attempt, reference } = record;
    const steps = standingSteps(record);
    const next = unknown(subject, { identity: draft.identity, attempt, reference, steps });
    await blind.replace({ identity: draft.identity, owner, revision }, next, "wait");
    const opened = (await sealedStore(store, { keys: [NEW, OLD] }).read(draft.identity)).record;
    expect(opened?.reference).toEqual(SECRET);
    expect(opened?.steps.get("charge")).toMatchObject({ state: "finished", result: SECRET });
    expect(opened?.steps.get("mail")).toMatchObject({ state: "refused", result: SECRET });
  });

  test("reads what was kept before it was switched on, whatever its bytes are", async () => {
    const store = memoryStore();
    const looksSealed = Uint8Array.of(
      0xff,
      0x6f,
      0x6b,
      0x73,
      1,
      3,
      ...bytes("old"),
      ...randomBytes(subject, 99),
    );
    for (const body of [SECRET, looksSealed, new Uint8Array()]) {
      const draft = completed(subject, { reference: SECRET, answer: { ...ANSWER, body } });
      const plain = (await store.insert(draft)).record;
      expect((await sealedStore(store, { keys: [OLD] }).read(draft.identity)).record).toEqual(plain);
    }
  });

  test.each([
    ["keys", undefined],
    ["keys", []],
    ["keys[0].id", [{ id: "", secret: OLD.secret }]],
    ["keys[0].id", [{ id: "with blank", secret: OLD.secret }]],
    ["keys[0].id", [{ id: "x".repeat(65), secret: OLD.secret }]],
    ["keys[0].secret", [{ id: "short", secret: "x".repeat(31) }]],
    ["keys[0].secret", [{ id: "none" }]],
    ["keys[1].id", [OLD, OLD]],
    ["keys[1].secret", [OLD, { id: "short", secret: new Uint8Array(31) }]],
  ] as const)("%s that cannot be used is refused when the store is made: %o", (field, keys) => {
    const made = () => sealedStore(memoryStore(), untyped({ keys }));
    expect(made).toThrow(ConfigurationError);
    expect(made).toThrow(expect.objectContaining({ field }));
  });
});

describe("what was tampered with", () => {
  const where = ["steps", "reference", "evidence", "answer_body"] as const;

  test.each(["answer", "reference", "step", "evidence"])("%s of another record is damage", async (place) => {
    const { sealed, swap } = await opened();
    const [one, other] = [draftOf(place, "alice"), draftOf(place, "bob")];
    for (const draft of [one, other]) await sealed.insert(draft);
    swap(one.identity, other.identity);
    for (const { identity } of [one, other])
      await expect(sealed.read(identity)).rejects.toThrow(/was altered or sealed for another record/);
  });

  const forgeries: readonly (readonly [what: string, forge: (sealed: Uint8Array) => Answer])[] = [
    ["its nonce", (sealed) => ({ ...ANSWER, sealed: flipped(sealed, 10) })],
    ["a bit of it", (sealed) => ({ ...ANSWER, sealed: flipped(sealed, 25) })],
    ["its tag", (sealed) => ({ ...ANSWER, sealed: flipped(sealed, sealed.length - 1) })],
    ["its last byte", (sealed) => ({ ...ANSWER, sealed: sealed.subarray(0, -1) })],
    ["all but its head", (sealed) => ({ ...ANSWER, sealed: sealed.subarray(0, 20) })],
    ["its status", (sealed) => ({ ...ANSWER, sealed, status: 200 })],
    ["a header", (sealed) => ({ ...ANSWER, sealed, headers: [["location", "/charges/2"]] })],
  ];
  test.each(forgeries)("an answer is damage where somebody has changed %s", async (_what, forge) => {
    const { sealed, identity } = await forged(forge);
    await expect(sealed.read(identity)).rejects.toBeInstanceOf(RecordCorrupt);
  });

  test.each([
    ["of another key", 6],
    ["of a later release", 4],
  ])("an answer that says it is %s was not kept, as far as can be told", async (_what, at) => {
    const { sealed, identity } = await forged((value) => ({ ...ANSWER, sealed: flipped(value, at) }));
    expect((await sealed.read(identity)).record).toMatchObject({ answer: { status: 201, body: null } });
  });

  async function forged(forge: (sealed: Uint8Array) => Answer) {
    const store = memoryStore();
    const sealed = sealedStore(store, { keys: [OLD] });
    const { identity, owner, revision } = (await sealed.insert(completed(subject, { answer: ANSWER })))
      .record;
    const answer = { ...forge((await sealedAnswer(store, identity)) ?? none()), body: null };
    await store.replace({ identity, owner, revision }, completed(subject, { identity, answer }), "wait");
    return { sealed, identity };
  }

  test("hides nothing else from a list, and takes nobody's place in it", async () => {
    const store = memoryStore();
    const sealed = sealedStore(store, { keys: [OLD] });
    const identities: Identity[] = [];
    for (let n = 0; n < 9; n++)
      identities.push(
        (await sealed.insert(inProgress(subject, { reference: SECRET, leaseUntil: { at: 1_000_000 - n } })))
          .record.identity,
      );
    for (const at of [0, 1, 4, 8]) await damage(store, identities[at] ?? none());
    const expected = [7, 6, 5, 3, 2].map((at) => recordId(identities[at] ?? none()));
    const due = await sealed.due({ kind: "stale", graceMs: 0, limit: 5 });
    expect(due.records.map(({ identity }) => recordId(identity))).toEqual(expected);
    expect(due.damaged).toBe(2);
    const all = await sealed.due({ kind: "stale", graceMs: 0, limit: 50 });
    expect([all.records.length, all.damaged]).toEqual([5, 4]);
    const list = await sealed.list({ limit: 50 });
    expect([list.records.length, list.damaged]).toEqual([5, 4]);
    const [first] = (await sealed.list({ limit: 1 })).records;
    expect(first).toBeDefined();
  });

  async function opened() {
    const { path, remove } = freshSqliteFile();
    const connect = () => new (sqliteDriver())(path);
    const file = connect();
    await migrate(file);
    const store = sqliteStore({ connect });
    onTestFinished(async () => {
      await store.close();
      file.close();
      remove();
    });
    const columns = [...where, "answer_digest"];
    const swap = (one: Identity, other: Identity) => {
      const from = (whose: string) =>
        columns.map((name) => `${name} = (SELECT ${name} FROM taken WHERE id = ${whose})`).join(", ");
      file.exec("CREATE TEMP TABLE taken AS SELECT * FROM oncekey_records");
      for (const [mine, theirs] of [
        [one, other],
        [other, one],
      ] as const)
        file
          .prepare(`UPDATE oncekey_records SET ${from("?1")} WHERE id = ?2`)
          .run(recordId(theirs), recordId(mine));
    };
    return { sealed: sealedStore(store, { keys: [OLD] }), swap };
  }

  function draftOf(place: string, principal: string) {
    const identity = { kind: "http", principal, key: "k" } as const;
    if (place === "answer") return completed(subject, { identity, answer: ANSWER });
    if (place === "reference") return inProgress(subject, { identity, reference: SECRET });
    if (place === "step") return inProgress(subject, { identity, steps: STEPS });
    return unknown(subject, { identity, evidence: { reason: "why", result: SECRET } });
  }
});

async function sealedAnswer(store: Store, identity: Identity): Promise<Uint8Array | undefined> {
  const { record } = await store.read(identity);
  return record?.state === "completed" ? record.answer.sealed : undefined;
}

/** Puts the sealed reference of another record in the place of its own. */
async function damage(store: Store, identity: Identity): Promise<void> {
  const { record } = await store.read(identity);
  if (record?.state !== "in_progress" || record.reference === null) throw new Error("It is not running.");
  const { owner, revision, attempt, leaseUntil } = record;
  const reference = flipped(record.reference, record.reference.length - 1);
  const write = inProgress(subject, { identity, owner, attempt, reference, leaseUntil: { at: leaseUntil } });
  await store.replace({ identity, owner, revision }, write, "wait");
}

function flipped(value: Uint8Array, at: number): Uint8Array {
  return value.map((byte, index) => (index === at ? byte ^ 1 : byte));
}

const inHex = (_: string, value: unknown) =>
  value instanceof Uint8Array
    ? Buffer.from(value).toString("hex")
    : value instanceof Map
      ? [...value]
      : value;

function none(): never {
  throw new Error("There is none.");
}
