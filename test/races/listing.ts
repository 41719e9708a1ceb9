import type { Instant, KeyRecord } from "../../src/core/record.ts";
import type { DueQuery, Listed } from "../../src/stores/store.ts";
import { nameOf } from "./database.ts";
import type { OpenTx } from "./open-tx.ts";

/** What a worker should look at, the longest overdue first. */
export function dueOf(rows: ReadonlyMap<string, KeyRecord>, now: Instant, query: DueQuery): Listed {
  const { after, limit } = query;
  const graceMs = query.kind === "stale" ? query.graceMs : 0;
  const place = after && { due: after.dueAt, name: nameOf(after.identity) };
  const overdue = [...rows]
    .map(([name, record]) => ({ name, record, due: dueAt(record, query) }))
    .filter((each) => each.due + graceMs <= now && (place === undefined || longestFirst(place, each) < 0))
    .sort(longestFirst);
  return { records: overdue.slice(0, limit).map(({ record }) => record), damaged: 0, now };
}

function dueAt(record: KeyRecord, { kind }: DueQuery): Instant {
  if (kind === "stale") return record.state === "in_progress" ? record.leaseUntil : Number.POSITIVE_INFINITY;
  const looked = record.state === "unknown" && record.disposition === "reconcile";
  return looked ? (record.nextLookAt ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
}

interface Overdue {
  readonly due: Instant;
  readonly name: string;
}

function longestFirst(one: Overdue, other: Overdue): number {
  return one.due - other.due || (one.name < other.name ? -1 : Number(one.name > other.name));
}

/** All that is committed or held, as a text. */
export function digestOf({ rows, held, claims, attempts }: Digested): string {
  const standing = [...rows.values()].map(recordText);
  const open = [...held].map(
    ([name, tx]) => `${name} ${[...tx.writes.values()].map(recordText)} ${tx.rows.length}`,
  );
  return `${attempts.last};${standing};${open};${[...claims.keys()]}`;
}

interface Digested {
  readonly rows: ReadonlyMap<string, KeyRecord>;
  readonly held: ReadonlyMap<string, OpenTx>;
  readonly claims: ReadonlyMap<string, OpenTx>;
  readonly attempts: { readonly last: number };
}

/** A version is named by its write, and by when it was written. */
function recordText(record: KeyRecord): string {
  const { state, owner, writeId, attempt, revision, updatedAt, createdAt, claimedAt } = record;
  const until =
    state === "in_progress"
      ? record.leaseUntil
      : state === "unknown"
        ? record.nextLookAt
        : record.retainUntil;
  const steps = [...record.steps].map(([name, step]) => `${name} ${step.state} ${step.generation}`);
  return `${state} ${owner} ${writeId} ${attempt} ${revision} ${updatedAt} ${createdAt} ${claimedAt} ${until} ${steps}`;
}
