import type { Identity, Instant, KeyRecord, RecordWrite, Seen } from "../core/record.ts";
import { encodeSteps, identityText, recordId } from "./codec.ts";
import { fromRow, type StoredRow, stampRow, toRow } from "./row.ts";
import type {
  Audited,
  Beat,
  Capabilities,
  Counts,
  DueQuery,
  Listed,
  ListQuery,
  Replaced,
  Store,
} from "./store.ts";

export interface MemoryOptions {
  /** Milliseconds since the Unix epoch. */
  readonly now?: () => number;
}

/** The port in its plainest form, for tests: what it keeps is gone with the process. */
export function memoryStore({ now = Date.now }: MemoryOptions = {}): Store {
  const kept: Kept = { rows: new Map(), audits: [], beats: new Map(), attempts: { last: 0 } };
  return {
    name: "memory",
    capabilities: CAPABILITIES,
    insert: async (write) => insert(kept, write, now()),
    replace: async (seen, write) => replace(kept, { seen, write, now: now() }),
    read: async (identity) => ({ record: recordOf(kept, identity), now: now() }),
    due: async (query) => due(kept, query, now()),
    list: async (query) => list(kept, query, now()),
    count: async () => count(kept, now()),
    purge: async (limit) => purge(kept, limit, now()),
    audit: async (entry) => void kept.audits.push({ ...entry, at: now() }),
    audits: async (identity) => {
      const asked = identityText(identity);
      return kept.audits.filter((entry) => identityText(entry.identity) === asked);
    },
    beat: async (worker) => void kept.beats.set(worker, now()),
    beats: async () =>
      [...kept.beats].map(([worker, beatenAt]) => ({ worker, beatenAt, ageMs: now() - beatenAt })),
    check: async () => {},
    close: async () => {},
  };
}

/** Rows as a SQL store would hold them, so that what one store refuses or rounds, all do. */
interface Kept {
  readonly rows: Map<string, StoredRow>;
  readonly audits: Audited[];
  readonly beats: Map<Beat["worker"], Instant>;
  readonly attempts: { last: number };
}

const CAPABILITIES: Capabilities = {
  transactions: false,
  durable: false,
  nativeExpiry: false,
  timePrecisionMs: 1,
  maxRecordBytes: Number.MAX_SAFE_INTEGER,
};

function insert(kept: Kept, write: RecordWrite, now: Instant) {
  const standing = recordOf(kept, write.identity);
  if (standing !== null) return { inserted: false, record: standing, now };
  return { inserted: true, record: put(kept, { write, revision: 1, now }), now };
}

function replace(
  kept: Kept,
  { seen, write, now }: { readonly seen: Seen; readonly write: RecordWrite; readonly now: Instant },
): Replaced {
  const record = recordOf(kept, seen.identity);
  if (record === null) return { kind: "stale", record, now };
  if (record.owner === seen.owner && record.revision === seen.revision) {
    return { kind: "replaced", record: put(kept, { write, revision: record.revision + 1, now }), now };
  }
  return { kind: record.writeId === write.writeId ? "replaced" : "stale", record, now };
}

function put(
  kept: Kept,
  { write, revision, now }: { readonly write: RecordWrite; readonly revision: number; readonly now: Instant },
): KeyRecord {
  const row = toRow(write);
  if (write.attempt === "next") kept.attempts.last += 1;
  const attempt = write.attempt === "next" ? kept.attempts.last : write.attempt;
  const stored = withOwnBytes(stampRow(row, { attempt, revision, now }));
  kept.rows.set(identityText(write.identity), stored);
  return recordIn(stored);
}

function recordOf(kept: Kept, identity: Identity): KeyRecord | null {
  const row = kept.rows.get(identityText(identity));
  return row === undefined ? null : recordIn(row);
}

function recordIn(row: StoredRow): KeyRecord {
  return fromRow(withOwnBytes(row));
}

/** What a caller does to bytes that it gave or got reaches nothing here. */
function withOwnBytes(row: StoredRow): StoredRow {
  const copy = (bytes: Uint8Array) => new Uint8Array(bytes);
  return {
    ...row,
    fingerprint_salt: copy(row.fingerprint_salt),
    fingerprint_raw: copy(row.fingerprint_raw),
    fingerprint_canonical: copy(row.fingerprint_canonical),
    reference: row.reference && copy(row.reference),
    answer_body: row.answer_body && copy(row.answer_body),
  };
}

function due(kept: Kept, query: DueQuery, now: Instant): Listed {
  const { after, limit } = query;
  const place = after && { due: after.dueAt, id: recordId(after.identity) };
  const graceMs = query.kind === "stale" ? query.graceMs : 0;
  const overdue = [...kept.rows.values()]
    .map((row) => ({ row, id: row.id, due: dueOf(row, query) ?? Number.POSITIVE_INFINITY }))
    .filter((each) => each.due + graceMs <= now && (place === undefined || longestFirst(place, each) < 0))
    .sort(longestFirst);
  return listed(overdue.map(({ row }) => row).slice(0, limit), now);
}

function dueOf(row: StoredRow, { kind }: DueQuery): Instant | null {
  switch (kind) {
    case "stale":
      return row.lease_until;
    case "looks":
      return row.disposition === "reconcile" ? row.next_look_at : null;
  }
}

interface Overdue {
  readonly due: Instant;
  readonly id: Uint8Array;
}

function longestFirst(one: Overdue, other: Overdue): number {
  return one.due - other.due || Buffer.compare(one.id, other.id);
}

function list(kept: Kept, query: ListQuery, now: Instant): Listed {
  const { before } = query;
  const last = before && { updated_at: before.updatedAt, id: recordId(before.identity) };
  const found = [...kept.rows.values()]
    .filter((row) => last === undefined || newestFirst(last, row) < 0)
    .filter((row) => query.state === undefined || row.state === query.state)
    .filter((row) => query.disposition === undefined || row.disposition === query.disposition)
    .filter((row) => query.principal === undefined || row.principal === query.principal)
    .filter((row) => query.key === undefined || row.key === query.key)
    .filter((row) => query.operation === undefined || row.operation === query.operation)
    .filter((row) => query.correlationId === undefined || row.correlation_id === query.correlationId)
    .sort(newestFirst);
  return listed(found.slice(0, query.limit), now);
}

function newestFirst(one: Pick<StoredRow, "updated_at" | "id">, other: Pick<StoredRow, "updated_at" | "id">) {
  return other.updated_at - one.updated_at || Buffer.compare(other.id, one.id);
}

function listed(rows: readonly StoredRow[], now: Instant): Listed {
  return { records: rows.map(recordIn), damaged: 0, now };
}

function count(kept: Kept, now: Instant): Counts {
  const rows = [...kept.rows.values()];
  const inState = (state: StoredRow["state"]) => rows.filter((row) => row.state === state);
  const of = (disposition: StoredRow["disposition"]) =>
    rows.filter((row) => row.disposition === disposition).length;
  const oldest = (some: readonly StoredRow[]) =>
    some.reduce<number | null>((ageMs, row) => Math.max(ageMs ?? 0, now - row.claimed_at), null);
  const overdue = ended(kept, now);
  const [longest] = overdue;
  return {
    byState: {
      in_progress: inState("in_progress").length,
      released: inState("released").length,
      unknown: inState("unknown").length,
      completed: inState("completed").length,
      failed_permanent: inState("failed_permanent").length,
    },
    byDisposition: { reconcile: of("reconcile"), review: of("review"), hold: of("hold") },
    oldestInProgressMs: oldest(inState("in_progress")),
    oldestUnknownMs: oldest(inState("unknown")),
    tombstones: rows.filter(isTombstone).length,
    endedNotPurged: overdue.length,
    oldestEndedMs: longest === undefined ? null : now - (longest[1].retain_until ?? now),
  };
}

function purge(kept: Kept, limit: number, now: Instant): number {
  const gone = ended(kept, now).slice(0, limit);
  for (const [name, row] of gone) {
    const left = remainsOf(row, now);
    if (left === null) kept.rows.delete(name);
    else kept.rows.set(name, left);
  }
  return gone.length;
}

/** The tombstone of a row whose retention is over; `null` where none is left. */
function remainsOf(row: StoredRow, now: Instant): StoredRow | null {
  const { retain_until, tombstone_ms } = row;
  if (retain_until === null || tombstone_ms === null || isTombstone(row)) return null;
  const standsUntil = retain_until + tombstone_ms;
  if (standsUntil <= now) return null;
  const nothing = new Uint8Array(0);
  return {
    ...row,
    ...{
      revision: row.revision + 1,
      retain_until: standsUntil,
      steps: encodeSteps(new Map()),
      reference: null,
    },
    ...{ answer_headers: null, answer_body: null, answer_digest: null },
    ...{ fingerprint_salt: nothing, fingerprint_raw: nothing, fingerprint_canonical: nothing },
  };
}

function isTombstone({ tombstone_ms, answer_digest }: StoredRow): boolean {
  return tombstone_ms !== null && answer_digest === null;
}

function ended(kept: Kept, now: Instant) {
  return [...kept.rows]
    .filter(([, row]) => row.state !== "unknown" || row.disposition === "hold")
    .filter(([, { retain_until }]) => retain_until !== null && retain_until <= now)
    .sort(([, one], [, other]) => (one.retain_until ?? 0) - (other.retain_until ?? 0));
}
