import { ok } from "node:assert/strict";
import type { Due, RecordWrite } from "../../core/record.ts";
import type { Store } from "../../stores/store.ts";
import { completed, failedPermanent, freshIdentity, inProgress, released, unknown } from "../draft.ts";
import { insertNew, replaceSeen, stands } from "../expectation.ts";
import { same } from "../same.ts";
import type { StoreLaw, StoreSubject } from "../subject.ts";

/** What a purge takes, and above all what it never takes. */
export const purgeLaws: readonly StoreLaw[] = [
  {
    id: "purge/takes-what-ended",
    promise: "Completed, failed, released and held ones are gone once their retention is over.",
    needs: "purge",
    async check(subject) {
      const { store } = subject;
      for (const write of endings(subject, PAST)) {
        const { identity } = await insertNew(store, write);
        await purgeAll(store);
        same((await store.read(identity)).record, null, `a record (${write.state}) whose retention is over`);
      }
    },
  },
  {
    id: "purge/keeps-what-is-retained",
    promise: "A record whose retention is not over stays, however old it is.",
    async check(subject) {
      const { store } = subject;
      const old = { createdAt: PAST, claimedAt: PAST };
      for (const write of endings(subject, { inMs: 600_000 })) {
        const record = await insertNew(store, { ...write, ...old });
        await purgeAll(store);
        await stands([store], record, `a record (${write.state}) that is still retained`);
      }
    },
  },
  {
    id: "purge/never-takes-a-running-one",
    promise: "A record in progress stays for ever, however long ago its lease lapsed.",
    async check(subject) {
      const { store } = subject;
      const old = { createdAt: PAST, claimedAt: PAST, leaseUntil: PAST };
      const record = await insertNew(store, inProgress(subject, old));
      await purgeAll(store);
      await stands([store], record, "a record in progress whose lease lapsed long ago");
    },
  },
  {
    id: "purge/never-takes-a-doubt-to-be-ended",
    promise: "An unknown that the reconciler or a person is to end stays for ever, however old it is.",
    async check(subject) {
      const { store } = subject;
      for (const disposition of ["reconcile", "review"] as const) {
        for (const nextLookAt of [PAST, null]) {
          const old = { createdAt: PAST, claimedAt: PAST, retainUntil: null, nextLookAt, disposition };
          const record = await insertNew(store, unknown(subject, old));
          await purgeAll(store);
          await stands([store], record, `an old unknown (${disposition})`);
        }
      }
    },
  },
  {
    id: "purge/no-more-than-asked-for",
    promise:
      "A purge takes as many as it was asked for, says how many went, and gets to all of them in the end.",
    needs: "purge",
    async check(subject) {
      const { store } = subject;
      await purgeAll(store);
      const ended = Array.from({ length: 5 }, () => completed(subject, { retainUntil: PAST }));
      for (const write of ended) await insertNew(store, write);
      const left = async () => {
        const looked = await Promise.all(ended.map(({ identity }) => store.read(identity)));
        return looked.filter(({ record }) => record !== null).length;
      };
      for (const [limit, went, stay] of [
        [2, 2, 3],
        [1, 1, 2],
        [100, 2, 0],
        [100, 0, 0],
      ] as const) {
        same(await store.purge(limit), went, `how many went when at most ${limit} were to go`);
        same(await left(), stay, "how many stayed");
      }
    },
  },
  {
    id: "purge/comes-by-itself",
    promise: "A retention ends by the store's clock alone.",
    needs: "purge",
    async check(subject) {
      const { store } = subject;
      const { identity, retainUntil } = await insertNew(
        store,
        completed(subject, { retainUntil: { inMs: 300 } }),
      );
      for (let looks = 0; looks < 400; looks++) {
        await purgeAll(store);
        const { record, now } = await store.read(identity);
        if (record === null)
          return ok(now >= retainUntil, `it went at ${now}, before its time ${retainUntil}`);
        await subject.pause(25);
      }
      throw new Error("A record whose retention was over never went.");
    },
  },
  {
    id: "purge/attempts-are-not-reused",
    promise: "An identity that was purged starts again with an attempt number that it never had.",
    needs: "purge",
    async check(subject) {
      const { store } = subject;
      const identity = freshIdentity(subject);
      let last = 0;
      for (const handle of [store, await subject.another(), store]) {
        const first = await insertNew(handle, inProgress(subject, { identity }));
        ok(first.attempt > last, `attempt ${first.attempt} of an identity whose attempt ${last} was purged`);
        const ending = completed(subject, { identity, retainUntil: PAST });
        last = (await replaceSeen(handle, first, ending)).attempt;
        ok(last > first.attempt, `attempt ${last} after attempt ${first.attempt}`);
        await purgeAll(store);
      }
    },
  },
  {
    id: "purge/leaves-the-log",
    promise: "What people and policies overrode stays in the log when the record is gone.",
    needs: "purge",
    async check(subject) {
      const { store } = subject;
      const { identity } = await insertNew(store, released(subject, { retainUntil: PAST }));
      const entry = { identity, actor: "ada", action: "release", reason: "Nothing was sent." };
      await store.audit({ ...entry, before: "unknown", after: "released" });
      await purgeAll(store);
      same((await store.audits(identity)).length, 1, "the log's entries for a record that was purged");
    },
  },
];

const PAST = { at: 1_000_000_000_000 };

/** One of each that may be forgotten when its retention is over. */
function endings(subject: StoreSubject, retainUntil: Due): readonly RecordWrite[] {
  return [
    completed(subject, { retainUntil }),
    failedPermanent(subject, { retainUntil }),
    released(subject, { retainUntil }),
    unknown(subject, { retainUntil, disposition: "hold", nextLookAt: null }),
  ];
}

/** Everything goes in batches; a store that never says that it is done is broken. */
async function purgeAll(store: Store): Promise<void> {
  for (let batches = 0; batches < 1_000; batches++) {
    if ((await store.purge(1_000)) === 0) return;
  }
  throw new Error("A thousand purges, and still something went in each.");
}
