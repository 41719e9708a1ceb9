import { run, type SqliteConnection } from "./connection.ts";
import { isResistance } from "./faults.ts";
import { ENDABLE, type EndedPlace, listEnded } from "./lists.ts";
import { NOW } from "./records.ts";

/** How the store runs what a purge is made of. */
export interface Purging {
  read<T>(work: (connection: SqliteConnection) => T): Promise<T>;
  /** In one short transaction of its own. */
  write<T>(work: (connection: SqliteConnection) => T): Promise<T>;
}

/**
 * Removes ended records in short batches, or leaves their tombstones. Rows that something still refers to stay, and the
 * next call goes on behind them: however many resist, those after them have their turn.
 */
export function purger({ read, write }: Purging): (limit: number) => Promise<number> {
  let resumeAfter = START;
  return async (limit) => {
    let after = resumeAfter;
    let [removed, resisted, rounds] = [0, 0, after === START ? 1 : 0];
    while (removed < limit && resisted < RESISTING_AT_A_TIME) {
      const batchSize = Math.min(BATCH, limit - removed);
      const places = await read((connection) => listEnded(connection, { after, limit: batchSize }));
      const gone = await remove(write, places);
      removed += gone;
      resisted += places.length - gone;
      after = places.at(-1) ?? after;
      if (places.length === batchSize) continue;
      after = START;
      rounds += 1;
      if (rounds > 1) break;
    }
    resumeAfter = resisted === 0 ? START : after;
    return removed;
  };
}

const START: EndedPlace = { retainUntil: Number.MIN_SAFE_INTEGER, number: 0 };

/** Deletes that one transaction may hold the write lock for. */
const BATCH = 100;

/** Rows that a single purge tries in vain; an idle worker must not walk a large table at every tick. */
const RESISTING_AT_A_TIME = 1_000;

const REMOVE = `DELETE FROM oncekey_records WHERE rowid = ? AND ${ENDABLE} AND retain_until <= ${NOW}
  AND (tombstone_ms IS NULL OR answer_digest IS NULL OR retain_until + tombstone_ms <= ${NOW})`;

/** A tombstone keeps what names the record; its `retain_until` is its own end. */
const BURY = `UPDATE oncekey_records SET revision = revision + 1, retain_until = retain_until + tombstone_ms,
  fingerprint_salt = x'', fingerprint_raw = x'', fingerprint_canonical = x'',
  steps = CAST('[]' AS BLOB), reference = NULL, answer_headers = NULL, answer_body = NULL, answer_digest = NULL
  WHERE rowid = ? AND state IN ('completed', 'failed_permanent') AND retain_until <= ${NOW}
  AND tombstone_ms IS NOT NULL AND answer_digest IS NOT NULL`;

async function remove(write: Purging["write"], places: readonly EndedPlace[]): Promise<number> {
  if (places.length === 0) return 0;
  try {
    return await write((connection) =>
      places.reduce((gone, place) => gone + removeOne(connection, place), 0),
    );
  } catch (error) {
    if (!isResistance(error)) throw error;
    if (places.length === 1) return 0;
  }
  // A deferred foreign key resists only at the commit, and does not say which row it was.
  let gone = 0;
  for (const place of places) gone += await remove(write, [place]);
  return gone;
}

/** How many went: itself, or all of it but its tombstone. */
function removeOne(connection: SqliteConnection, { number }: EndedPlace): number {
  try {
    return run(connection, REMOVE, [number]) || run(connection, BURY, [number]);
  } catch (error) {
    if (isResistance(error)) return 0;
    throw error;
  }
}
