import { ok, rejects } from "node:assert/strict";
import { OncekeyError, RecordCorrupt } from "../../errors.ts";
import type { Ground } from "../../stores/store.ts";
import { completed, freshIdentity, freshWord, inProgress } from "../draft.ts";
import { holds, insertNew, replaceSeen, stands } from "../expectation.ts";
import {
  claimableNothing,
  claimableVersion,
  everyGround,
  isFree,
  mustBeCommitted,
  mustBeRefused,
  refusesBefore,
  standsStill,
  WORKED,
  workOf,
} from "../ground.ts";
import { same } from "../same.ts";
import { type StoreLaw, type StoreSubject, transactional } from "../subject.ts";
import { commitWith, fence, rollback, settled, transact } from "../unit.ts";

/** What a unit on a ground promises where there is only one. Two records stand for record and effect. */
export const fencedLaws: readonly StoreLaw[] = [
  {
    id: "fenced/commit-keeps-all",
    promise:
      "A unit whose ground holds commits its write as the next version of the ground, and what it wrote besides.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      for (const { name, ground, standing, write } of await everyGround(subject)) {
        const work = workOf(subject, write);
        const end = await fence(store, ground, work.unit);
        const record = holds(mustBeCommitted(end, name), write, `what a unit ${name} committed`);
        same(record.revision, (standing?.revision ?? 0) + 1, `the revision that a unit ${name} committed`);
        same("value" in end ? end.value : undefined, WORKED, `the value of a unit ${name}`);
        await stands([store, await subject.another()], record, `the record after a unit ${name}`);
        await work.hadEffect(store, 1, `a unit ${name}`);
      }
    },
  },
  {
    id: "fenced/rollback-keeps-nothing",
    promise:
      "A unit that rolls back keeps nothing, its value is handed back, and nobody holds its ground any more.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      for (const { name, ground, identity, standing, write } of await everyGround(subject)) {
        const work = workOf(subject, write);
        const end = await fence(store, ground, function* (within) {
          return rollback((yield* work.unit(within)).value);
        });
        same(end, { kind: "rolled_back", value: WORKED }, `the end of a unit ${name} and rolls back`);
        await work.hadEffect(store, 0, `a unit ${name} and rolled back`);
        const handles = [store, await subject.another()];
        await standsStill(handles, identity, standing, `the record after a unit ${name} and rolled back`);
        await isFree(subject, { identity, standing }, "after a rollback");
      }
    },
  },
  {
    id: "fenced/throw-keeps-nothing",
    promise:
      "A unit that throws keeps nothing, its own error comes out, and nobody holds its ground any more.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      const failure = new Error("the unit failed");
      for (const { name, ground, identity, standing, write } of await everyGround(subject)) {
        const work = workOf(subject, write);
        const failed = fence(store, ground, function* (within) {
          yield* work.unit(within);
          throw failure;
        });
        await rejects(failed, (error) => error === failure, `a unit ${name} and throws`);
        await work.hadEffect(store, 0, `a unit ${name} and threw`);
        const handles = [store, await subject.another()];
        await standsStill(handles, identity, standing, `the record after a unit ${name} and threw`);
        await isFree(subject, { identity, standing }, "after a throw");
        await goesOn(subject);
      }
    },
  },
  {
    id: "fenced/runs-the-unit-once",
    promise: "A unit whose ground holds is called once.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      for (const { name, ground, write } of await everyGround(subject)) {
        const work = workOf(subject, write);
        await fence(store, ground, work.unit);
        same(work.begun(), 1, `how often a unit ${name} was called`);
      }
    },
  },
  {
    id: "fenced/another-version-is-refused",
    promise:
      "A unit whose ground has another version by now is refused with what stands, and is not called.",
    needs: "transactions",
    async check(subject) {
      const other = await subject.another();
      for (const { name, ground, identity, standing, write } of await everyGround(subject)) {
        const { owner } = standing ?? write;
        const next = inProgress(subject, { identity, owner });
        const taken = await (standing === null ? insertNew(other, next) : replaceSeen(other, standing, next));
        await refusesBefore(subject, { ground, identity, standing: taken, write }, `${name} that is gone`);
      }
    },
  },
  {
    id: "fenced/owner-and-revision-both-count",
    promise: "A version is the one that was seen where owner and revision are the same, and not one of them.",
    needs: "transactions",
    async check(subject) {
      for (const { name, ground, identity, standing, write } of await everyGround(subject)) {
        if (ground.seen === null) continue;
        const { owner, revision } = ground.seen;
        for (const version of [
          { owner, revision: revision + 1 },
          { owner: `not-${owner}`, revision },
        ]) {
          const wrong: Ground = { ...ground, seen: { identity, ...version } };
          await refusesBefore(subject, { ground: wrong, identity, standing, write }, `${name}, half of it`);
        }
      }
    },
  },
  {
    id: "fenced/no-record-is-refused",
    promise: "A unit on a version is refused where no record stands at all, is not called, and makes none.",
    needs: "transactions",
    async check(subject) {
      const identity = freshIdentity(subject);
      const seen = { identity, owner: `owner-${freshWord(subject)}`, revision: 1 };
      const write = completed(subject, { identity });
      for (const ground of [
        { kind: "held", seen },
        { kind: "claimable", identity, seen },
      ] as const) {
        await refusesBefore(
          subject,
          { ground, identity, standing: null, write },
          `on no record (${ground.kind})`,
        );
      }
    },
  },
  {
    id: "fenced/own-change-is-refused",
    promise:
      "A unit that changes its ground itself is refused at its end, keeps nothing, and is told what stands then.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      for (const { name, ground, identity, standing, write } of await everyGround(subject)) {
        const { owner } = standing ?? write;
        const change = inProgress(subject, { identity, owner });
        const work = workOf(subject, write);
        const end = await fence(store, ground, function* (within) {
          yield* settled(
            ground.seen === null ? within.insert(change) : within.replace(ground.seen, change, "wait"),
          );
          return yield* work.unit(within);
        });
        mustBeRefused(end, standing, `${name} and changes it`);
        await work.hadEffect(store, 0, `a unit ${name} and changes it`);
        const handles = [store, await subject.another()];
        await standsStill(handles, identity, standing, `the record after a unit ${name} and changed it`);
      }
    },
  },
  {
    id: "fenced/repeat-is-refused",
    promise:
      "A unit repeated after a commit whose reply was lost is refused with its own record, and is not called again.",
    needs: "transactions",
    async check(subject) {
      for (const { name, ground, identity, write } of await everyGround(subject)) {
        const work = workOf(subject, write);
        const end = await fence(transactional(subject.store), ground, work.unit);
        const record = mustBeCommitted(end, name);
        same(record.writeId, write.writeId, `the write id of a unit ${name}`);
        for (const handle of [subject.store, await subject.another()]) {
          mustBeRefused(await fence(transactional(handle), ground, work.unit), record, `${name}, repeated`);
        }
        same(work.begun(), 1, `how often a unit ${name} was called, with two repeats`);
        await standsStill([subject.store], identity, record, `the record after a unit ${name}, repeated`);
      }
    },
  },
  {
    id: "fenced/number-was-never-borne",
    promise:
      "A claim's number is larger than that of any record before, purged ones too; a unit on a held version has none.",
    needs: "transactions",
    async check(subject) {
      const identity = freshIdentity(subject);
      const handles = [subject.store, await subject.another()].map(transactional);
      let last = (await insertNew(subject.store, inProgress(subject))).attempt;
      const grows = (number: number | null, what: string): number => {
        ok(number !== null && number > last, `${what}: number ${number} after ${last}`);
        last = number;
        return number;
      };
      for (const handle of [...handles, ...handles]) {
        const { ground, write } = claimableNothing(subject, identity);
        const first = await fence(handle, ground, function* (_within, number) {
          return commitWith({ ...write, attempt: grows(number, "a claim where nothing stands") }, null);
        });
        const claimed = mustBeCommitted(first, "that claims where nothing stands");
        same(claimed.attempt, last, "the attempt of a record whose write names the number");
        const again = claimableVersion(subject, claimed);
        const second = await fence(handle, again.ground, function* (_within, number) {
          return commitWith({ ...again.write, attempt: grows(number, "a claim of a version") }, number);
        });
        const taken = mustBeCommitted(second, "that claims a version");
        same(taken.attempt, last, "the attempt of a record whose write names the number");
        const held = { kind: "held", seen: taken } as const;
        const third = await fence(handle, held, function* (_within, number) {
          return commitWith({ ...again.write, writeId: "x", attempt: taken.attempt }, number);
        });
        void third;
      }
    },
  },
];

async function goesOn(subject: StoreSubject): Promise<void> {
  const record = await insertNew(subject.store, inProgress(subject));
  await stands([await subject.another()], record, "a record that was inserted afterwards");
}
