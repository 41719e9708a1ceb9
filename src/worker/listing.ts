import type { Identity, KeyRecord } from "../core/record.ts";
import { due, type Flow } from "../engine/command.ts";
import type { DueKind, DuePlace, Listed } from "../stores/store.ts";

/** How far a tick has come in what is due, and whom it has met: each is handled once in it, and hides no other. */
export interface Met {
  readonly has: (record: KeyRecord) => boolean;
  readonly add: (record: KeyRecord) => void;
  /** Behind whom the next page begins. */
  after: DuePlace | null;
  /** Nothing is behind the last page. */
  atEnd: boolean;
}

export function nobodyMet(): Met {
  const names = new Set<string>();
  return {
    has: ({ identity }) => names.has(nameOf(identity)),
    add: ({ identity }) => void names.add(nameOf(identity)),
    after: null,
    atEnd: false,
  };
}

function nameOf(identity: Identity): string {
  const operation = identity.kind === "run" ? identity.operation : null;
  return JSON.stringify([operation, identity.principal, identity.key]);
}

/** What to list. */
export interface Wanted<Mine extends KeyRecord> {
  readonly query: DueKind;
  /** Records that are somebody else's are passed over. */
  readonly mine: (record: KeyRecord) => record is Mine;
  /** Records asked for at a time. */
  readonly limit: number;
  /** True once the tick's time is up. */
  readonly isOver: () => boolean;
}

/**
 * The next records that are due and that this tick has not met; none where there are none left, or the time is up. However
 * many others stand in front, they are passed page by page, each page twice as long as the one before.
 */
export function* listUnmet<Mine extends KeyRecord>(
  { query, mine, limit, isOver }: Wanted<Mine>,
  met: Met,
): Flow<{ readonly records: readonly Mine[] } & Pick<Listed, "damaged">> {
  let damaged = 0;
  for (let asked = limit; !met.atEnd; asked = Math.max(limit, Math.min(2 * asked, MOST_ASKED))) {
    const place = met.after === null ? {} : { after: met.after };
    const page = yield* due({ ...query, limit: asked, ...place });
    damaged += page.damaged;
    met.atEnd = page.records.length < asked;
    met.after = placeOf(page.records.at(-1)) ?? met.after;
    const records = page.records.filter(mine).filter((record) => !met.has(record));
    if (records.length > 0 || isOver()) return { records, damaged };
  }
  return { records: [], damaged };
}

/** Records may be large: so many are held in memory at a time. */
const MOST_ASKED = 1_000;

function placeOf(record: KeyRecord | undefined): DuePlace | null {
  if (record === undefined) return null;
  const dueAt = dueAtOf(record);
  if (dueAt === null)
    throw new Error(`The store listed a record (${record.state}) as due that has no time for it.`);
  return { dueAt, identity: record.identity };
}

function dueAtOf(record: KeyRecord) {
  switch (record.state) {
    case "in_progress":
      return record.leaseUntil;
    case "unknown":
      return record.nextLookAt;
    case "released":
    case "completed":
    case "failed_permanent":
      return null;
  }
}
