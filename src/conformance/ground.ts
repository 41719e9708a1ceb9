import { fail } from "node:assert/strict";
import type { Identity, KeyRecord } from "../core/record.ts";
import { seen } from "../core/transition.ts";
import type { Fenced, Ground, Store, Within } from "../stores/store.ts";
import { type CompletedWrite, completed, freshIdentity, inProgress, released } from "./draft.ts";
import { insertNew, stands } from "./expectation.ts";
import { same } from "./same.ts";
import { type StoreSubject, transactional } from "./subject.ts";
import { commitWith, type FencedUnit, fence, settled } from "./unit.ts";
import { at } from "./variety.ts";

/** What stands under an identity; `null` where nothing does. */
export interface Standing {
  readonly identity: Identity;
  readonly standing: KeyRecord | null;
}

/** A ground that holds, and the write that a unit on it may end with. */
export interface Standpoint extends Standing {
  readonly name: string;
  readonly ground: Ground;
  readonly write: CompletedWrite;
}

/** One of each ground that a unit may stand on, none of which anybody has used before. */
export async function everyGround(subject: StoreSubject): Promise<readonly Standpoint[]> {
  const held = heldVersion(subject, await insertNew(subject.store, inProgress(subject)));
  return [held, ...(await everyClaimable(subject))];
}

/** One of each ground that a unit may claim. */
export async function everyClaimable(subject: StoreSubject): Promise<readonly Standpoint[]> {
  const version = await insertNew(subject.store, released(subject));
  return [claimableVersion(subject, version), claimableNothing(subject, freshIdentity(subject))];
}

/** A version that the unit's own attempt holds. */
export function heldVersion(subject: StoreSubject, standing: KeyRecord): Standpoint {
  const { identity, owner, attempt } = standing;
  return {
    ...{ name: "on a version that is held", identity, standing },
    ground: { kind: "held", seen: seen(standing) },
    write: completed(subject, { ...TIMES, identity, owner, attempt }),
  };
}

/** Whatever stands there, to be claimed. */
export function claimable(subject: StoreSubject, { identity, standing }: Standing): Standpoint {
  return standing === null ? claimableNothing(subject, identity) : claimableVersion(subject, standing);
}

/** A version that may be claimed in its place. */
export function claimableVersion(subject: StoreSubject, standing: KeyRecord): Standpoint {
  const { identity } = standing;
  return {
    ...{ name: "that claims a version", identity, standing },
    ground: { kind: "claimable", identity, seen: seen(standing) },
    write: completed(subject, { ...TIMES, identity }),
  };
}

/** An identity that may be claimed since nothing stands under it. */
export function claimableNothing(subject: StoreSubject, identity: Identity): Standpoint {
  return {
    ...{ name: "that claims where nothing stands", identity, standing: null },
    ground: { kind: "claimable", identity, seen: null },
    write: completed(subject, { ...TIMES, identity }),
  };
}

/** Named as instants, so that the whole of a record can be compared. */
const TIMES = { createdAt: at(1), claimedAt: at(2), retainUntil: at(3) };

/** A unit with an effect, which is a record of its own, and with a write at its end. */
export interface Work {
  readonly unit: (within: Within) => FencedUnit<typeof WORKED>;
  /** How often it was called. */
  readonly begun: () => number;
  /** Fails unless the effect is there, or is not. */
  readonly hadEffect: (store: Store, expected: boolean, what: string) => Promise<void>;
}

/** The value of such a unit. */
export const WORKED = "worked";

/** A unit that nobody has run yet. */
export function workOf(subject: StoreSubject, write: CompletedWrite): Work {
  const effect = inProgress(subject);
  let begun = 0;
  return {
    unit: function* (within) {
      begun++;
      yield* settled(within.insert(effect));
      return commitWith(write, WORKED);
    },
    begun: () => begun,
    hadEffect: async (store, expected, what) => {
      const { record } = await store.read(effect.identity);
      same(record?.owner, expected ? effect.owner : undefined, `the owner of the effect of a unit ${what}`);
    },
  };
}

/** Fails unless the unit committed; hands back the record that it wrote. */
export function mustBeCommitted(fenced: Fenced<unknown>, what: string): KeyRecord {
  if (fenced.kind !== "committed") fail(`a unit ${what}: expected it to commit, but it was ${fenced.kind}`);
  return fenced.record;
}

/** Fails unless the unit was refused and `standing` is handed back as the record that stands. */
export function mustBeRefused(fenced: Fenced<unknown>, standing: KeyRecord | null, what: string): void {
  if (fenced.kind !== "refused") fail(`a unit ${what}: expected a refusal, but it was ${fenced.kind}`);
  same(fenced.record, standing, `a unit ${what}: the record handed back is not the one that stands`);
}

/** Fails unless every handle refuses a unit on this ground before it begins, and everything stays as it is. */
export async function isRefused(
  subject: StoreSubject,
  { name, ground, identity, standing, write }: Standpoint,
): Promise<void> {
  for (const handle of [subject.store, await subject.another()]) {
    const work = workOf(subject, write);
    mustBeRefused(await fence(transactional(handle), ground, work.unit), standing, name);
    same(work.begun(), 0, `how often a unit ${name} was called`);
    await leftNothing(subject, { identity, standing }, work, name);
  }
}

/** Fails unless no handle finds anything of the unit, and the store goes on. */
export async function leftNothing(
  subject: StoreSubject,
  { identity, standing }: Standing,
  work: Work,
  what: string,
): Promise<void> {
  for (const handle of [subject.store, await subject.another()]) {
    const { record } = await handle.read(identity);
    same(record, standing, `the record after a unit ${what}`);
    await work.hadEffect(handle, false, what);
  }
  await goesOn(subject);
}

/** Fails unless what the first handle writes is there for the second one. */
export async function goesOn(subject: StoreSubject): Promise<void> {
  const record = await insertNew(subject.store, inProgress(subject));
  await stands([await subject.another()], record, "another record, inserted afterwards");
}

/** Fails unless the second handle may claim what stands there, at once: nobody holds it any more. */
export async function isFree(
  subject: StoreSubject,
  { identity, standing }: Standing,
  what: string,
): Promise<void> {
  const claim = standing === null ? claimableNothing(subject, identity) : claimableVersion(subject, standing);
  const work = workOf(subject, claim.write);
  const other = transactional(await subject.another());
  const record = mustBeCommitted(await fence(other, claim.ground, work.unit), `that claims it ${what}`);
  await stands([subject.store], record, `the record after a unit that claims it ${what}`);
}
