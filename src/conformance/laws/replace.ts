import { ok } from "node:assert/strict";
import { seen } from "../../core/transition.ts";
import { completed, freshIdentity, freshWord, inProgress, released, renewal, unknown } from "../draft.ts";
import { insertNew, mustBeStale, replaceSeen, stands } from "../expectation.ts";
import { same } from "../same.ts";
import type { StoreLaw } from "../subject.ts";

/** What `replace` promises: one compare-and-set on owner and revision, and a lost reply that can be settled. */
export const replaceLaws: readonly StoreLaw[] = [
  {
    id: "replace/next-version-stands",
    promise: "A replacement of the version that stands is kept as a whole, for every handle to see.",
    async check(subject) {
      const { store } = subject;
      const first = await insertNew(store, inProgress(subject));
      const write = completed(subject, {
        identity: first.identity,
        owner: first.owner,
        attempt: first.attempt,
      });
      const next = await replaceSeen(store, first, write);
      same(next.writeId, write.writeId, "the write id of the new version");
      same(next.answer, write.answer, "the answer of the new version");
      same(next.attempt, first.attempt, "the attempt, which the write named");
      await stands([store, await subject.another()], next, "the record after it was replaced");
    },
  },
  {
    id: "replace/revision-grows-by-one",
    promise: "Every write of a row makes its revision grow by one, through whichever handle it comes.",
    async check(subject) {
      const handles = [subject.store, await subject.another()];
      let record = await insertNew(subject.store, inProgress(subject));
      ok(Number.isSafeInteger(record.revision), `a revision must be a whole number; got ${record.revision}`);
      for (const handle of [...handles, ...handles]) {
        const next = await replaceSeen(handle, record, renewal(subject, record));
        same(next.revision, record.revision + 1, "the revision after one write");
        record = next;
      }
    },
  },
  {
    id: "replace/old-revision-is-stale",
    promise:
      "A write on a version that its own owner has renewed since is stale: the owner alone is not enough.",
    async check(subject) {
      const { store } = subject;
      const first = await insertNew(store, inProgress(subject));
      const renewed = await replaceSeen(store, first, renewal(subject, first));
      for (const patience of ["wait", "never"] as const) {
        const takeover = inProgress(subject, { identity: first.identity });
        mustBeStale(
          await store.replace(seen(first), takeover, patience),
          renewed,
          "a takeover of an old version",
        );
        const late = renewal(subject, first);
        mustBeStale(await store.replace(seen(first), late, patience), renewed, "a late renewal");
      }
      await stands([store], renewed, "the record after two late writes");
    },
  },
  {
    id: "replace/old-owner-is-stale",
    promise:
      "An owner from whom the record was taken over cannot renew, complete or release it, whatever revision it names.",
    async check(subject) {
      const { store } = subject;
      const first = await insertNew(store, inProgress(subject));
      const { identity, owner } = first;
      const taken = await replaceSeen(await subject.another(), first, inProgress(subject, { identity }));
      const writes = [
        renewal(subject, first),
        completed(subject, { identity, owner, attempt: first.attempt }),
        released(subject, { identity, owner, attempt: first.attempt }),
      ];
      for (const write of writes) {
        for (const { revision } of [first, taken]) {
          const replaced = await store.replace({ identity, owner, revision }, write, "wait");
          mustBeStale(replaced, taken, `a write (${write.state}) of an owner that lost its claim`);
        }
      }
      await stands([store], taken, "the record after the writes of its former owner");
    },
  },
  {
    id: "replace/nothing-to-replace-is-stale",
    promise: "A replacement of a record that is not there is stale and creates nothing.",
    async check(subject) {
      const { store } = subject;
      const write = completed(subject, { identity: freshIdentity(subject), attempt: 1 });
      const { identity, owner } = write;
      for (const patience of ["wait", "never"] as const) {
        const replaced = await store.replace({ identity, owner, revision: 1 }, write, patience);
        mustBeStale(replaced, null, "a write on nothing");
      }
      same((await store.read(identity)).record, null, "the record after a write on nothing");
    },
  },
  {
    id: "replace/one-winner",
    promise:
      "Of twenty simultaneous replacements of one version through two handles exactly one replaces it.",
    async check(subject) {
      const handles = [subject.store, await subject.another()];
      const first = await insertNew(subject.store, inProgress(subject));
      const writes = Array.from({ length: 20 }, () => inProgress(subject, { identity: first.identity }));
      const calls = writes.flatMap(
        (write, n) => handles[n % handles.length]?.replace(seen(first), write, "wait") ?? [],
      );
      const results = await Promise.all(calls);
      const winners = results.filter(({ kind }) => kind === "replaced");
      same(winners.length, 1, "how many of 20 replacements believe that they replaced");
      const standing = (await subject.store.read(first.identity)).record;
      for (const { kind, record } of results) same(record, standing, `the record handed back as ${kind}`);
      same(standing?.revision, first.revision + 1, "the revision after one replacement");
    },
  },
  {
    id: "replace/repeat-succeeds",
    promise:
      "A write whose reply was lost may be sent again: it succeeds on its write id and is not applied twice.",
    async check(subject) {
      const { store } = subject;
      const first = await insertNew(store, inProgress(subject));
      const write = completed(subject, {
        identity: first.identity,
        owner: first.owner,
        attempt: first.attempt,
      });
      const applied = await replaceSeen(store, first, write);
      for (const patience of ["wait", "never"] as const) {
        const repeated = await (await subject.another()).replace(seen(first), write, patience);
        same(repeated.kind, "replaced", "a repeat of a write that was applied");
        same(repeated.record, applied, "the record handed back to the repeat");
      }
      await stands([store], applied, "the record after the repeats");
    },
  },
  {
    id: "replace/repeated-takeover-is-one-attempt",
    promise: "A repeated takeover gives no second attempt number.",
    async check(subject) {
      const { store } = subject;
      const first = await insertNew(store, inProgress(subject));
      const takeover = inProgress(subject, { identity: first.identity });
      const taken = await replaceSeen(store, first, takeover);
      same(
        await replaceSeen(await subject.another(), first, takeover),
        taken,
        "the repeated takeover's record",
      );
    },
  },
  {
    id: "replace/repeat-after-another-write-is-stale",
    promise:
      "A repeat of a write that somebody has written over since is stale, its own owner's later write included.",
    async check(subject) {
      const { store } = subject;
      const first = await insertNew(store, inProgress(subject));
      const write = renewal(subject, first);
      const renewed = await replaceSeen(store, first, write);
      const again = await replaceSeen(store, renewed, renewal(subject, renewed));
      mustBeStale(
        await store.replace(seen(first), write, "wait"),
        again,
        "a repeat after the owner wrote on",
      );
      const doubted = await replaceSeen(
        await subject.another(),
        again,
        unknown(subject, { identity: first.identity }),
      );
      mustBeStale(
        await store.replace(seen(first), write, "wait"),
        doubted,
        "a repeat after somebody else wrote on",
      );
      await stands([store], doubted, "the record after two late repeats");
    },
  },
  {
    id: "replace/write-id-belongs-to-its-record",
    promise: "A write id that stands in another record makes no repeat of a write that was never applied.",
    async check(subject) {
      const { store } = subject;
      const writeId = `write-${freshWord(subject)}`;
      await insertNew(store, inProgress(subject, { writeId }));
      const first = await insertNew(store, inProgress(subject));
      const { identity, owner, revision } = first;
      const write = completed(subject, { identity, owner, writeId });
      const replaced = await store.replace({ identity, owner, revision: revision + 1 }, write, "wait");
      mustBeStale(replaced, first, "a write on a version that never stood");
    },
  },
  {
    id: "replace/attempts-grow",
    promise: "Asked for the next attempt number, a store gives a larger one at every takeover.",
    async check(subject) {
      const handles = [subject.store, await subject.another()];
      let record = await insertNew(subject.store, inProgress(subject));
      isAttempt(record.attempt);
      for (const handle of [...handles, ...handles, ...handles]) {
        const taken = await replaceSeen(handle, record, inProgress(subject, { identity: record.identity }));
        isAttempt(taken.attempt);
        ok(taken.attempt > record.attempt, `attempt ${taken.attempt} after attempt ${record.attempt}`);
        record = taken;
      }
    },
  },
  {
    id: "replace/attempts-grow-for-a-look",
    promise:
      "An unknown that a reconciler takes over is of a new attempt, so that the former owner is fenced.",
    async check(subject) {
      const { store } = subject;
      const first = await insertNew(store, unknown(subject));
      const look = await replaceSeen(store, first, unknown(subject, { identity: first.identity }));
      ok(look.attempt > first.attempt, `attempt ${look.attempt} after attempt ${first.attempt}`);
      const late = completed(subject, {
        identity: first.identity,
        owner: first.owner,
        attempt: first.attempt,
      });
      mustBeStale(
        await store.replace(seen(first), late, "wait"),
        look,
        "a late result after a reconciler took over",
      );
    },
  },
];

function isAttempt(attempt: number): void {
  ok(Number.isSafeInteger(attempt) && attempt > 0, `an attempt is a positive whole number; got ${attempt}`);
}
