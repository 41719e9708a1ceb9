import { ok } from "node:assert/strict";
import { completed, freshIdentity, inProgress, renewal } from "../draft.ts";
import { insertNew, mustBeStale, replaceSeen, stands } from "../expectation.ts";
import { same } from "../same.ts";
import type { StoreLaw } from "../subject.ts";

/** What `insert` promises: one winner, and a standing record that a loser cannot touch. */
export const insertLaws: readonly StoreLaw[] = [
  {
    id: "insert/one-winner",
    promise:
      "DB-01: Of fifty simultaneous inserts through two handles exactly one makes the record, and all see that one.",
    async check(subject) {
      const handles = [subject.store, await subject.another()];
      const identity = freshIdentity(subject);
      const writes = Array.from({ length: 50 }, () => inProgress(subject, { identity }));
      const calls = writes.flatMap((write, n) => handles[n % handles.length]?.insert(write) ?? []);
      const standings = await Promise.all(calls);
      const winners = standings.filter(({ inserted }) => inserted);
      same(winners.length, 1, "how many of 50 inserts believe that they made the record");
      const [winner] = winners;
      for (const { record } of standings) same(record, winner?.record, "two inserts saw different records");
      same((await subject.store.read(identity)).record, winner?.record, "the record that stands afterwards");
    },
  },
  {
    id: "insert/loser-rewrites-nothing",
    promise:
      "CR-03: A losing insert hands back the standing record and leaves all of it alone, revision and write id too.",
    async check(subject) {
      const handles = [subject.store, await subject.another()];
      const first = await insertNew(subject.store, inProgress(subject));
      for (const handle of handles) {
        const loser = await handle.insert(completed(subject, { identity: first.identity }));
        same(loser.inserted, false, "whether a second insert made the record");
        same(loser.record, first, "the record handed back to the loser");
      }
      await stands(handles, first, "the record after two losing inserts");
    },
  },
  {
    id: "insert/loser-cannot-write-on",
    promise: "CR-03: An owner whose insert lost cannot replace the record that stands.",
    async check(subject) {
      const { store } = subject;
      const first = await insertNew(store, inProgress(subject));
      const { identity, revision } = first;
      const loser = inProgress(subject, { identity });
      await store.insert(loser);
      const finishing = completed(subject, { identity, owner: loser.owner });
      const replaced = await store.replace({ identity, revision, owner: loser.owner }, finishing, "wait");
      mustBeStale(replaced, first, "the completion of an owner that lost");
      await stands([store], first, "the record after it");
    },
  },
  {
    id: "insert/repeat-is-recognised",
    promise:
      "An insert whose reply was lost may be sent again: the record stands once, under its owner, as one attempt.",
    async check(subject) {
      const write = inProgress(subject);
      const first = await insertNew(subject.store, write);
      for (const handle of [subject.store, await subject.another()]) {
        same((await handle.insert(write)).record, first, "the record that the repeated insert hands back");
      }
    },
  },
  {
    id: "insert/late-repeat-changes-nothing",
    promise:
      "An insert repeated after its record was written on hands back the newer version and does not undo it.",
    async check(subject) {
      const { store } = subject;
      const write = inProgress(subject);
      const first = await insertNew(store, write);
      const { identity, owner } = write;
      const finished = await replaceSeen(store, first, completed(subject, { identity, owner }));
      const repeated = await (await subject.another()).insert(write);
      same(repeated.inserted, false, "whether a repeated insert made a record where one stood");
      same(repeated.record, finished, "the record that the repeated insert hands back");
      await stands([store], finished, "the record after the repeated insert");
    },
  },
  {
    id: "insert/loser-sees-the-latest",
    promise: "A losing insert sees the latest version: a renewed lease, not the lease of the claim.",
    async check(subject) {
      const { store } = subject;
      const first = await insertNew(store, inProgress(subject, { leaseUntil: { inMs: 1_000 } }));
      const renewed = await replaceSeen(store, first, renewal(subject, first));
      const loser = await (await subject.another()).insert(inProgress(subject, { identity: first.identity }));
      same(loser.record, renewed, "the record handed back to the loser");
    },
  },
  {
    id: "insert/identities-do-not-disturb-each-other",
    promise: "Forty simultaneous inserts of forty identities all win, each with a record of its own.",
    async check(subject) {
      const handles = [subject.store, await subject.another()];
      const writes = Array.from({ length: 40 }, () => inProgress(subject));
      const calls = writes.flatMap((write, n) => handles[n % handles.length]?.insert(write) ?? []);
      for (const [n, { inserted, record }] of (await Promise.all(calls)).entries()) {
        ok(inserted, "an insert of an identity of its own lost");
        same(record.owner, writes[n]?.owner, "the owner of a record of its own");
      }
    },
  },
];
