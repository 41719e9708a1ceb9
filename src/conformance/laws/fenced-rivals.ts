import { fail } from "node:assert/strict";
import { seen } from "../../core/transition.ts";
import type { Ground } from "../../stores/store.ts";
import { freshIdentity, inProgress, released } from "../draft.ts";
import { insertNew } from "../expectation.ts";
import {
  claimable,
  claimableNothing,
  claimableVersion,
  everyClaimable,
  everyGround,
  heldVersion,
  isFree,
  isRefused,
  leftNothing,
  mustBeCommitted,
  mustBeRefused,
  type Standpoint,
  workOf,
} from "../ground.ts";
import { same } from "../same.ts";
import { type StoreLaw, type StoreSubject, transactional } from "../subject.ts";
import { commitWith, fence, rollback, settled, transact } from "../unit.ts";
import { atOnce, two } from "./simultaneous.ts";

/** What a unit on a ground promises while others are after the same record. */
export const rivalLaws: readonly StoreLaw[] = [
  {
    id: "fenced/one-claim-commits",
    promise: "Of sixteen simultaneous claims of one identity one commits; every other is busy or refused.",
    needs: "transactions",
    async check(subject) {
      const { store, other } = await two(subject);
      for (const { name, ground, identity, standing } of await everyClaimable(subject)) {
        const claims = Array.from({ length: 16 }, () => {
          const { write } = claimable(subject, { identity, standing });
          return { ...workOf(subject, write), owner: write.owner };
        });
        const ends = await Promise.all(
          claims.map(({ unit }, n) => fence(n % 2 === 0 ? store : other, ground, unit)),
        );
        const [record = null, ...more] = ends.flatMap((end) => (end.kind === "committed" ? end.record : []));
        same([record === null, more.length], [false, 0], `whether one of 16 units ${name} committed`);
        for (const end of ends) {
          if (end.kind !== "committed" && end.kind !== "busy") mustBeRefused(end, record, `${name} too`);
        }
        for (const { hadEffect, owner } of claims)
          await hadEffect(store, owner === record?.owner, `${name} as one of 16`);
        same((await store.read(identity)).record, record, `the record after 16 units ${name}`);
      }
    },
  },
  {
    id: "fenced/claim-is-busy-at-once",
    promise: "A claim does not wait for an open one: it is busy and not called; other identities go on.",
    needs: "simultaneous transactions",
    async check(subject) {
      const { other } = await two(subject);
      for (const hold of [claiming, tryingToClaim]) {
        for (const claim of await everyClaimable(subject)) {
          await hold(subject, claim, async () => {
            await isBusy(subject, claim);
            const { ground, write } = claimableNothing(subject, freshIdentity(subject));
            const elsewhere = fence(other, ground, workOf(subject, write).unit);
            mustBeCommitted(await atOnce(subject, elsewhere, "a claim elsewhere"), "that claims elsewhere");
          });
          await isFree(subject, claim, "once the other claim was rolled back");
        }
      }
    },
  },
  {
    id: "fenced/held-version-is-busy",
    promise: "A claim does not wait for whoever holds the version that it wants: it is busy and not called.",
    needs: "simultaneous transactions",
    async check(subject) {
      for (const hold of [holding, replacing]) {
        const claim = claimableVersion(subject, await insertNew(subject.store, released(subject)));
        await hold(subject, claim, () => isBusy(subject, claim));
        await isFree(subject, claim, "once whoever held it had rolled back");
      }
    },
  },
  {
    id: "fenced/late-claim-is-refused-at-once",
    promise: "A claim of a version that is gone is refused and not busy, whoever is at the one that stands.",
    needs: "simultaneous transactions",
    async check(subject) {
      const { store } = await two(subject);
      for (const hold of [holding, replacing, claiming, tryingToClaim]) {
        const claim = claimableVersion(subject, await insertNew(store, released(subject)));
        const taken = await fence(store, claim.ground, workOf(subject, claim.write).unit);
        const standing = mustBeCommitted(taken, claim.name);
        await hold(subject, claimableVersion(subject, standing), () =>
          atOnce(subject, isRefused(subject, { ...claim, standing }), "a claim of a version that is gone"),
        );
      }
    },
  },
  {
    id: "fenced/held-waits-and-judges",
    promise:
      "A unit on a held version waits for whoever holds it: refused by a commit, called after a rollback.",
    needs: "simultaneous transactions",
    async check(subject) {
      const { store, other } = await two(subject);
      for (const end of ["commit", "rollback"] as const) {
        const { name, ground, write } = heldVersion(subject, await insertNew(store, inProgress(subject)));
        const repeat = workOf(subject, write);
        const first = await fence(store, ground, function* () {
          const waiting = [fence(other, ground, repeat.unit)];
          yield* settled(subject.pause(50));
          same(repeat.begun(), 0, `how often a unit ${name} was called while another one holds it`);
          return end === "commit" ? commitWith(write, waiting) : rollback(waiting);
        });
        if (first.kind === "refused" || first.kind === "busy") fail(`a unit ${name} was ${first.kind}`);
        const [waited = fail("nothing waited")] = await Promise.all(first.value);
        if (first.kind === "committed") mustBeRefused(waited, first.record, `${name} that waited`);
        else mustBeCommitted(waited, `${name} that waited`);
        await repeat.hadEffect(store, end === "rollback", `${name} that waited for a ${end}`);
      }
    },
  },
  {
    id: "fenced/ground-stays",
    promise:
      "From before a unit is called until it ends nobody else can replace the version that it stands on.",
    needs: "simultaneous transactions",
    async check(subject) {
      const { other } = await two(subject);
      for (const { name, ground, identity, standing } of await everyGround(subject)) {
        if (standing === null) continue;
        const write = inProgress(subject, { identity });
        const replace = () => other.replace(seen(standing), write, "never");
        await during(subject, ground, async () => {
          const { kind } = await atOnce(subject, replace(), "an impatient write");
          same(kind, "locked", `a write on the version of a unit ${name}`);
        });
        same((await replace()).kind, "replaced", `the same write once the unit ${name} had ended`);
      }
    },
  },
  {
    id: "fenced/insert-in-between-is-refused",
    promise: "A claim whose identity was inserted while it ran is refused in the end and keeps nothing.",
    needs: "simultaneous transactions",
    async check(subject) {
      const { store, other } = await two(subject);
      const { name, ground, identity, write } = claimableNothing(subject, freshIdentity(subject));
      const [work, plain] = [workOf(subject, write), inProgress(subject, { identity })];
      const end = await fence(store, ground, function* (within) {
        yield* settled(atOnce(subject, insertNew(other, plain), "an insert where a unit is claiming"));
        return yield* work.unit(within);
      });
      const { record: standing } = await other.read(identity);
      same(standing?.owner, plain.owner, "the owner of a record that was inserted in between");
      mustBeRefused(end, standing, name);
      await leftNothing(subject, { identity, standing }, work, name);
    },
  },
];

/** Does something while somebody is at a record, who leaves no trace in the end. */
type Hold = (subject: StoreSubject, at: Standpoint, meanwhile: () => Promise<void>) => Promise<void>;

const claiming: Hold = (subject, { ground }, meanwhile) => during(subject, ground, meanwhile);

const tryingToClaim: Hold = (subject, { identity }, meanwhile) =>
  transact(transactional(subject.store), function* (within) {
    same(yield* settled(within.tryClaim(identity)), true, "whether a free identity could be claimed");
    yield* settled(meanwhile());
    return rollback(undefined);
  });

const holding: Hold = (subject, { ground: { seen } }, meanwhile) => {
  if (seen === null) fail("there is no version to be held");
  return during(subject, { kind: "held", seen }, meanwhile);
};

const replacing: Hold = (subject, { ground: { seen }, write }, meanwhile) =>
  transact(transactional(subject.store), function* (within) {
    if (seen === null) fail("there is no version to be replaced");
    same((yield* settled(within.replace(seen, write, "wait"))).kind, "replaced", "a replacement");
    yield* settled(meanwhile());
    return rollback(undefined);
  });

/** Does something while a unit runs on a ground that holds. */
async function during(subject: StoreSubject, ground: Ground, meanwhile: () => Promise<void>): Promise<void> {
  const { kind } = await fence(transactional(subject.store), ground, function* () {
    yield* settled(meanwhile());
    return rollback(undefined);
  });
  same(kind, "rolled_back", "the end of a unit that rolls back");
}

async function isBusy(subject: StoreSubject, { name, ground, write }: Standpoint): Promise<void> {
  const { other } = await two(subject);
  const work = workOf(subject, write);
  const { kind } = await atOnce(subject, fence(other, ground, work.unit), `a unit ${name}`);
  same(kind, "busy", `the end of a unit ${name} while somebody is at the record`);
  same(work.begun(), 0, `how often a unit ${name} was called while somebody is at the record`);
}
