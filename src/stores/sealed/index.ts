import type { KeyRecord, RecordWrite } from "../../core/record.ts";
import { ConfigurationError, RecordCorrupt } from "../../errors.ts";
import type {
  Awaitable,
  DuePlace,
  Fenced,
  FencedEnd,
  Listed,
  Settling,
  Store,
  TransactionalStore,
  Within,
} from "../store.ts";
import { keyRing, type SealingKey } from "./ring.ts";
import { type Sealing, sealing } from "./sealing.ts";

export type { SealingKey } from "./ring.ts";

export interface SealedOptions {
  /** The first key seals, all open. A key stays until nothing that it sealed is kept any more. */
  readonly keys: readonly SealingKey[];
}

/**
 * The same store, in which the bodies of answers, references, results of steps and what a provider said stand encrypted
 * (AES-256-GCM), each bound to its record and to its place in it. Statuses, headers, keys, principals and reasons stay
 * readable. What was kept before it was switched on is read as it is.
 */
export function sealedStore<Tx, Settles extends Settling>(
  store: TransactionalStore<Tx, Settles>,
  options: SealedOptions,
): TransactionalStore<Tx, Settles>;
export function sealedStore(store: Store, options: SealedOptions): Store;
export function sealedStore<Tx, Settles extends Settling>(
  store: Store | TransactionalStore<Tx, Settles>,
  options: SealedOptions,
): Store | TransactionalStore<Tx, Settles> {
  if (store?.capabilities === undefined)
    throw new ConfigurationError("store", "must be a store, such as sqliteStore({ … })");
  const seals = sealing(keyRing(options?.keys), store.capabilities.maxRecordBytes);
  const records = recordsIn(store, seals);
  return "transaction" in store ? { ...records, ...unitsIn(store, seals) } : records;
}

function recordsIn(store: Store, { seal, open }: Sealing): Store {
  return {
    ...{ name: store.name, capabilities: store.capabilities },
    insert: async (write) => opening(await store.insert(seal(write)), open, write),
    replace: async (seen, write, patience) =>
      opening(await store.replace(seen, seal(write), patience), open, write),
    read: async (identity) => opening(await store.read(identity), open),
    due: (query) =>
      opened(query.limit, open, (limit, last) =>
        store.due({ ...query, limit, ...(last === null ? {} : { after: placeOf(last) }) }),
      ),
    list: (query) =>
      opened(query.limit, open, (limit, last) =>
        store.list({ ...query, limit, ...(last === null ? {} : { before: last }) }),
      ),
    count: () => store.count(),
    purge: (limit) => store.purge(limit),
    audit: (entry) => store.audit(entry),
    audits: (identity) => store.audits(identity),
    beat: (worker) => store.beat(worker),
    beats: () => store.beats(),
    check: () => store.check(),
    close: () => store.close(),
  };
}

/** What a transactional store has besides. */
type Units<Tx, Settles extends Settling> = Omit<TransactionalStore<Tx, Settles>, keyof Store>;

function unitsIn<Tx, Settles extends Settling>(
  store: TransactionalStore<Tx, Settles>,
  seals: Sealing,
): Units<Tx, Settles> {
  return {
    settles: store.settles,
    transaction: (work, bounds) => store.transaction(work, bounds),
    fenced: async <T>(...[ground, work, bounds]: Parameters<typeof store.fenced<T>>): Promise<Fenced<T>> => {
      let written: RecordWrite | undefined;
      const sealedEnd = (end: FencedEnd<T>): FencedEnd<T> => {
        if (end.kind !== "commit") return end;
        written = end.write;
        return { ...end, write: seals.seal(end.write) };
      };
      const end = await store.fenced<T>(
        ground,
        (tx, number) => following(work(tx, number), sealedEnd),
        bounds,
      );
      return "record" in end ? opening(end, seals.open, written) : end;
    },
    within: (tx) => inside(store.within(tx), seals),
    recordId: (identity) => store.recordId(identity),
  };
}

function inside(within: Within, { seal, open }: Sealing): Within {
  return {
    tryClaim: (identity) => within.tryClaim(identity),
    insert: (write) => following(within.insert(seal(write)), (standing) => opening(standing, open, write)),
    replace: (seen, write, patience) =>
      following(within.replace(seen, seal(write), patience), (replaced) => opening(replaced, open, write)),
    read: (identity) => following(within.read(identity), (looked) => opening(looked, open)),
  };
}

/** At once where there is nothing to wait for: units of SQLite may not. */
function following<T extends object, Next>(value: Awaitable<T>, next: (value: T) => Next): Awaitable<Next> {
  return "then" in value ? value.then(next) : next(value);
}

function opening<Answered extends { readonly record: KeyRecord | null }>(
  answered: Answered,
  open: Sealing["open"],
  written?: RecordWrite,
): Answered {
  const record = open(answered.record, written);
  return record === answered.record ? answered : { ...answered, record };
}

type Page = (limit: number, last: KeyRecord | null) => Promise<Listed>;

/** As many records as asked for: one that cannot be opened is counted as damaged, and takes nobody's place. */
async function opened(wanted: number, open: Sealing["open"], page: Page): Promise<Listed> {
  const records: KeyRecord[] = [];
  let damaged = 0;
  let last: KeyRecord | null = null;
  for (;;) {
    const limit: number = wanted - records.length;
    const listed: Listed = await page(limit, last);
    damaged += listed.damaged;
    for (const sealed of listed.records) {
      const record = readable(sealed, open);
      if (record === null) damaged += 1;
      else records.push(record);
    }
    last = listed.records.at(-1) ?? null;
    if (records.length >= wanted || listed.records.length < limit)
      return { records, damaged, now: listed.now };
  }
}

function readable(sealed: KeyRecord, open: Sealing["open"]): KeyRecord | null {
  try {
    return open(sealed);
  } catch (error) {
    if (error instanceof RecordCorrupt) return null;
    throw error;
  }
}

function placeOf(record: KeyRecord): DuePlace {
  const dueAt = record.state === "in_progress" ? record.leaseUntil : nextLookOf(record);
  return { dueAt, identity: record.identity };
}

function nextLookOf(record: Exclude<KeyRecord, { state: "in_progress" }>): number {
  if (record.state === "unknown" && record.nextLookAt !== null) return record.nextLookAt;
  throw new Error(`The store listed a record (${record.state}) as due that has no time for it.`);
}
