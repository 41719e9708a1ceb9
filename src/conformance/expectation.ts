import { fail, ok } from "node:assert/strict";
import { type KeyRecord, type RecordWrite, type Seen, stamp } from "../core/record.ts";
import type { Replaced, Store } from "../stores/store.ts";
import { same } from "./same.ts";

/** The record of a write: in the state that the write named. */
export type RecordOf<Write extends RecordWrite> = Extract<KeyRecord, { readonly state: Write["state"] }>;

/** Inserts where nothing stands, and hands back the record. */
export async function insertNew<Write extends RecordWrite>(
  store: Store,
  write: Write,
): Promise<RecordOf<Write>> {
  const { inserted, record } = await store.insert(write);
  ok(inserted, "an insert where nothing stood was not counted as the one that made the record");
  if (!isOf(record, write)) fail(`a record was written as ${write.state}, and stands as ${record.state}`);
  return record;
}

/** Replaces the version that was seen, waiting for locks, and hands back the new one; fails where it is refused. */
export async function replaceSeen<Write extends RecordWrite>(
  store: Store,
  { identity, owner, revision }: Seen,
  write: Write,
): Promise<RecordOf<Write>> {
  const replaced = await store.replace({ identity, owner, revision }, write, "wait");
  if (replaced.kind !== "replaced")
    fail(`a write on the version that stands was refused as ${replaced.kind}`);
  if (!isOf(replaced.record, write))
    fail(`written as ${write.state}, and stands as ${replaced.record.state}`);
  return replaced.record;
}

/** Fails unless the write was refused and `standing` is handed back as the record that stands. */
export function mustBeStale(replaced: Replaced, standing: KeyRecord | null, what: string): void {
  if (replaced.kind !== "stale") fail(`${what}: expected it to be stale, but it was ${replaced.kind}`);
  same(replaced.record, standing, `${what}: the record handed back is not the one that stands`);
}

/** Fails unless the record is what the write said; its times must all have been named as instants. */
export function holds(record: KeyRecord | null, write: RecordWrite, what: string): KeyRecord {
  if (record === null) fail(`${what}: there is no record`);
  const { attempt, revision, updatedAt } = record;
  if (write.attempt !== "next") same(attempt, write.attempt, `${what}: the attempt that the write named`);
  same(record, stamp(write, { attempt, revision, updatedAt }), what);
  return record;
}

/** Fails unless the record stands just so, whichever way one looks at it. */
export async function stands(stores: readonly Store[], record: KeyRecord, what: string): Promise<void> {
  for (const store of stores) same((await store.read(record.identity)).record, record, what);
}

/** Fails unless two instants are the same as far as the store's clock can tell. */
export function sameInstant(store: Store, actual: number | null, expected: number, what: string): void {
  const apart = actual === null ? Number.POSITIVE_INFINITY : Math.abs(actual - expected);
  ok(apart <= store.capabilities.timePrecisionMs, `${what}: expected ${expected}, got ${actual}`);
}

function isOf<Write extends RecordWrite>(record: KeyRecord, write: Write): record is RecordOf<Write> {
  return record.state === write.state;
}
