import type {
  Disposition,
  Identity,
  Instant,
  KeyRecord,
  RecordState,
  RecordWrite,
  Seen,
} from "../core/record.ts";

/**
 * The port. A store keeps records and decides nothing: two writing verbs, each one atomic compare-and-set, judged by
 * the store's own clock. The conformance laws are this page, executable.
 */
export interface Store {
  /** As people call it: "memory", "sqlite", "postgres". */
  readonly name: string;
  readonly capabilities: Capabilities;

  /**
   * Creates the record, or hands back the one that stands, in one atomic step; a standing record is not rewritten.
   * Repeating the same write is harmless: the record then stands with its `owner`. Never waits for another attempt's
   * transaction longer than that transaction's own commit.
   */
  insert(write: RecordWrite): Promise<Standing>;

  /**
   * Puts `write` in the place of the version that was seen (same owner, same revision), or changes nothing. A repeat
   * of a write that was applied, and that nobody has replaced since, succeeds on its `writeId`. With patience `wait`
   * it waits for a lock on the row, so that its answer settles what became of a write whose reply was lost; with
   * `never` a locked row answers at once as `locked`.
   */
  replace(seen: Seen, write: RecordWrite, patience: Patience): Promise<Replaced>;

  /** The record as last committed; it proves nothing about a write whose reply was lost. */
  read(identity: Identity): Promise<Looked>;

  /** Up to `limit` records that a worker should look at, the longest overdue first; reads by an index only, further pages too. */
  due(query: DueQuery): Promise<Listed>;

  /** Records for people, newest change first. */
  list(query: ListQuery): Promise<Listed>;

  /** How many records there are of each state, and the age of the oldest unfinished and overdue ones. */
  count(): Promise<Counts>;

  /**
   * Removes up to `limit` records whose retention is over, row by row where something else still refers to them;
   * never an `in_progress` one nor an `unknown` that somebody is to end. A finished one with a `tombstoneMs` becomes its
   * tombstone instead, and goes once that has stood its time: answer (but for its status), reference, steps and
   * the fingerprint's hashes are gone, the revision is the next one, all else stays. Returns how many went either way.
   */
  purge(limit: number): Promise<number>;

  /** Appends to the log of what people and policies overrode; never changed afterwards. */
  audit(entry: AuditEntry): Promise<void>;
  audits(identity: Identity): Promise<readonly Audited[]>;

  /** Says that a worker is alive, by the store's clock. */
  beat(worker: WorkerName): Promise<void>;
  beats(): Promise<readonly Beat[]>;

  /** Reachable, writable, and of the schema version that this release needs; throws what to do where it is not. */
  check(): Promise<void>;

  /** Frees what the store itself opened; never the caller's own pool. */
  close(): Promise<void>;
}

/** A store that can commit the record with rows of the user's own. `Settles` says whether its units may wait. */
export interface TransactionalStore<Tx, Settles extends Settling = "async"> extends Store {
  /** Whether a unit may return a promise: `sync` where one held over an await would freeze others (SQLite). */
  readonly settles: Settles;

  /**
   * Runs one short unit at READ COMMITTED or better, whatever the default. Commits on `commit`, rolls back on
   * `rollback` or a throw. May run `work` again only by throwing: a conflict is thrown as contention, never hidden.
   */
  transaction<T>(work: (tx: Tx) => Awaitable<UnitEnd<T>>, bounds?: UnitBounds): Promise<T>;

  /**
   * A unit in the shape that nearly all have, in as few trips as the driver allows: the ground first, then `work`, then
   * its write in the place of the ground and the commit. Whatever `work` did is undone where the ground does not hold or
   * the write meets another version. Contention and lost connections are thrown, as by `transaction`.
   */
  fenced<T>(ground: Ground, work: FencedWork<Tx, T>, bounds?: UnitBounds): Promise<Fenced<T>>;

  /** The verbs inside an open transaction, the user's own included. */
  within(tx: Tx): Within;

  /**
   * The primary key of the identity's record in the store's own table, \`oncekey_records (id)\`, for a foreign key of the
   * user's: the same for ever, on every handle, before there is a record and after it was purged; the caller's own bytes.
   */
  recordId(identity: Identity): Uint8Array;
}

/** What a fenced unit does; `number` is a new fencing token where its ground is a claim, else `null`. */
export type FencedWork<Tx, T> = (tx: Tx, number: number | null) => Awaitable<FencedEnd<T>>;

export interface UnitBounds {
  /** After this long without a statement the store may end the unit: a process paused inside it holds the record. */
  readonly idleMs: number;
}

/** What must be so before a unit runs, and stays so until its commit. */
export type Ground =
  /**
   * The version that was seen; waits for whoever holds its row, since that may be this unit's own lost commit. Where the
   * caller has the version itself (`from`), what the unit's write leaves as it was need not be sent again.
   */
  | { readonly kind: "held"; readonly seen: Seen; readonly from?: KeyRecord }
  /** A record that is free to be claimed: none at all, or the version that was seen. Never waits for another claim. */
  | { readonly kind: "claimable"; readonly identity: Identity; readonly seen: Seen | null };

export type FencedEnd<T> =
  | { readonly kind: "commit"; readonly write: RecordWrite; readonly value: T }
  | { readonly kind: "rollback"; readonly value: T };

export type Fenced<T> =
  | { readonly kind: "committed"; readonly record: KeyRecord; readonly now: Instant; readonly value: T }
  | { readonly kind: "rolled_back"; readonly value: T }
  /** Another version stands than the ground or the write asked for; nothing of the unit was kept. */
  | { readonly kind: "refused"; readonly record: KeyRecord | null; readonly now: Instant }
  /** Another unit is claiming the identity, or holds the version that was seen, just now (`claimable` only). */
  | { readonly kind: "busy" };

/** The verbs inside a transaction; what they write is there once it commits. */
export interface Within {
  /** True when no other transaction is claiming this identity just now; never waits, and freed by the commit. */
  tryClaim(identity: Identity): Awaitable<boolean>;
  insert(write: RecordWrite): Awaitable<Standing>;
  replace(seen: Seen, write: RecordWrite, patience: Patience): Awaitable<Replaced>;
  read(identity: Identity): Awaitable<Looked>;
}

export type Awaitable<T> = T | PromiseLike<T>;
export type Settling = "sync" | "async";
export type Patience = "wait" | "never";
export type UnitEnd<T> = { readonly kind: "commit" | "rollback"; readonly value: T };

export interface Capabilities {
  /** Effect and record in one commit. */
  readonly transactions: boolean;
  /** What was acknowledged outlives the process. */
  readonly durable: boolean;
  /** Drops ended records by itself. */
  readonly nativeExpiry: boolean;
  /** The finest step of its clock that a record shows. */
  readonly timePrecisionMs: number;
  /** Larger records are refused with `record_too_large`. */
  readonly maxRecordBytes: number;
}

/** The record that stands after an `insert`, and the store's now of the same trip. */
export interface Standing {
  readonly inserted: boolean;
  readonly record: KeyRecord;
  readonly now: Instant;
}

export type Replaced =
  | { readonly kind: "replaced"; readonly record: KeyRecord; readonly now: Instant }
  /** Another version stands, or none. */
  | { readonly kind: "stale"; readonly record: KeyRecord | null; readonly now: Instant }
  /** The version that was seen stands, and somebody's open transaction holds it (patience `never` only). */
  | { readonly kind: "locked"; readonly record: KeyRecord; readonly now: Instant };

export interface Looked {
  readonly record: KeyRecord | null;
  readonly now: Instant;
}

export type DueQuery = DueKind & {
  readonly limit: number;
  /** Continues after the last record of the page before, wherever that has gone meanwhile. */
  readonly after?: DuePlace;
};

export type DueKind =
  /** `in_progress` whose lease lapsed `graceMs` ago or more. */
  | { readonly kind: "stale"; readonly graceMs: number }
  /** `unknown` to be reconciled whose next look has come. */
  | { readonly kind: "looks" };

/** A place among what is due: its `leaseUntil` or `nextLookAt`, and among those of one instant the order of the store. */
export interface DuePlace {
  readonly dueAt: Instant;
  readonly identity: Identity;
}

export interface ListQuery {
  readonly limit: number;
  readonly state?: RecordState;
  readonly disposition?: Disposition;
  readonly principal?: string;
  readonly key?: string;
  readonly operation?: string;
  readonly correlationId?: string;
  /** Continues after the last record of the page before. */
  readonly before?: { readonly updatedAt: Instant; readonly identity: Identity };
}

export interface Listed {
  readonly records: readonly KeyRecord[];
  /** Rows that could not be read; they never hide the readable ones. */
  readonly damaged: number;
  readonly now: Instant;
}

export interface Counts {
  readonly byState: Readonly<Record<RecordState, number>>;
  /** Unknown ones by who is to end them. */
  readonly byDisposition: Readonly<Record<Disposition, number>>;
  readonly oldestInProgressMs: number | null;
  readonly oldestUnknownMs: number | null;
  /** How many of the completed and failed ones are tombstones. */
  readonly tombstones: number;
  /** Records whose retention is over, or whose tombstone has stood its time, and that are still there, and how long ago the first of them should have gone. */
  readonly endedNotPurged: number;
  readonly oldestEndedMs: number | null;
}

export interface AuditEntry {
  readonly identity: Identity;
  /** A person, or the policy that acted. */
  readonly actor: string;
  readonly action: string;
  readonly reason: string;
  readonly before: RecordState | null;
  readonly after: RecordState | null;
}

export type Audited = AuditEntry & { readonly at: Instant };
export type WorkerName = "sweeper" | "reconciler" | "purge";

export interface Beat {
  readonly worker: WorkerName;
  readonly beatenAt: Instant;
  readonly ageMs: number;
}
