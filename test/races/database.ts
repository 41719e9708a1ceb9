import {
  type Identity,
  type Instant,
  type KeyRecord,
  type RecordWrite,
  type Seen,
  stamp,
} from "../../src/core/record.ts";
import type {
  DueQuery,
  FencedEnd,
  Ground,
  Listed,
  Looked,
  Patience,
  Replaced,
  Standing,
} from "../../src/stores/store.ts";
import { digestOf, dueOf } from "./listing.ts";
import type { Blocked, OpenTx, Row } from "./open-tx.ts";

/** One committed change of one record. */
export interface Change {
  readonly name: string;
  readonly from: KeyRecord | null;
  readonly to: KeyRecord;
  /** The version that the write said it replaces; `null` for an insert. */
  readonly seen: Seen | null;
  readonly now: Instant;
}

export interface DatabaseOptions {
  readonly now: () => Instant;
  /** Makes of a write what is kept. */
  readonly keep?: typeof stamp;
  readonly onChange?: (change: Change, by: string) => void;
  readonly onCommit?: (rows: readonly Row[], by: string) => void;
  readonly onPurge?: (record: KeyRecord, now: Instant) => void;
}

export type FencedBegin =
  | { readonly kind: "go"; readonly number: number | null }
  | { readonly kind: "refused"; readonly record: KeyRecord | null; readonly now: Instant }
  | { readonly kind: "busy" }
  | Blocked;

export type FencedDone =
  | { readonly kind: "written"; readonly record: KeyRecord; readonly now: Instant }
  | { readonly kind: "refused"; readonly record: KeyRecord | null; readonly now: Instant }
  | Blocked;

/** Each verb happens at one instant, or says whom it waits for. `by` names the process. */
export interface Database {
  readonly insert: (write: RecordWrite, tx: OpenTx | null, by: string) => Standing | Blocked;
  readonly replace: (asked: ReplaceAsked, tx: OpenTx | null, by: string) => Replaced | Blocked;
  readonly read: (identity: Identity, tx: OpenTx | null) => Looked;
  readonly due: (query: DueQuery) => Listed;
  readonly purge: (limit: number) => number;
  /** Takes a record away whatever it is, as no right store does. */
  readonly remove: (identity: Identity) => void;
  readonly tryClaim: (identity: Identity, tx: OpenTx) => boolean;
  readonly begin: () => OpenTx;
  readonly commit: (tx: OpenTx, by: string) => void;
  readonly rollback: (tx: OpenTx) => void;
  readonly fence: (ground: Ground, tx: OpenTx) => FencedBegin;
  readonly conclude: (
    ground: Ground,
    end: Extract<FencedEnd<unknown>, { kind: "commit" }>,
    tx: OpenTx,
  ) => FencedDone;
  readonly records: ReadonlyMap<string, KeyRecord>;
  /** All that is committed or held, as a text. */
  readonly digest: () => string;
  readonly now: () => Instant;
}

export interface ReplaceAsked {
  readonly seen: Seen;
  readonly write: RecordWrite;
  readonly patience: Patience;
}

/** No name holds a NUL. */
export function nameOf(identity: Identity): string {
  const operation = identity.kind === "run" ? identity.operation : "";
  return `${identity.kind}\0${identity.principal}\0${operation}\0${identity.key}`;
}

/** What the verbs share. */
interface Kept extends Required<DatabaseOptions> {
  readonly rows: Map<string, KeyRecord>;
  readonly held: Map<string, OpenTx>;
  readonly claims: Map<string, OpenTx>;
  readonly seen: WeakMap<KeyRecord, Seen | null>;
  readonly attempts: { last: number };
}

/** Records, transactions that hold rows until they end, and nothing that waits by itself. */
export function createDatabase({
  now,
  keep = stamp,
  onChange,
  onCommit,
  onPurge,
}: DatabaseOptions): Database {
  const kept: Kept = {
    ...{ now, keep, rows: new Map(), held: new Map(), claims: new Map(), seen: new WeakMap() },
    ...{ onChange: onChange ?? ignored, onCommit: onCommit ?? ignored, onPurge: onPurge ?? ignored },
    attempts: { last: 0 },
  };
  return {
    insert: (write, tx, by) => insert(kept, write, tx, by),
    replace: (asked, tx, by) => replace(kept, asked, tx, by),
    read: (identity, tx) => ({ record: visible(kept, nameOf(identity), tx) ?? null, now: now() }),
    due: (query) => dueOf(kept.rows, now(), query),
    purge: (limit) => purge(kept, limit),
    remove: (identity) => removed(kept, nameOf(identity)),
    tryClaim: (identity, tx) => tryClaim(kept, nameOf(identity), tx),
    begin: () => ({
      rows: [],
      writes: new Map(),
      held: new Set(),
      claims: new Set(),
      state: "open",
      waiting: [],
    }),
    commit: (tx, by) => commit(kept, tx, by),
    rollback: (tx) => ended(kept, tx, "rolled back"),
    fence: (ground, tx) => fence(kept, ground, tx),
    conclude: (ground, end, tx) => conclude(kept, ground, end.write, tx),
    records: kept.rows,
    digest: () => digestOf(kept),
    now,
  };
}

function ignored(): void {}

function visible({ rows }: Kept, name: string, tx: OpenTx | null): KeyRecord | undefined {
  return tx?.writes.get(name) ?? rows.get(name);
}

/** Whoever else holds the row. */
function holder({ held }: Kept, name: string, tx: OpenTx | null): OpenTx | null {
  const by = held.get(name);
  return by === undefined || by === tx ? null : by;
}

interface Putting {
  readonly name: string;
  readonly write: RecordWrite;
  readonly standing: KeyRecord | undefined;
  readonly seen: Seen | null;
}

function put(kept: Kept, { name, write, standing, seen }: Putting, tx: OpenTx | null, by: string): KeyRecord {
  const { attempts, rows, keep } = kept;
  if (write.attempt === "next") attempts.last += 1;
  const attempt = write.attempt === "next" ? attempts.last : write.attempt;
  const updatedAt = kept.now();
  const record = keep(write, { attempt, revision: (standing?.revision ?? 0) + 1, updatedAt });
  if (tx === null) {
    rows.set(name, record);
    kept.onChange({ name, from: standing ?? null, to: record, seen, now: updatedAt }, by);
    return record;
  }
  kept.seen.set(record, tx.writes.has(name) ? (kept.seen.get(tx.writes.get(name) ?? record) ?? null) : seen);
  tx.writes.set(name, record);
  hold(kept, name, tx);
  return record;
}

function hold({ held }: Kept, name: string, tx: OpenTx): void {
  held.set(name, tx);
  tx.held.add(name);
}

function insert(kept: Kept, write: RecordWrite, tx: OpenTx | null, by: string): Standing | Blocked {
  const name = nameOf(write.identity);
  const other = holder(kept, name, tx);
  if (other !== null && !kept.rows.has(name)) return { kind: "blocked", by: other };
  const standing = visible(kept, name, tx);
  if (standing !== undefined) return { inserted: false, record: standing, now: kept.now() };
  return {
    inserted: true,
    record: put(kept, { name, write, standing, seen: null }, tx, by),
    now: kept.now(),
  };
}

function replace(
  kept: Kept,
  { seen, write, patience }: ReplaceAsked,
  tx: OpenTx | null,
  by: string,
): Replaced | Blocked {
  const name = nameOf(seen.identity);
  const now = kept.now();
  const other = holder(kept, name, tx);
  if (other !== null && patience === "wait") return { kind: "blocked", by: other };
  const record = visible(kept, name, tx);
  if (record === undefined) return { kind: "stale", record: null, now };
  if (!isSeen(record, seen))
    return { kind: record.writeId === write.writeId ? "replaced" : "stale", record, now };
  if (other !== null) return { kind: "locked", record, now };
  return { kind: "replaced", record: put(kept, { name, write, standing: record, seen }, tx, by), now };
}

function isSeen(record: KeyRecord, seen: Seen): boolean {
  return record.owner === seen.owner && record.revision === seen.revision;
}

function tryClaim({ claims }: Kept, name: string, tx: OpenTx): boolean {
  const by = claims.get(name);
  if (by !== undefined && by !== tx) return false;
  claims.set(name, tx);
  tx.claims.add(name);
  return true;
}

function commit(kept: Kept, tx: OpenTx, by: string): void {
  if (tx.state !== "open") throw new Error("A transaction ends once.");
  const now = kept.now();
  const changes = [...tx.writes].map(([name, to]): Change => {
    return { name, from: kept.rows.get(name) ?? null, to, seen: kept.seen.get(to) ?? null, now };
  });
  for (const { name, to } of changes) kept.rows.set(name, to);
  for (const change of changes) kept.onChange(change, by);
  if (tx.rows.length > 0) kept.onCommit(tx.rows, by);
  ended(kept, tx, "committed");
}

function ended({ held, claims }: Kept, tx: OpenTx, state: "committed" | "rolled back"): void {
  if (tx.state !== "open") return;
  tx.state = state;
  for (const name of tx.held) held.delete(name);
  for (const name of tx.claims) claims.delete(name);
  for (const wake of tx.waiting.splice(0)) wake();
}

function fence(kept: Kept, ground: Ground, tx: OpenTx): FencedBegin {
  const name = nameOf(ground.kind === "held" ? ground.seen.identity : ground.identity);
  const other = holder(kept, name, tx);
  const now = kept.now();
  const record = kept.rows.get(name) ?? null;
  const { seen } = ground;
  const holds = seen === null ? record === null : record !== null && isSeen(record, seen);
  if (ground.kind === "held") {
    if (other !== null) return { kind: "blocked", by: other };
    if (!holds) return { kind: "refused", record, now };
    hold(kept, name, tx);
    return { kind: "go", number: null };
  }
  if (!holds) return { kind: "refused", record, now };
  if (other !== null || !tryClaim(kept, name, tx)) return { kind: "busy" };
  if (record !== null) hold(kept, name, tx);
  kept.attempts.last += 1;
  return { kind: "go", number: kept.attempts.last };
}

function conclude(kept: Kept, ground: Ground, write: RecordWrite, tx: OpenTx): FencedDone {
  const { seen } = ground;
  const name = nameOf(ground.kind === "held" ? ground.seen.identity : ground.identity);
  const other = holder(kept, name, tx);
  if (other !== null) return { kind: "blocked", by: other };
  const standing = visible(kept, name, tx);
  const holds = seen === null ? standing === undefined : standing !== undefined && isSeen(standing, seen);
  if (!holds) return { kind: "refused", record: kept.rows.get(name) ?? null, now: kept.now() };
  return { kind: "written", record: put(kept, { name, write, standing, seen }, tx, ""), now: kept.now() };
}

function purge(kept: Kept, limit: number): number {
  const now = kept.now();
  const gone = [...kept.rows]
    .filter(
      ([, record]) =>
        record.state !== "in_progress" && (record.retainUntil ?? Number.POSITIVE_INFINITY) <= now,
    )
    .filter(([, record]) => record.state !== "unknown" || record.disposition === "hold")
    .filter(([name]) => !kept.held.has(name))
    .slice(0, limit);
  for (const [name] of gone) removed(kept, name);
  return gone.length;
}

function removed({ rows, onPurge, now }: Kept, name: string): void {
  const record = rows.get(name);
  if (record === undefined) return;
  rows.delete(name);
  onPurge(record, now());
}
