import type { Identity, KeyRecord } from "../core/record.ts";
import { due, type Flow } from "../engine/command.ts";
import type { DueQuery, Listed } from "../stores/store.ts";

/** The records that a tick has met: each is handled once in it, and one that could not be moved hides no other. */
export interface Met {
  readonly has: (record: KeyRecord) => boolean;
  readonly add: (record: KeyRecord) => void;
  /** How many of them stood in front of the others when it was listed last. */
  inFront: number;
}

export function nobodyMet(): Met {
  const names = new Set<string>();
  return {
    has: ({ identity }) => names.has(nameOf(identity)),
    add: ({ identity }) => void names.add(nameOf(identity)),
    inFront: 0,
  };
}

function nameOf(identity: Identity): string {
  const operation = identity.kind === "run" ? identity.operation : null;
  return JSON.stringify([operation, identity.principal, identity.key]);
}

/** What to list. */
export interface Wanted<Mine extends KeyRecord> {
  readonly query: (limit: number) => DueQuery;
  /** Records that are somebody else's count as met. */
  readonly mine: (record: KeyRecord) => record is Mine;
  readonly limit: number;
}

/**
 * Up to `limit` records that are due and that this tick has not met. However many that it has met stand in front (up to
 * MOST_ASKED), they are listed along and passed over.
 */
export function* listUnmet<Mine extends KeyRecord>(
  { query, mine, limit }: Wanted<Mine>,
  met: Met,
): Flow<{ readonly records: readonly Mine[] } & Pick<Listed, "damaged">> {
  for (;;) {
    const asked = Math.min(MOST_ASKED, limit + 2 * met.inFront);
    const { records, damaged } = yield* due(query(asked));
    const unmet: Mine[] = [];
    for (const record of records) {
      if (met.has(record)) continue;
      if (mine(record)) unmet.push(record);
      else met.add(record);
    }
    met.inFront = records.length - unmet.length;
    const all = records.length + damaged < asked || asked === MOST_ASKED;
    if (unmet.length > 0 || all) return { records: unmet.slice(0, limit), damaged };
  }
}

const MOST_ASKED = 10_000;
