import { ok } from "node:assert/strict";
import type { Due, Identity, KeyRecord, RecordWrite } from "../../core/record.ts";
import type { Store } from "../../stores/store.ts";
import { completed, failedPermanent, freshIdentity, freshWord, inProgress } from "../draft.ts";
import { insertNew, replaceSeen, stands } from "../expectation.ts";
import { same } from "../same.ts";
import type { StoreLaw, StoreSubject } from "../subject.ts";
import { EVERY_BYTE, everyStep } from "../variety.ts";

/** What is left of a finished record that is to be remembered for longer than its answer is kept. */
export const tombstoneLaws: readonly StoreLaw[] = [
  {
    id: "tombstone/keeps-the-key-alone",
    promise:
      "Once its retention is over, a purge leaves of a finished record with a `tombstoneMs` whose key it was, when and how it ended; answer, steps, reference and the hashes of its request are gone.",
    needs: "purge",
    async check(subject) {
      const { store } = subject;
      for (const write of remembered(subject, PAST)) {
        const record = await insertNew(store, write);
        same((await purgeAll(store)) >= 1, true, "that a record which leaves its tombstone counts as gone");
        await stands([store, await subject.another()], remainsOf(record), `the tombstone (${write.state})`);
      }
    },
  },
  {
    id: "tombstone/not-before-the-retention-ends",
    promise: "A record that is to leave a tombstone is kept as it is until its retention is over.",
    async check(subject) {
      const { store } = subject;
      for (const write of remembered(subject, { inMs: 600_000 })) {
        const record = await insertNew(store, write);
        await purgeAll(store);
        await stands([store], record, `a record (${write.state}) that is still retained`);
      }
    },
  },
  {
    id: "tombstone/stays-and-goes",
    promise:
      "A tombstone stays through every purge until its time is over, by the store's clock, and then goes.",
    needs: "purge",
    async check(subject) {
      const { store } = subject;
      const write = completed(subject, { retainUntil: { inMs: 1 }, tombstoneMs: 700 });
      const { identity, retainUntil } = await insertNew(store, write);
      let buried = false;
      for (let looks = 0; looks < 400; looks++) {
        await purgeAll(store);
        const { record, now } = await store.read(identity);
        if (record === null) {
          ok(now >= retainUntil + 700, `it went at ${now}, before its time ${retainUntil + 700}`);
          return ok(buried, "it went without leaving a tombstone");
        }
        buried ||= hasNoAnswer(record);
        await subject.pause(25);
      }
      throw new Error("A tombstone whose time was over never went.");
    },
  },
  {
    id: "tombstone/none-that-is-over",
    promise: "A purge that comes after a tombstone's own time removes the record at once.",
    needs: "purge",
    async check(subject) {
      const { store } = subject;
      const { identity } = await insertNew(store, completed(subject, { retainUntil: PAST, tombstoneMs: 1 }));
      same(await store.purge(1), 1, "how many went");
      same((await store.read(identity)).record, null, "a record whose tombstone would be over");
    },
  },
  {
    id: "tombstone/counts-as-gone",
    promise: "Those that leave a tombstone count towards what a purge was asked for, each of them once.",
    needs: "purge",
    async check(subject) {
      const { store } = subject;
      await purgeAll(store);
      const writes = [1, 2, 3, 4, 5].map((n) =>
        completed(subject, { retainUntil: PAST, tombstoneMs: n % 2 === 0 ? null : LONG_MS }),
      );
      for (const write of writes) await insertNew(store, write);
      for (const [limit, went] of [
        [2, 2],
        [100, 3],
        [100, 0],
      ] as const) {
        same(await store.purge(limit), went, `how many went when at most ${limit} were to go`);
      }
    },
  },
  {
    id: "tombstone/is-listed-and-counted",
    promise:
      "A tombstone is found by whose key it was, in its state, and counts among its state and the tombstones.",
    needs: "purge",
    async check(subject) {
      const { store } = subject;
      await purgeAll(store);
      const before = await store.count();
      const identity: Identity = { kind: "http", principal: freshWord(subject), key: freshWord(subject) };
      const correlationId = freshWord(subject);
      const write = { identity, correlationId, retainUntil: PAST, tombstoneMs: LONG_MS };
      const record = await insertNew(store, completed(subject, write));
      await insertNew(store, completed(subject, { tombstoneMs: LONG_MS }));
      await insertNew(store, completed(subject, { answer: { status: 204, headers: [], body: null } }));
      const waiting = await store.count();
      same(waiting.endedNotPurged - before.endedNotPurged, 1, "how many more wait for the purge");
      same(waiting.tombstones - before.tombstones, 0, "how many more tombstones there are before the purge");
      await purgeAll(store);
      const after = await store.count();
      same(after.tombstones - before.tombstones, 1, "how many more tombstones there are");
      same(after.byState.completed - before.byState.completed, 3, "how many more completed ones there are");
      same(after.endedNotPurged, before.endedNotPurged, "how many wait for the purge");
      for (const asked of [{ principal: identity.principal }, { key: identity.key }, { correlationId }]) {
        const { records } = await store.list({ limit: 2, state: "completed", ...asked });
        same(records, [remainsOf(record)], `a list by ${Object.keys(asked).join()}`);
      }
    },
  },
  {
    id: "tombstone/is-another-version",
    promise:
      "Whoever saw the record before its answer went replaces it no more; its tombstone can be replaced.",
    needs: "purge",
    async check(subject) {
      const { store } = subject;
      const identity = freshIdentity(subject);
      const write = completed(subject, { identity, retainUntil: PAST, tombstoneMs: LONG_MS });
      const record = await insertNew(store, write);
      await purgeAll(store);
      const anew = inProgress(subject, { identity });
      const stale = await store.replace(record, anew, "wait");
      same(stale.kind, "stale", "a replacement of the version with the answer");
      const claimed = await replaceSeen(store, remainsOf(record), anew);
      await stands([store, await subject.another()], claimed, "a new claim in the place of a tombstone");
      const again = completed(subject, { identity });
      const finished = await replaceSeen(store, claimed, again);
      await stands(
        [store, await subject.another()],
        finished,
        "a record that leaves no tombstone, after one",
      );
    },
  },
];

const PAST = { at: 1_000_000_000_000 };

/** From the past to the far future. */
const LONG_MS = 3_000_000_000_000;

/** One of each that may leave a tombstone, with all that must not be in it. */
function remembered(subject: StoreSubject, retainUntil: Due): readonly RecordWrite[] {
  const keep = { retainUntil, tombstoneMs: LONG_MS };
  const times = { createdAt: { inMs: 0 }, claimedAt: PAST };
  const full = { ...keep, ...times, steps: everyStep(), reference: EVERY_BYTE, correlationId: '"a", \\ é' };
  const headers = [
    ["retain_until", '"retain_until":{"at":1}'],
    ["x", '","tombstone_ms":1,"steps":[]}'],
  ] as const;
  const answer = { status: 599, headers, body: EVERY_BYTE };
  return [
    completed(subject, { ...full, answer, writeId: '"retain_until":{"at":1},"tombstone_ms":1' }),
    failedPermanent(subject, { ...full, answer }),
    completed(subject, { ...keep, answer: { status: 204, headers: [], body: null } }),
  ];
}

function remainsOf(record: KeyRecord): KeyRecord {
  if (!("answer" in record)) throw new Error(`A record that is ${record.state} leaves no tombstone.`);
  const nothing = new Uint8Array(0);
  return {
    ...record,
    revision: record.revision + 1,
    fingerprint: { version: record.fingerprint.version, salt: nothing, raw: nothing, canonical: nothing },
    answer: { status: record.answer.status, headers: [], body: null },
    steps: new Map(),
    reference: null,
  };
}

function hasNoAnswer(record: KeyRecord): boolean {
  return "answer" in record && record.answer.body === null;
}

/** How many went in all; a store that never says that it is done is broken. */
async function purgeAll(store: Store): Promise<number> {
  let gone = 0;
  for (let batches = 0; batches < 1_000; batches++) {
    const went = await store.purge(1_000);
    if (went === 0) return gone;
    gone += went;
  }
  throw new Error("A thousand purges, and still something went in each.");
}
