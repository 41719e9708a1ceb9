import { fail } from "node:assert/strict";
import { seen } from "../../core/transition.ts";
import type { Settling, TransactionalStore, UnitEnd, Within } from "../../stores/store.ts";
import { completed, freshIdentity, inProgress } from "../draft.ts";
import { insertNew, mustBeStale, replaceSeen, stands } from "../expectation.ts";
import { same } from "../same.ts";
import { type StoreLaw, type StoreSubject, transactional } from "../subject.ts";
import { commit, rollback } from "../unit.ts";

/** What holds while a transaction of somebody else is open. */
export const simultaneousLaws: readonly StoreLaw[] = [
  {
    id: "simultaneous/one-claims",
    promise:
      "While a transaction claims an identity no other can, and learns so at once; the end of the first frees it.",
    needs: "simultaneous transactions",
    async check(subject) {
      const { store, other } = await two(subject);
      const identity = freshIdentity(subject);
      const tries = (wanted = identity) =>
        atOnce(
          subject,
          other.transaction(async (tx) => commit(await other.within(tx).tryClaim(wanted))),
          "a claim",
        );
      for (const end of [commit, rollback]) {
        await open(store, async (within) => {
          same(await within.tryClaim(identity), true, "whether the first could claim");
          same(await within.tryClaim(identity), true, "whether the first could claim again");
          same(await tries(), false, "whether a second could claim at the same time");
          same(
            await tries(freshIdentity(subject)),
            true,
            "whether another identity could be claimed meanwhile",
          );
          return end(null);
        });
        same(await tries(), true, "whether it could be claimed once the first had ended");
      }
    },
  },
  {
    id: "simultaneous/uncommitted-is-invisible",
    promise: "A read does not wait for an open transaction and shows the record as last committed.",
    needs: "simultaneous transactions",
    async check(subject) {
      const { store, other } = await two(subject);
      const first = await insertNew(store, inProgress(subject));
      const { identity, owner } = first;
      const claim = inProgress(subject);
      const finished = await open(store, async (within) => {
        await within.insert(claim);
        const { record } = await within.replace(seen(first), completed(subject, { identity, owner }), "wait");
        const looked = await atOnce(
          subject,
          other.read(identity),
          "a read of a record that is being replaced",
        );
        same(looked.record, first, "a record whose replacement is not committed");
        const nothing = await atOnce(
          subject,
          other.read(claim.identity),
          "a read of a record that is being inserted",
        );
        same(nothing.record, null, "a record whose insert is not committed");
        return commit(record);
      });
      same((await other.read(identity)).record, finished, "the record after the commit");
    },
  },
  {
    id: "simultaneous/a-held-row-is-locked",
    promise:
      "A replacement that may not wait answers at once that the row is held, and names the version that was seen.",
    needs: "simultaneous transactions",
    async check(subject) {
      const { store, other } = await two(subject);
      const first = await insertNew(store, inProgress(subject));
      const { identity, owner } = first;
      const takeover = inProgress(subject, { identity });
      await open(store, async (within) => {
        await within.replace(seen(first), completed(subject, { identity, owner }), "wait");
        const outside = await atOnce(
          subject,
          other.replace(seen(first), takeover, "never"),
          "an impatient write",
        );
        same(outside.kind, "locked", "a write on a row that is held");
        same(outside.record, first, "the version that stands while the row is held");
        const unit = other.transaction(async (tx) =>
          commit(await other.within(tx).replace(seen(first), takeover, "never")),
        );
        same(
          (await atOnce(subject, unit, "an impatient write in a transaction")).kind,
          "locked",
          "and in a transaction",
        );
        return rollback(null);
      });
      await stands([store, other], first, "the record after the row was held");
      same(
        (await other.replace(seen(first), takeover, "never")).kind,
        "replaced",
        "the same write, once it was free",
      );
    },
  },
  {
    id: "simultaneous/an-old-version-is-stale-also-while-held",
    promise: "Where another version stands than was seen, an impatient write is stale and not locked.",
    needs: "simultaneous transactions",
    async check(subject) {
      const { store, other } = await two(subject);
      const first = await insertNew(store, inProgress(subject));
      const { identity, owner } = first;
      const taken = await replaceSeen(store, first, inProgress(subject, { identity }));
      await open(store, async (within) => {
        await within.replace(seen(taken), completed(subject, { identity, owner: taken.owner }), "wait");
        const late = other.replace(seen(first), completed(subject, { identity, owner }), "never");
        mustBeStale(
          await atOnce(subject, late, "an impatient late write"),
          taken,
          "a late write on a row that is held",
        );
        return rollback(null);
      });
    },
  },
  {
    id: "simultaneous/waiting-settles-it",
    promise:
      "A replacement that waits is settled by the end of the one that holds the row: stale by a commit, else applied.",
    needs: "simultaneous transactions",
    async check(subject) {
      const { store, other } = await two(subject);
      for (const end of [commit, rollback]) {
        const first = await insertNew(store, inProgress(subject));
        const { identity, owner } = first;
        const { waiting, held } = await open(store, async (within) => {
          const { record } = await within.replace(
            seen(first),
            completed(subject, { identity, owner }),
            "wait",
          );
          const late = other.replace(seen(first), inProgress(subject, { identity }), "wait");
          await subject.pause(50);
          return end({ waiting: [late], held: record });
        });
        const [settled = fail("nothing waited")] = await Promise.all(waiting);
        if (end === commit) mustBeStale(settled, held, "a write that waited for a commit");
        else same(settled.kind, "replaced", "a write that waited for a rollback");
      }
    },
  },
  {
    id: "simultaneous/lost-commit-is-settled-by-repeating",
    promise: "A write repeated while its own first try is still committing waits for it and succeeds once.",
    needs: "simultaneous transactions",
    async check(subject) {
      const { store, other } = await two(subject);
      const first = await insertNew(store, inProgress(subject));
      const { identity, owner } = first;
      const write = completed(subject, { identity, owner, attempt: first.attempt });
      const repeats = await open(store, async (within) => {
        await within.replace(seen(first), write, "wait");
        const repeat = other.replace(seen(first), write, "wait");
        await subject.pause(50);
        return commit([repeat]);
      });
      const [repeated = fail("nothing was repeated")] = await Promise.all(repeats);
      same(repeated.kind, "replaced", "a repeat that waited for its first try");
      same(repeated.record?.revision, first.revision + 1, "the revision after a write and its repeat");
    },
  },
  {
    id: "simultaneous/inserts-are-settled",
    promise:
      "An insert that meets an uncommitted one loses to it when it commits, and wins when it rolls back.",
    needs: "simultaneous transactions",
    async check(subject) {
      const { store, other } = await two(subject);
      for (const end of [commit, rollback]) {
        const claim = inProgress(subject);
        const { identity } = claim;
        const second = inProgress(subject, { identity });
        const { waiting, made } = await open(store, async (within) => {
          const { record } = await within.insert(claim);
          const insert = other.insert(second);
          await subject.pause(50);
          return end({ waiting: [insert], made: record });
        });
        const [settled = fail("nothing waited")] = await Promise.all(waiting);
        same(settled.inserted, end === rollback, "whether the second insert made the record");
        if (end === commit) same(settled.record, made, "the record handed back to the loser");
        same((await store.read(identity)).record, settled.record, "the record that stands");
      }
    },
  },
  {
    id: "simultaneous/others-go-on",
    promise:
      "An open transaction on one identity disturbs no other: inserts, replacements and lists do not wait for it.",
    needs: "simultaneous transactions",
    async check(subject) {
      const { store, other } = await two(subject);
      const first = await insertNew(store, inProgress(subject));
      const { identity, owner } = first;
      const neighbour = await insertNew(store, inProgress(subject));
      await open(store, async (within) => {
        await within.insert(inProgress(subject));
        await within.replace(seen(first), completed(subject, { identity, owner }), "wait");
        await atOnce(subject, other.insert(inProgress(subject)), "an insert of another identity");
        const takeover = inProgress(subject, { identity: neighbour.identity });
        await atOnce(subject, other.replace(seen(neighbour), takeover, "wait"), "a write on another record");
        await atOnce(subject, other.due({ kind: "stale", graceMs: 0, limit: 10 }), "a list of what is stale");
        await atOnce(subject, other.list({ limit: 10 }), "a list for people");
        await atOnce(subject, other.count(), "a count");
        return rollback(null);
      });
    },
  },
];

type Transactional = TransactionalStore<unknown, Settling>;

/** Both handles, for laws in which one meets the other. */
export async function two(
  subject: StoreSubject,
): Promise<{ readonly store: Transactional; readonly other: Transactional }> {
  return { store: transactional(subject.store), other: transactional(await subject.another()) };
}

/** Runs a unit that stays open while its promises last. */
function open<T>(store: Transactional, unit: (within: Within) => Promise<UnitEnd<T>>): Promise<T> {
  return store.transaction((tx) => unit(store.within(tx)));
}

/** Longer than any answer that waits for nobody; what waits would wait for the end of the test itself. */
const AT_ONCE_MS = 5_000;

/** Fails where an answer waits for a transaction that is open. */
export async function atOnce<T>({ pause }: StoreSubject, answer: Promise<T>, what: string): Promise<T> {
  let settled = false;
  const end = () => {
    settled = true;
  };
  // Handles its failure too: where we give up, nobody else awaits it.
  answer.then(end, end);
  for (let waitedMs = 0; waitedMs < AT_ONCE_MS && !settled; waitedMs += 10) {
    await Promise.race([answer, pause(10)]);
  }
  if (!settled) fail(`${what} waited for somebody else's transaction`);
  return answer;
}
