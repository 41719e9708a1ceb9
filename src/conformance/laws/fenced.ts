import { ok, rejects } from "node:assert/strict";
import type { Identity, KeyRecord } from "../../core/record.ts";
import { OncekeyError, RecordCorrupt } from "../../errors.ts";
import type { Store } from "../../stores/store.ts";
import { completed, freshIdentity, freshWord, inProgress, released } from "../draft.ts";
import { holds, insertNew, replaceSeen, stands } from "../expectation.ts";
import {
  claimableNothing,
  claimableVersion,
  everyGround,
  goesOn,
  isFree,
  isRefused,
  leftNothing,
  mustBeCommitted,
  mustBeRefused,
  type Standpoint,
  WORKED,
  workOf,
} from "../ground.ts";
import { same } from "../same.ts";
import { type StoreLaw, type StoreSubject, transactional } from "../subject.ts";
import { commitWith, fence, rollback, settled, transact } from "../unit.ts";

/** What a unit on a ground promises while there is no other. Two records stand for record and effect. */
export const fencedLaws: readonly StoreLaw[] = [
  {
    id: "fenced/commit-keeps-all",
    promise: "A unit whose ground holds commits its write as the next version, and with it whatever it did.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      for (const { name, ground, standing, write } of await everyGround(subject)) {
        const work = workOf(subject, write);
        const end = await fence(store, ground, work.unit);
        const record = holds(mustBeCommitted(end, name), write, `what a unit ${name} wrote`);
        same(record.revision, (standing?.revision ?? 0) + 1, `the revision that a unit ${name} wrote`);
        same("value" in end ? end.value : null, WORKED, `the value of a unit ${name}`);
        await stands([store, await subject.another()], record, `the record after a unit ${name}`);
        await work.hadEffect(store, true, name);
      }
    },
  },
  {
    id: "fenced/rollback-keeps-nothing",
    promise: "A unit that rolls back keeps nothing and holds nothing on, and its value is handed back.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      for (const { name, ground, write, ...what } of await everyGround(subject)) {
        const work = workOf(subject, write);
        const end = await fence(store, ground, function* (within) {
          return rollback((yield* work.unit(within)).value);
        });
        same(end, { kind: "rolled_back", value: WORKED }, `the end of a unit ${name} and rolls back`);
        await leftNothing(subject, what, work, `${name} and rolls back`);
        await isFree(subject, what, "after a rollback");
      }
    },
  },
  {
    id: "fenced/throw-keeps-nothing",
    promise: "A unit that throws keeps nothing and holds nothing on, and its own error comes out.",
    needs: "transactions",
    async check(subject) {
      const store = transactional(subject.store);
      const failure = new Error("the unit failed");
      for (const { name, ground, write, ...what } of await everyGround(subject)) {
        const work = workOf(subject, write);
        const failed = fence(store, ground, function* (within) {
          yield* work.unit(within);
          throw failure;
        });
        await rejects(failed, (error) => error === failure, `a unit ${name} and throws`);
        await leftNothing(subject, what, work, `${name} and throws`);
        await isFree(subject, what, "after a throw");
      }
    },
  },
  {
    id: "fenced/runs-the-unit-once",
    promise: "A unit whose ground holds is called once.",
    needs: "transactions",
    async check(subject) {
      for (const { name, ground, write } of await everyGround(subject)) {
        const work = workOf(subject, write);
        await fence(transactional(subject.store), ground, work.unit);
        same(work.begun(), 1, `how often a unit ${name} was called`);
      }
    },
  },
  {
    id: "fenced/another-version-is-refused",
    promise: "A unit is refused with what stands, and not called, where that is another version by now.",
    needs: "transactions",
    async check(subject) {
      const other = await subject.another();
      for (const { name, standing, ...asked } of await everyGround(subject)) {
        const { identity, write } = asked;
        const next = inProgress(subject, { identity, owner: standing?.owner ?? write.owner });
        const now = await (standing === null ? insertNew(other, next) : replaceSeen(other, standing, next));
        await isRefused(subject, { ...asked, name: `${name} which is gone`, standing: now });
      }
    },
  },
  {
    id: "fenced/owner-and-revision-both-count",
    promise: "A unit is refused with what stands where only the owner or only the revision is the one seen.",
    needs: "transactions",
    async check(subject) {
      for (const standpoint of await everyGround(subject)) {
        const { name, ground, identity } = standpoint;
        if (ground.seen === null) continue;
        const { owner, revision } = ground.seen;
        const otherOwner = { ...ground, seen: { identity, owner: `not-${owner}`, revision } };
        const otherRevision = { ...ground, seen: { identity, owner, revision: revision + 1 } };
        await isRefused(subject, { ...standpoint, name: `${name} of another owner`, ground: otherOwner });
        await isRefused(subject, { ...standpoint, name: `${name}, one later`, ground: otherRevision });
      }
    },
  },
  {
    id: "fenced/no-record-is-refused",
    promise: "A unit on a version is refused, is not called and makes no record where none stands.",
    needs: "transactions",
    async check(subject) {
      const identity = freshIdentity(subject);
      const seen = { identity, owner: `owner-${freshWord(subject)}`, revision: 1 };
      const nothing = { identity, standing: null, write: completed(subject, { identity }) };
      for (const ground of [{ kind: "held", seen } as const, { kind: "claimable", identity, seen } as const])
        await isRefused(subject, { ...nothing, name: `on no record (${ground.kind})`, ground });
    },
  },
  {
    id: "fenced/own-change-is-refused",
    promise: "A unit that puts another version on its ground is refused in the end and keeps nothing.",
    needs: "transactions",
    async check(subject) {
      for (const { name, ground, write, ...what } of await everyGround(subject)) {
        const { identity, standing } = what;
        const change = inProgress(subject, { identity, owner: standing?.owner ?? write.owner });
        const work = workOf(subject, write);
        const end = await fence(transactional(subject.store), ground, function* (within) {
          const { seen } = ground;
          yield* settled(seen === null ? within.insert(change) : within.replace(seen, change, "wait"));
          return yield* work.unit(within);
        });
        mustBeRefused(end, standing, `${name} and changes it`);
        await leftNothing(subject, what, work, `${name} and changes it`);
        await isFree(subject, what, "after a refusal");
      }
    },
  },
  {
    id: "fenced/repeat-is-refused",
    promise:
      "A unit repeated because its commit's reply was lost is refused with its own record, not called.",
    needs: "transactions",
    async check(subject) {
      for (const { name, ground, write } of await everyGround(subject)) {
        const work = workOf(subject, write);
        const record = mustBeCommitted(await fence(transactional(subject.store), ground, work.unit), name);
        for (const handle of [subject.store, await subject.another()]) {
          mustBeRefused(await fence(transactional(handle), ground, work.unit), record, `${name}, repeated`);
        }
        same(work.begun(), 1, `how often a unit ${name} was called that was repeated`);
        same(record.writeId, write.writeId, `the write id of a unit ${name} that was repeated`);
        await stands([subject.store], record, `the record after a unit ${name} that was repeated`);
      }
    },
  },
  {
    id: "fenced/claim-has-a-new-number",
    promise:
      "A claim's number is larger than that of every record before, purged ones too; others have none.",
    needs: "transactions",
    async check(subject) {
      const identity = freshIdentity(subject);
      const last = { number: (await insertNew(subject.store, inProgress(subject))).attempt };
      const grows = ({ attempt }: KeyRecord, what: string) => {
        ok(
          attempt > last.number,
          `the number of ${what} is ${attempt}, and there was a ${last.number} before`,
        );
        last.number = attempt;
      };
      for (const handle of [subject.store, await subject.another(), subject.store]) {
        const claimed = await numbered(handle, claimableNothing(subject, identity));
        grows(claimed, "a claim where nothing stands");
        const taken = await numbered(handle, claimableVersion(subject, claimed));
        grows(taken, "a claim of a version");
        const ending = completed(subject, { identity, retainUntil: PAST });
        grows(await replaceSeen(handle, taken, ending), "a plain takeover");
        await gone(subject, identity);
      }
      const [held] = await everyGround(subject);
      if (held !== undefined) await numbered(subject.store, held);
    },
  },
  {
    id: "fenced/too-large-keeps-nothing",
    promise:
      "A unit whose write is larger than the store keeps is told so, keeps nothing and holds nothing on.",
    needs: "transactions",
    async check(subject) {
      const size = subject.store.capabilities.maxRecordBytes + 1;
      if (size > LARGEST_TRIED) return;
      const answer = { status: 200, headers: [], body: new Uint8Array(size) };
      const grounds = await everyGround(subject);
      for (const { name, ground, write, ...what } of size > LARGE ? grounds.slice(0, 1) : grounds) {
        const work = workOf(subject, { ...write, answer });
        const failed = fence(transactional(subject.store), ground, work.unit);
        await rejects(failed, isTooLarge, `a unit ${name} and writes too much`);
        await leftNothing(subject, what, work, `${name} and writes too much`);
        await isFree(subject, what, "after too large a write");
      }
    },
  },
  {
    id: "fenced/damage-is-said",
    promise: "A claim that meets a damaged record is told so, is not called and holds nothing on.",
    needs: "transactions",
    async check(subject) {
      if (subject.damage === undefined) return;
      const record = await insertNew(subject.store, released(subject));
      const version = claimableVersion(subject, record);
      const { identity } = version;
      const seen = { identity, owner: `not-${record.owner}`, revision: record.revision };
      const late = { ...version, name: "on a version that is gone", ground: { kind: "held", seen } } as const;
      await subject.damage(identity);
      for (const { name, ground, write } of [version, late, claimableNothing(subject, identity)]) {
        const work = workOf(subject, write);
        await rejects(
          fence(transactional(subject.store), ground, work.unit),
          RecordCorrupt,
          `a unit ${name}`,
        );
        same(work.begun(), 0, `how often a unit ${name} was called that met a damaged record`);
        await goesOn(subject);
        const other = transactional(await subject.another());
        const claimed = await transact(other, function* (within) {
          return rollback(yield* settled(within.tryClaim(identity)));
        });
        same(claimed, true, `whether the record could be claimed after a unit ${name}`);
      }
    },
  },
];

/** So many bytes take seconds each time. */
const LARGE = 268_435_456;

/** More bytes would ask for the machine's limits and not for the store's. */
const LARGEST_TRIED = 1_073_741_824;

const PAST = { at: 1_000_000_000_000 };

function isTooLarge(error: unknown): boolean {
  return error instanceof OncekeyError && error.code === "record_too_large";
}

/** Commits a unit whose write names the number that it was given, if it is a claim. */
async function numbered(handle: Store, { name, ground, write }: Standpoint): Promise<KeyRecord> {
  const end = await fence(transactional(handle), ground, function* (within, number) {
    yield* settled(within.read(write.identity));
    return commitWith({ ...write, attempt: number ?? write.attempt }, number);
  });
  const record = mustBeCommitted(end, name);
  const given = "value" in end ? end.value : null;
  same(given, ground.kind === "held" ? null : record.attempt, `the number given to a unit ${name}`);
  return record;
}

/** Purges until the identity is gone, or waits for the store to drop it by itself. */
async function gone(subject: StoreSubject, identity: Identity): Promise<void> {
  for (let looks = 0; looks < 400; looks++) {
    await subject.store.purge(1_000);
    if ((await subject.store.read(identity)).record === null) return;
    await subject.pause(25);
  }
  throw new Error("A record whose retention was over never went.");
}
