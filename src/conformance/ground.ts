import { fail } from "node:assert/strict";
import type { Identity, KeyRecord, RecordWrite } from "../core/record.ts";
import { seen } from "../core/transition.ts";
import type { Fenced, Ground, Store, Within } from "../stores/store.ts";
import { completed, freshIdentity, inProgress, released } from "./draft.ts";
import { insertNew, stands } from "./expectation.ts";
import { same } from "./same.ts";
import { type StoreSubject, transactional } from "./subject.ts";
import { commitWith, type FencedUnit, fence, settled } from "./unit.ts";
import { at } from "./variety.ts";

/** A ground that holds, what stands on it, and the write that a unit on it may end with. */
export interface Standpoint {
  readonly name: string;
  readonly ground: Ground;
  readonly identity: Identity;
  readonly standing: KeyRecord | null;
  readonly write: RecordWrite;
}

/** One of each ground that a unit may stand on, none of which anybody has used before. */
export async function everyGround(subject: StoreSubject): Promise<readonly Standpoint[]> {
  const { store } = subject;
  const held = await insertNew(store, inProgress(subject));
  return [
    {
      ...{ name: "on a version that it holds", identity: held.identity, standing: held },
      ground: { kind: "held", seen: seen(held) },
      write: ending(subject, held.identity, { owner: held.owner, attempt: held.attempt }),
    },
    claimableVersion(subject, await insertNew(store, released(subject))),
    claimableNothing(subject, freshIdentity(subject)),
  ];
}

/** A version that may be claimed in its place. */
export function claimableVersion(subject: StoreSubject, standing: KeyRecord): Standpoint {
  const { identity } = standing;
  return {
    ...{ name: "that claims a version", identity, standing },
    ground: { kind: "claimable", identity, seen: seen(standing) },
    write: ending(subject, identity),
  };
}

/** An identity that may be claimed since nothing stands under it. */
export function claimableNothing(subject: StoreSubject, identity: Identity): Standpoint {
  return {
    ...{ name: "that claims where nothing stands", identity, standing: null },
    ground: { kind: "claimable", identity, seen: null },
    write: ending(subject, identity),
  };
}

/** A unit with an effect, which is a record of its own, and with a write at its end. */
export interface Work {
  readonly unit: (within: Within) => FencedUnit<string>;
  /** How often it was called. */
  readonly begun: () => number;
  /** Fails unless the effect was kept exactly as often as said. */
  readonly hadEffect: (store: Store, times: 0 | 1, what: string) => Promise<void>;
}

/** The value of such a unit. */
export const WORKED = "worked";

export function workOf(subject: StoreSubject, write: RecordWrite): Work {
  const effect = inProgress(subject);
  let begun = 0;
  return {
    unit: function* (within) {
      begun++;
      yield* settled(within.insert(effect));
      return commitWith(write, WORKED);
    },
    begun: () => begun,
    hadEffect: async (store, times, what) => {
      const { record } = await store.read(effect.identity);
      same(record?.owner, times === 0 ? undefined : effect.owner, `${what}: its effect`);
    },
  };
}

/** Fails unless the unit committed; hands back the record that it wrote. */
export function mustBeCommitted(fenced: Fenced<unknown>, what: string): KeyRecord {
  if (fenced.kind !== "committed") fail(`a unit ${what}: expected a commit, but it was ${fenced.kind}`);
  return fenced.record;
}

/** Fails unless the unit was refused and `standing` is handed back as the record that stands. */
export function mustBeRefused(fenced: Fenced<unknown>, standing: KeyRecord | null, what: string): void {
  if (fenced.kind !== "refused") fail(`a unit ${what}: expected a refusal, but it was ${fenced.kind}`);
  same(fenced.record, standing, `a unit ${what}: the record handed back is not the one that stands`);
}

/** Fails unless a unit on this ground is refused by every handle before it begins, and everything stays as it is. */
export async function refusesBefore(
  subject: StoreSubject,
  { ground, identity, standing, write }: Omit<Standpoint, "name">,
  what: string,
): Promise<void> {
  const handles = [subject.store, await subject.another()];
  for (const handle of handles) {
    const work = workOf(subject, write);
    mustBeRefused(await fence(transactional(handle), ground, work.unit), standing, what);
    same(work.begun(), 0, `a unit ${what}: how often it was called`);
    await work.hadEffect(handle, 0, `a unit ${what}`);
  }
  await standsStill(handles, identity, standing, `the record after a unit ${what}`);
}

/** Fails unless what stands under the identity is this record, or nothing, whichever way one looks at it. */
export async function standsStill(
  stores: readonly Store[],
  identity: Identity,
  standing: KeyRecord | null,
  what: string,
): Promise<void> {
  if (standing !== null) return stands(stores, standing, what);
  for (const store of stores) same((await store.read(identity)).record, null, what);
}

/** Fails unless what stands there can be claimed at once through a second handle: nobody holds it any more. */
export async function isFree(
  subject: StoreSubject,
  { identity, standing }: Pick<Standpoint, "identity" | "standing">,
  what: string,
): Promise<void> {
  const { ground, write } =
    standing === null ? claimableNothing(subject, identity) : claimableVersion(subject, standing);
  const work = workOf(subject, write);
  const other = transactional(await subject.another());
  mustBeCommitted(await fence(other, ground, work.unit), `that claims ${what}`);
  await work.hadEffect(subject.store, 1, `a unit that claims ${what}`);
}

/** The end of a unit, its times named as instants so that the whole of it can be compared. */
function ending(
  subject: StoreSubject,
  identity: Identity,
  change: { readonly owner?: string; readonly attempt?: number } = {},
): RecordWrite {
  return completed(subject, { identity, createdAt: at(1), claimedAt: at(2), retainUntil: at(3), ...change });
}
