import { fail, ok, rejects } from "node:assert/strict";
import type { Identity } from "../../core/record.ts";
import { RecordCorrupt } from "../../errors.ts";
import { completed, freshIdentity, freshWord, inProgress, nowOf, unknown } from "../draft.ts";
import { insertNew, stands } from "../expectation.ts";
import { same } from "../same.ts";
import type { StoreLaw, StoreSubject } from "../subject.ts";

/** A record that cannot be read is said to be damaged: never taken for another, never in the way of others. */
export const damageLaws: readonly StoreLaw[] = [
  {
    id: "damage/is-said",
    promise:
      "A damaged record is `RecordCorrupt` for whoever reads, inserts or replaces it, and is not overwritten.",
    needs: "damage",
    async check(subject) {
      const { store } = subject;
      const record = await insertNew(store, completed(subject));
      const { identity, owner, revision } = record;
      await damaged(subject, identity);
      for (const handle of [store, await subject.another()]) {
        await corrupt(handle.read(identity), "a read");
        await corrupt(handle.insert(inProgress(subject, { identity })), "an insert");
        const stale = { identity, owner: `not-${owner}`, revision };
        await corrupt(
          handle.replace(stale, inProgress(subject, { identity }), "wait"),
          "a replacement that is stale",
        );
      }
    },
  },
  {
    id: "damage/hides-nothing",
    promise: "Lists count the damaged ones and show all others.",
    needs: "damage",
    async check(subject) {
      const { store } = subject;
      const principal = freshWord(subject);
      const past = { at: (await nowOf(store, subject)) - 60_000 };
      const at = (key: string): Identity => ({ kind: "http", principal, key });
      for (const key of ["a", "b", "c"]) {
        await insertNew(store, inProgress(subject, { identity: at(key), leaseUntil: past }));
        await insertNew(store, unknown(subject, { identity: at(`${key}?`), nextLookAt: past }));
      }
      for (const key of ["b", "b?"]) await damaged(subject, at(key));
      const keysOf = ({ records }: { readonly records: readonly { readonly identity: Identity }[] }) =>
        records
          .flatMap(({ identity }) => (identity.principal === principal ? [identity.key] : []))
          .toSorted();
      const list = await store.list({ limit: ALL, principal });
      same(keysOf(list), ["a", "a?", "c", "c?"], "the readable ones of a list");
      same(list.damaged, 2, "the damaged ones of a list");
      const stale = await store.due({ kind: "stale", graceMs: 0, limit: ALL });
      same(keysOf(stale), ["a", "c"], "the readable ones that are stale");
      ok(stale.damaged >= 1, "a damaged one that is stale is not counted");
      const looks = await store.due({ kind: "looks", limit: ALL });
      same(keysOf(looks), ["a?", "c?"], "the readable ones to be looked at");
      ok(looks.damaged >= 1, "a damaged one that is to be looked at is not counted");
    },
  },
  {
    id: "damage/is-counted-once",
    promise: "Of pages of what is due, each counts the damaged ones before its last record, and no other.",
    needs: "damage",
    async check(subject) {
      const { store } = subject;
      const records = [];
      for (const n of [0, 1, 2, 3])
        records.push(await insertNew(store, inProgress(subject, { leaseUntil: { at: LONGER_AGO + n } })));
      for (const n of [0, 3]) await damaged(subject, records[n]?.identity ?? fail("four were made"));
      const start = { dueAt: LONGER_AGO - 1, identity: freshIdentity(subject) };
      const first = { kind: "stale", graceMs: 0, limit: 2, after: start } as const;
      const whole = await store.due({ ...first, limit: ALL });
      const page = await store.due(first);
      const owners = page.records.map(({ owner }) => owner);
      same(owners, [records[1]?.owner, records[2]?.owner], "the records of the first page");
      same(page.damaged, 1, "the damaged ones of the first page");
      const after = { dueAt: LONGER_AGO + 2, identity: records[2]?.identity ?? fail("four were made") };
      const rest = await store.due({ ...first, limit: ALL, after });
      same(rest.damaged, whole.damaged - 1, "the damaged ones behind the first page");
    },
  },
  {
    id: "damage/stops-nothing",
    promise: "Counting, purging and writing other records go on beside a damaged one.",
    needs: "damage",
    async check(subject) {
      const { store } = subject;
      const before = await store.count();
      const { identity } = await insertNew(store, completed(subject));
      await damaged(subject, identity);
      const after = await store.count();
      same(after.byState.completed - before.byState.completed, 1, "how many more completed ones there are");
      const ended = await insertNew(store, completed(subject, { retainUntil: { at: 1_000_000_000_000 } }));
      await store.purge(ALL);
      same((await store.read(ended.identity)).record, null, "another record whose retention is over");
      const other = await insertNew(store, inProgress(subject));
      await stands([store], other, "another record");
    },
  },
];

/** Longer ago than what is due to other laws. */
const LONGER_AGO = 900_000_000_000;

/** More than any subject holds. */
const ALL = 100_000;

async function damaged({ damage }: StoreSubject, identity: Identity): Promise<void> {
  if (damage === undefined) throw new Error("This subject cannot damage a record.");
  await damage(identity);
}

async function corrupt(promise: Promise<unknown>, what: string): Promise<void> {
  await rejects(promise, RecordCorrupt, `${what} of a damaged record`);
}
