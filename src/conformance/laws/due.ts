import { fail, ok } from "node:assert/strict";
import type { Identity, Instant, KeyRecord } from "../../core/record.ts";
import type { DueQuery, Listed, Store } from "../../stores/store.ts";
import { completed, freshWord, inProgress, nowOf, renewal, unknown } from "../draft.ts";
import { insertNew, replaceSeen } from "../expectation.ts";
import { same } from "../same.ts";
import type { StoreLaw, StoreSubject } from "../subject.ts";

/** What workers are shown: what is overdue, the longest overdue first, and nothing else. */
export const dueLaws: readonly StoreLaw[] = [
  {
    id: "due/stale-is-beyond-the-grace",
    promise: "Only those in progress whose lease lapsed longer ago than the grace are stale.",
    async check(subject) {
      const { store } = subject;
      const now = await nowOf(store, subject);
      const keyOf = marked(subject);
      for (const [name, agoMs] of Object.entries({
        tenMinutes: 600_000,
        oneMinute: 60_000,
        live: -600_000,
      })) {
        await insertNew(
          store,
          inProgress(subject, { identity: keyOf(name), leaseUntil: { at: now - agoMs } }),
        );
      }
      for (const [graceMs, expected] of [
        [0, ["tenMinutes", "oneMinute"]],
        [30_000, ["tenMinutes", "oneMinute"]],
        [300_000, ["tenMinutes"]],
        [3_600_000, []],
      ] as const) {
        const found = await store.due({ kind: "stale", graceMs, limit: ALL });
        same(namesIn(found, keyOf), expected, `the stale ones with a grace of ${graceMs} ms`);
      }
    },
  },
  {
    id: "due/only-running-ones-are-stale",
    promise: "A record that was renewed, taken over, finished or doubted is not stale any more.",
    async check(subject) {
      const { store } = subject;
      const keyOf = marked(subject);
      const lapsed = async (name: string) =>
        insertNew(store, inProgress(subject, { identity: keyOf(name), leaseUntil: LONG_AGO }));
      await lapsed("lapsed");
      const renewed = await lapsed("renewed");
      await replaceSeen(store, renewed, renewal(subject, renewed));
      const taken = await lapsed("taken over");
      await replaceSeen(store, taken, inProgress(subject, { identity: taken.identity }));
      const finished = await lapsed("finished");
      await replaceSeen(store, finished, completed(subject, { identity: finished.identity }));
      const doubted = await lapsed("doubted");
      await replaceSeen(store, doubted, unknown(subject, { identity: doubted.identity }));
      same(
        namesIn(await store.due({ kind: "stale", graceMs: 0, limit: ALL }), keyOf),
        ["lapsed"],
        "the stale ones",
      );
    },
  },
  {
    id: "due/looks-whose-time-has-come",
    promise: "Only an unknown that is to be reconciled is to be looked at, once its next look has come.",
    async check(subject) {
      const { store } = subject;
      const keyOf = marked(subject);
      const past = { nextLookAt: LONG_AGO };
      const held = { nextLookAt: null, disposition: "hold", retainUntil: { inMs: 86_400_000 } } as const;
      await insertNew(store, unknown(subject, { ...past, identity: keyOf("due") }));
      await insertNew(store, unknown(subject, { identity: keyOf("not yet"), nextLookAt: { inMs: 600_000 } }));
      await insertNew(store, unknown(subject, { ...past, identity: keyOf("review"), disposition: "review" }));
      await insertNew(store, unknown(subject, { ...held, identity: keyOf("held") }));
      await insertNew(store, inProgress(subject, { identity: keyOf("lapsed"), leaseUntil: LONG_AGO }));
      const looked = await insertNew(store, unknown(subject, { ...past, identity: keyOf("looked at") }));
      await replaceSeen(store, looked, unknown(subject, { identity: looked.identity }));
      same(
        namesIn(await store.due({ kind: "looks", limit: ALL }), keyOf),
        ["due"],
        "the ones to be looked at",
      );
    },
  },
  {
    id: "due/longest-overdue-first",
    promise:
      "The longest overdue come first, however many there are and in whatever order they were written.",
    async check(subject) {
      const { store } = subject;
      const keyOf = marked(subject);
      for (const n of [3, 1, 4, 0, 5, 2]) {
        const at = LONG_AGO.at + n * 1_000;
        await insertNew(store, inProgress(subject, { identity: keyOf(`${n}`), leaseUntil: { at } }));
        await insertNew(store, unknown(subject, { identity: keyOf(`${n}?`), nextLookAt: { at } }));
      }
      const stale = await store.due({ kind: "stale", graceMs: 0, limit: ALL });
      same(namesIn(stale, keyOf), ["0", "1", "2", "3", "4", "5"], "the stale ones in their order");
      const looks = await store.due({ kind: "looks", limit: ALL });
      same(namesIn(looks, keyOf), ["0?", "1?", "2?", "3?", "4?", "5?"], "the ones to look at in their order");
    },
  },
  {
    id: "due/no-more-than-asked-for",
    promise: "No more come back than were asked for, and those are the longest overdue of all.",
    async check(subject) {
      const { store } = subject;
      for (const n of [2, 0, 3, 1]) {
        const at = { at: LONG_AGO.at - n * 1_000 };
        await insertNew(store, inProgress(subject, { leaseUntil: at }));
        await insertNew(store, unknown(subject, { nextLookAt: at }));
      }
      const queries: readonly DueQuery[] = [
        { kind: "stale", graceMs: 0, limit: ALL },
        { kind: "looks", limit: ALL },
      ];
      for (const query of queries) {
        const longest = overdueTimes(await store.due(query));
        same(longest, longest.toSorted(ascending), `the times of all that is due (${query.kind})`);
        for (const limit of [1, 3]) {
          const some = overdueTimes(await store.due({ ...query, limit }));
          same(some, longest.slice(0, limit), `of those due (${query.kind}), at most ${limit}`);
        }
      }
    },
  },
  {
    id: "due/pages-follow-on",
    promise:
      "Pages show everything that is due once and in its order, many of one instant too, whatever becomes of what was shown.",
    async check(subject) {
      const { store } = subject;
      for (const n of [0, 1, 1, 1, 1, 2]) {
        const at = { at: LONG_AGO.at + n };
        await insertNew(store, inProgress(subject, { leaseUntil: at }));
        await insertNew(store, unknown(subject, { nextLookAt: at }));
      }
      for (const query of [{ kind: "stale", graceMs: 0 }, { kind: "looks" }] as const) {
        const whole = ownersIn(await store.due({ ...query, limit: ALL }));
        for (const limit of [1, 2, 4])
          same(
            (await paged(store, { ...query, limit }, whole.length)).map(({ owner }) => owner),
            whole,
            `all pages of what is due (${query.kind}), ${limit} at a time`,
          );
        const moving = async (last: KeyRecord) =>
          void (await replaceSeen(store, last, completed(subject, { identity: last.identity })));
        same(
          (await paged(store, { ...query, limit: 4 }, whole.length, moving)).map(({ owner }) => owner),
          whole,
          `all pages of what is due (${query.kind}), where the last one of each was finished before the next`,
        );
      }
    },
  },
  {
    id: "due/comes-by-itself",
    promise:
      "A lease lapses and a look comes by the store's clock alone, at the moment that the record names.",
    async check(subject) {
      const { store } = subject;
      const running = await insertNew(store, inProgress(subject, { leaseUntil: { inMs: 400 } }));
      const doubted = await insertNew(store, unknown(subject, { nextLookAt: { inMs: 400 } }));
      await comes(subject, { kind: "stale", graceMs: 200, limit: ALL }, running, running.leaseUntil + 200);
      await comes(
        subject,
        { kind: "looks", limit: ALL },
        doubted,
        doubted.nextLookAt ?? fail("no look is planned"),
      );
    },
  },
  {
    id: "due/shows-the-records-themselves",
    promise: "What is listed as due is the record as it stands, to be written on at once.",
    async check(subject) {
      const { store } = subject;
      const record = await insertNew(store, inProgress(subject, { leaseUntil: LONG_AGO }));
      const { records } = await (await subject.another()).due({ kind: "stale", graceMs: 0, limit: ALL });
      const found = records.find(({ owner }) => owner === record.owner);
      same(found, record, "a record listed as stale");
      await replaceSeen(store, found ?? record, inProgress(subject, { identity: record.identity }));
    },
  },
];

/** More than any subject holds. */
const ALL = 100_000;

/** Before anything that other laws leave behind. */
const LONG_AGO = { at: 1_000_000_000_000 };

type Keys = ((name: string) => Identity) & { readonly principal: string };

/** Identities that this law can find again among all others. */
function marked(subject: StoreSubject): Keys {
  const principal = `principal-${freshWord(subject)}`;
  return Object.assign((key: string): Identity => ({ kind: "http", principal, key }), { principal });
}

function namesIn({ records }: Listed, { principal }: Keys): readonly string[] {
  return records
    .filter(({ identity }) => identity.principal === principal)
    .map(({ identity }) => identity.key);
}

const ownersIn = ({ records }: Listed) => records.map(({ owner }) => owner);

/** Page after page until one is empty; more than there can be is an endless list. */
async function paged(
  store: Store,
  query: DueQuery,
  most: number,
  between: (last: KeyRecord) => Promise<void> = async () => {},
): Promise<readonly KeyRecord[]> {
  const shown: KeyRecord[] = [];
  for (let after: DueQuery["after"]; shown.length <= most; ) {
    const { records } = await store.due(after === undefined ? query : { ...query, after });
    const last = records.at(-1);
    if (last === undefined) return shown;
    shown.push(...records);
    after = { dueAt: dueTimeOf(last), identity: last.identity };
    await between(last);
  }
  fail(`pages of what is due (${query.kind}) go on after all ${most} were shown`);
}

const ascending = (one: Instant, other: Instant) => one - other;

function overdueTimes({ records }: Listed): readonly Instant[] {
  return records.map(dueTimeOf);
}

function dueTimeOf(record: KeyRecord): Instant {
  const { leaseUntil = null, nextLookAt = null } = { leaseUntil: null, nextLookAt: null, ...record };
  return leaseUntil ?? nextLookAt ?? fail(`a record in state ${record.state} is due and has no time for it`);
}

async function comes(
  subject: StoreSubject,
  query: DueQuery,
  record: KeyRecord,
  dueAt: Instant,
): Promise<void> {
  const isListed = async (store: Store) => {
    const { records, now } = await store.due(query);
    return { listed: records.some(({ owner }) => owner === record.owner), now };
  };
  for (let looks = 0; looks < 400; looks++) {
    const { listed, now } = await isListed(subject.store);
    if (listed) return ok(now >= dueAt, `it was due (${query.kind}) at ${now}, before its time ${dueAt}`);
    ok(now <= dueAt + GRAIN_MS, `it was not yet due (${query.kind}) at ${now}, after its time ${dueAt}`);
    await subject.pause(25);
  }
  fail(`it never became due (${query.kind})`);
}

/** A store's clock may be this coarse before a worker's tick notices. */
const GRAIN_MS = 1_000;
