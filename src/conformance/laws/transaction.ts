import { rejects } from "node:assert/strict";
import { seen } from "../../core/transition.ts";
import { completed, freshIdentity, inProgress, released } from "../draft.ts";
import { insertNew, mustBeStale, replaceSeen, stands } from "../expectation.ts";
import { same } from "../same.ts";
import { type StoreLaw, transactional } from "../subject.ts";
import { commit, rollback, settled, transact } from "../unit.ts";

/** What a transaction promises where there is only one: all of it or nothing. Two records stand for record and effect. */
export const transactionLaws: readonly StoreLaw[] = [
  {
    id: "transaction/commit-keeps-all",
    promise: "What a unit wrote is there once it committed, all of it, and its value is handed back.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      const first = await insertNew(store, inProgress(subject));
      const { identity, owner } = first;
      const other = inProgress(subject);
      const written = await transact(store, function* (within) {
        const replaced = yield* settled(
          within.replace(seen(first), completed(subject, { identity, owner }), "wait"),
        );
        const inserted = yield* settled(within.insert(other));
        return commit([replaced.record, inserted.record]);
      });
      const looks = await Promise.all([store.read(identity), store.read(other.identity)]);
      same(
        looks.map(({ record }) => record),
        written,
        "the records after a commit",
      );
      same(
        written.map((record) => record?.owner),
        [owner, other.owner],
        "the owners of what was committed",
      );
    },
  },
  {
    id: "transaction/rollback-keeps-nothing",
    promise: "What a unit wrote is not there once it rolled back, none of it, and its value is handed back.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      const first = await insertNew(store, inProgress(subject));
      const { identity, owner } = first;
      const other = inProgress(subject);
      const value = await transact(store, function* (within) {
        yield* settled(within.insert(other));
        const replaced = yield* settled(
          within.replace(seen(first), completed(subject, { identity, owner }), "wait"),
        );
        return rollback(replaced.kind);
      });
      same(value, "replaced", "the value of a unit that rolled back");
      same((await store.read(other.identity)).record, null, "what a unit inserted before it rolled back");
      await stands([store, await subject.another()], first, "what a unit replaced before it rolled back");
      await replaceSeen(store, first, completed(subject, { identity, owner }));
    },
  },
  {
    id: "transaction/throw-keeps-nothing",
    promise: "A unit that throws rolls back, and its own error comes out; the store goes on.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      const first = await insertNew(store, inProgress(subject));
      const { identity, owner } = first;
      const other = inProgress(subject);
      const failure = new Error("the unit failed");
      const failed = transact(store, function* (within) {
        yield* settled(within.insert(other));
        yield* settled(within.replace(seen(first), completed(subject, { identity, owner }), "wait"));
        throw failure;
      });
      await rejects(failed, (error) => error === failure, "a unit that threw");
      same((await store.read(other.identity)).record, null, "what a unit inserted before it threw");
      await stands([store, await subject.another()], first, "what a unit replaced before it threw");
      await insertNew(store, other);
    },
  },
  {
    id: "transaction/losing-insert-leaves-it-usable",
    promise:
      "An insert that loses inside a transaction hands back the standing record, and the unit goes on.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      const first = await insertNew(store, inProgress(subject));
      const other = inProgress(subject);
      const lost = await transact(store, function* (within) {
        const loser = yield* settled(within.insert(inProgress(subject, { identity: first.identity })));
        yield* settled(within.insert(other));
        return commit(loser);
      });
      same(lost.inserted, false, "whether the second insert made the record");
      same(lost.record, first, "the record handed back to the loser");
      same(
        (await store.read(other.identity)).record?.owner,
        other.owner,
        "the owner of what the unit wrote next",
      );
      await stands([store], first, "the record after the losing insert");
    },
  },
  {
    id: "transaction/stale-replacement-leaves-it-usable",
    promise:
      "A replacement that is stale inside a transaction says so and changes nothing, and the unit goes on.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      const first = await insertNew(store, inProgress(subject));
      const { identity, owner } = first;
      const taken = await replaceSeen(await subject.another(), first, inProgress(subject, { identity }));
      const other = inProgress(subject);
      const late = await transact(store, function* (within) {
        const stale = yield* settled(
          within.replace(seen(first), completed(subject, { identity, owner }), "wait"),
        );
        yield* settled(within.insert(other));
        return commit(stale);
      });
      mustBeStale(late, taken, "a late completion inside a transaction");
      same(
        (await store.read(other.identity)).record?.owner,
        other.owner,
        "the owner of what the unit wrote next",
      );
      await stands([store], taken, "the record after the late completion");
    },
  },
  {
    id: "transaction/sees-its-own-writes",
    promise: "Inside a transaction a read and a repeated write see what the transaction wrote.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      const claim = inProgress(subject);
      const { identity } = claim;
      await transact(store, function* (within) {
        same((yield* settled(within.read(identity))).record, null, "a record that nobody wrote");
        const { record } = yield* settled(within.insert(claim));
        same((yield* settled(within.read(identity))).record, record, "a record that this unit inserted");
        same(
          (yield* settled(within.insert(claim))).record,
          record,
          "a record whose insert this unit repeated",
        );
        const release = released(subject, { identity, owner: claim.owner, attempt: record.attempt });
        const replaced = yield* settled(within.replace(seen(record), release, "wait"));
        same(replaced.record?.revision, record.revision + 1, "the revision after a replacement");
        const repeated = yield* settled(within.replace(seen(record), release, "wait"));
        same(repeated.record, replaced.record, "a record whose replacement this unit repeated");
        same(
          (yield* settled(within.read(identity))).record,
          replaced.record,
          "a record that this unit replaced",
        );
        return commit(null);
      });
      same((await store.read(identity)).record?.state, "released", "the state after the commit");
    },
  },
  {
    id: "transaction/claim-of-a-free-identity",
    promise: "An identity that no other transaction is claiming can be claimed, again and again.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      const identity = freshIdentity(subject);
      for (const end of [rollback, commit, commit]) {
        const claimed = await transact(store, function* (within) {
          return end(yield* settled(within.tryClaim(identity)));
        });
        same(claimed, true, "whether an identity could be claimed that no other transaction is claiming");
      }
    },
  },
  {
    id: "transaction/runs-the-unit-once",
    promise: "A unit whose transaction succeeds is called once.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      let calls = 0;
      for (const end of [commit, rollback]) {
        await transact(store, function* (within) {
          calls++;
          yield* settled(within.read(freshIdentity(subject)));
          return end(null);
        });
      }
      same(calls, 2, "how often two units were called");
    },
  },
];
