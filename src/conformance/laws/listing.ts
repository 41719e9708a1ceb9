import { ok } from "node:assert/strict";
import type { Identity, KeyRecord, RecordWrite } from "../../core/record.ts";
import type { ListQuery, Store } from "../../stores/store.ts";
import { completed, failedPermanent, freshWord, inProgress, released, renewal, unknown } from "../draft.ts";
import { insertNew, replaceSeen } from "../expectation.ts";
import { same } from "../same.ts";
import type { StoreLaw, StoreSubject } from "../subject.ts";

/** What people see: lists that are found and paged exactly, and counts that add up. */
export const listingLaws: readonly StoreLaw[] = [
  {
    id: "list/by-each-filter",
    promise: "A list holds just what its filter names, letter by letter, and filters add up.",
    async check(subject) {
      const { store } = subject;
      const word = freshWord(subject);
      const at = (principal: string, key: string): Identity => ({ kind: "http", principal, key });
      const correlationId = `trace-${word}`;
      const [one, upper] = [at(word, `${word}1`), at(word.toUpperCase(), `${word}1`)];
      const operation = `charge-${word}`;
      const a = await insertNew(store, inProgress(subject, { identity: one, operation, correlationId }));
      const b = await insertNew(store, completed(subject, { identity: at(word, `${word}2`), operation }));
      const c = await insertNew(store, unknown(subject, { identity: at(word, `${word}3`), correlationId }));
      const d = await insertNew(
        store,
        inProgress(subject, { identity: upper, operation: operation.toUpperCase() }),
      );
      const run: Identity = { kind: "run", principal: word, operation: "job", key: `${word}1` };
      const e = await insertNew(store, released(subject, { identity: run, operation: "job" }));
      await lists(store, { principal: word }, [e, c, b, a]);
      await lists(store, { principal: word.toUpperCase() }, [d]);
      await lists(store, { key: `${word}1` }, [e, d, a]);
      await lists(store, { operation }, [b, a]);
      await lists(store, { correlationId }, [c, a]);
      await lists(store, { principal: word, state: "completed" }, [b]);
      await lists(store, { principal: word, state: "unknown", disposition: "reconcile" }, [c]);
      await lists(store, { principal: word, disposition: "review" }, []);
      await lists(store, { principal: word, key: `${word}1`, operation: "job" }, [e]);
      await lists(store, { principal: `${word}%` }, []);
    },
  },
  {
    id: "list/by-state-and-disposition",
    promise: "Records of one state, or doubts of one disposition, are listed without any other.",
    async check(subject) {
      const { store } = subject;
      for (const write of oneOfEach(subject)) {
        await tick(subject);
        const record = await insertNew(store, write);
        const { records } = await store.list({ limit: 1, state: write.state });
        same(records, [record], `the newest record in state ${write.state}`);
        if (write.state !== "unknown") continue;
        const doubts = await store.list({ limit: 1, disposition: write.disposition });
        same(doubts.records, [record], `the newest doubt (${write.disposition})`);
        const all = await store.list({ limit: ALL, disposition: write.disposition });
        ok(
          all.records.every(({ state }) => state === "unknown"),
          "a record without a doubt has no disposition",
        );
      }
    },
  },
  {
    id: "list/newest-change-first",
    promise: "The record that was changed last comes first, however old it is.",
    async check(subject) {
      const { store } = subject;
      const principal = freshWord(subject);
      const insertNext = async (key: string) => {
        await tick(subject);
        return insertNew(store, inProgress(subject, { identity: { kind: "http", principal, key } }));
      };
      const [a, b, c] = [await insertNext("a"), await insertNext("b"), await insertNext("c")];
      await tick(subject);
      const renewed = await replaceSeen(store, a, renewal(subject, a));
      const { records } = await store.list({ limit: ALL, principal });
      same(records, [renewed, c, b], "a list after its oldest record was changed");
    },
  },
  {
    id: "list/pages-meet",
    promise: "Page by page everything is shown once, also where many were changed in one instant.",
    async check(subject) {
      const { store } = subject;
      const principal = freshWord(subject);
      const writes = Array.from({ length: 23 }, (_, n) =>
        inProgress(subject, { identity: { kind: "http", principal, key: `key-${n}` } }),
      );
      const handles = [store, await subject.another()];
      await Promise.all(writes.map((write, n) => handles[n % handles.length]?.insert(write)));
      const whole = (await store.list({ limit: ALL, principal })).records;
      same(whole.length, writes.length, "how many records a list holds");
      for (const limit of [1, 5, 23]) {
        const paged: KeyRecord[] = [];
        for (let pages = 0; pages <= writes.length; pages++) {
          const last = paged.at(-1);
          const from = last && { before: { updatedAt: last.updatedAt, identity: last.identity } };
          const { records } = await store.list({ limit, principal, ...from });
          ok(
            records.length <= limit,
            `a page of ${records.length} records, where at most ${limit} were asked for`,
          );
          if (records.length === 0) break;
          paged.push(...records);
        }
        same(paged, whole, `all pages of ${limit}, one after the other`);
      }
    },
  },
  {
    id: "count/adds-up",
    promise:
      "Counts say how many there are of each state and each disposition, and how many wait for the purge.",
    needs: "purge",
    async check(subject) {
      const { store } = subject;
      const before = await store.count();
      for (const write of oneOfEach(subject)) await insertNew(store, write);
      const past = { retainUntil: { at: 1_000_000_000_000 } };
      await insertNew(store, completed(subject, past));
      await insertNew(store, unknown(subject, { ...past, disposition: "hold", nextLookAt: null }));
      const after = await store.count();
      const states = { in_progress: 1, released: 1, unknown: 4, completed: 2, failed_permanent: 1 };
      same(grown(before.byState, after.byState), states, "how many there are more of each state");
      const dispositions = { reconcile: 1, review: 1, hold: 2 };
      same(
        grown(before.byDisposition, after.byDisposition),
        dispositions,
        "how many doubts more of each disposition",
      );
      same(after.endedNotPurged - before.endedNotPurged, 2, "how many more wait for the purge");
    },
  },
  {
    id: "count/longest-overdue",
    promise: "What waits for the purge is as old as the first end of a retention among it.",
    needs: "purge",
    async check(subject) {
      const { store } = subject;
      const before = await store.count();
      const now = (await store.list({ limit: 1 })).now;
      const overdueMs = (before.oldestEndedMs ?? 0) + 3_600_000;
      for (const ms of [overdueMs, overdueMs / 2])
        await insertNew(store, completed(subject, { retainUntil: { at: now - ms } }));
      await insertNew(store, completed(subject, { retainUntil: { inMs: 600_000 } }));
      await insertNew(store, inProgress(subject, { leaseUntil: { at: now - 2 * overdueMs } }));
      isAge((await store.count()).oldestEndedMs, overdueMs, "the longest overdue one");
    },
  },
  {
    id: "count/oldest-unfinished",
    promise: "The age of the oldest running one and of the oldest doubt is counted from its claim.",
    async check(subject) {
      const { store } = subject;
      const now = (await store.list({ limit: 1 })).now;
      const { oldestInProgressMs, oldestUnknownMs } = await store.count();
      const older = (ageMs: number | null) => (ageMs ?? 0) + 3_600_000;
      const [running, doubted] = [older(oldestInProgressMs), older(oldestUnknownMs)];
      const claimed = (ageMs: number) => ({ createdAt: { at: now - ageMs }, claimedAt: { at: now - ageMs } });
      await insertNew(store, inProgress(subject, claimed(running)));
      await insertNew(store, unknown(subject, claimed(doubted)));
      await insertNew(store, completed(subject, claimed(2 * (running + doubted))));
      const after = await store.count();
      isAge(after.oldestInProgressMs, running, "the oldest running one");
      isAge(after.oldestUnknownMs, doubted, "the oldest doubt");
    },
  },
];

function isAge(ageMs: number | null, expected: number, what: string): void {
  const right = ageMs !== null && ageMs >= expected && ageMs < expected + 600_000;
  ok(right, `${what} is said to be ${ageMs} ms old, and not ${expected}`);
}

/** More than any subject holds. */
const ALL = 100_000;

/** In whatever order, for many may have been changed in one instant. */
async function lists(
  store: Store,
  query: Omit<ListQuery, "limit">,
  expected: readonly KeyRecord[],
): Promise<void> {
  const { records, damaged } = await store.list({ ...query, limit: ALL });
  const byKey = (all: readonly KeyRecord[]) => new Map(all.map((record) => [record.owner, record] as const));
  same(byKey(records), byKey(expected), `the list of ${JSON.stringify(query)}`);
  same(damaged, 0, `the damaged ones among ${JSON.stringify(query)}`);
}

function oneOfEach(subject: StoreSubject): readonly RecordWrite[] {
  return [
    inProgress(subject),
    released(subject),
    unknown(subject),
    unknown(subject, { disposition: "review", nextLookAt: null }),
    unknown(subject, { disposition: "hold", nextLookAt: null, retainUntil: { inMs: 86_400_000 } }),
    completed(subject),
    failedPermanent(subject),
  ];
}

function grown(before: Readonly<Record<string, number>>, after: Readonly<Record<string, number>>): object {
  return Object.fromEntries(Object.entries(after).map(([name, many]) => [name, many - (before[name] ?? 0)]));
}

/** Lets the store's clock move on, so that the next change is newer than the last. */
async function tick({ store, pause }: StoreSubject): Promise<void> {
  await pause(2 * store.capabilities.timePrecisionMs + 1);
}
