import type { KeyRecord } from "../core/record.ts";
import { due, type Flow } from "../engine/command.ts";
import type { DueQuery, Listed } from "../stores/store.ts";

/** The versions that a tick has met and could not move, so that they hide nothing that stands behind them. */
export interface Met {
  readonly has: (record: KeyRecord) => boolean;
  readonly add: (record: KeyRecord) => void;
  readonly count: () => number;
}

export function metVersions(): Met {
  const versions = new Set<string>();
  const nameOf = ({ owner, revision }: KeyRecord) => `${owner} ${revision}`;
  return {
    has: (record) => versions.has(nameOf(record)),
    add: (record) => void versions.add(nameOf(record)),
    count: () => versions.size,
  };
}

/** What to list. */
export interface Wanted<Kept extends KeyRecord> {
  readonly query: (limit: number) => DueQuery;
  /** Records that are somebody else's count as met. */
  readonly mine: (record: KeyRecord) => record is Kept;
  readonly limit: number;
}

/**
 * Up to `limit` records that are due and that this tick has not met. However many of those it could not move stand in
 * front (up to MOST_ASKED), they are listed along and passed over.
 */
export function* listUnmet<Kept extends KeyRecord>(
  { query, mine, limit }: Wanted<Kept>,
  met: Met,
): Flow<{ readonly records: readonly Kept[] } & Pick<Listed, "damaged">> {
  for (;;) {
    const asked = Math.min(MOST_ASKED, limit + 2 * met.count());
    const { records, damaged } = yield* due(query(asked));
    const unmet: Kept[] = [];
    for (const record of records) {
      if (met.has(record)) continue;
      if (mine(record)) unmet.push(record);
      else met.add(record);
    }
    const all = records.length + damaged < asked || asked === MOST_ASKED;
    if (unmet.length > 0 || all) return { records: unmet.slice(0, limit), damaged };
  }
}

const MOST_ASKED = 10_000;
