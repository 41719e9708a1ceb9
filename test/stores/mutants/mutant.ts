import type { StoreSubject } from "../../../src/conformance/index.ts";
import { transactional } from "../../../src/conformance/subject.ts";
import type { Due, Identity, KeyRecord, RecordWrite, StepOf } from "../../../src/core/record.ts";
import { isPromise } from "../../../src/engine/command.ts";
import type { Awaitable, Settling, Store, TransactionalStore, Within } from "../../../src/stores/store.ts";

type Transactional = TransactionalStore<unknown, Settling>;

/** A store that is wrong in one way, and the laws that must not let it pass. */
export interface Mutant {
  readonly fault: string;
  /** The right store inside it, where that is not the memory store. */
  readonly of?: "SQLite" | "PostgreSQL";
  readonly killedBy: readonly string[];
  readonly make: (subject: StoreSubject) => StoreSubject;
}

/** Replaces some verbs of every handle that the subject hands out. */
export function verbs(change: (store: Store) => Partial<Transactional>): Mutant["make"] {
  return (subject) => {
    const store = { ...subject.store, ...change(subject.store) };
    const another = async () => {
      const other = await subject.another();
      return other === subject.store ? store : { ...other, ...change(other) };
    };
    return { ...subject, store, another };
  };
}

/** Replaces some verbs of every handle that has transactions. */
export function transactions(change: (store: Transactional) => Partial<Transactional>): Mutant["make"] {
  return verbs((store) => change(transactional(store)));
}

/** Replaces some of the verbs inside a transaction. */
export function inside(change: (within: Within) => Partial<Within>): Mutant["make"] {
  return transactions((store) => ({
    within: (tx) => {
      const within = store.within(tx);
      return { ...within, ...change(within) };
    },
  }));
}

/** Goes on with a value at once, or once it is there. */
export function afterwards<From, To>(
  value: Awaitable<From>,
  next: (value: From) => Awaitable<To>,
): Awaitable<To> {
  return isPromise(value) ? value.then(next) : next(value);
}

/** Spoils what is written, on its way in. */
export function writes(spoil: (write: RecordWrite) => RecordWrite): Mutant["make"] {
  return verbs((store) => ({
    insert: (write) => store.insert(spoil(write)),
    replace: (seen, write, patience) => store.replace(seen, spoil(write), patience),
  }));
}

/** Spoils what is read, on its way out. */
export function records(spoil: (record: KeyRecord) => KeyRecord): Mutant["make"] {
  const orNull = (record: KeyRecord | null) => (record === null ? null : spoil(record));
  return verbs((store) => ({
    insert: async (write) => {
      const standing = await store.insert(write);
      return { ...standing, record: spoil(standing.record) };
    },
    replace: async (seen, write, patience) => {
      const replaced = await store.replace(seen, write, patience);
      return replaced.kind === "stale"
        ? { ...replaced, record: orNull(replaced.record) }
        : { ...replaced, record: spoil(replaced.record) };
    },
    read: async (identity) => {
      const looked = await store.read(identity);
      return { ...looked, record: orNull(looked.record) };
    },
  }));
}

/** Keeps an identity under another one, and hides that well. */
export function identities(fold: (identity: Identity) => Identity): Mutant["make"] {
  return verbs((store) => ({
    insert: async (write) => {
      const { identity } = write;
      const standing = await store.insert({ ...write, identity: fold(identity) });
      return { ...standing, record: { ...standing.record, identity } };
    },
    replace: async (seen, write, patience) => {
      const identity = fold(seen.identity);
      const replaced = await store.replace({ ...seen, identity }, { ...write, identity }, patience);
      const shown = (record: KeyRecord) => ({ ...record, identity: seen.identity });
      if (replaced.kind !== "stale") return { ...replaced, record: shown(replaced.record) };
      return { ...replaced, record: replaced.record && shown(replaced.record) };
    },
    read: async (identity) => {
      const { record, now } = await store.read(fold(identity));
      return { record: record && { ...record, identity }, now };
    },
    audit: (entry) => store.audit({ ...entry, identity: fold(entry.identity) }),
    audits: async (identity) => (await store.audits(fold(identity))).map((entry) => ({ ...entry, identity })),
  }));
}

/** Spoils every time that a write names. */
export function times(spoil: (due: Due) => Due): (write: RecordWrite) => RecordWrite {
  const orNull = (due: Due | null) => (due === null ? null : spoil(due));
  const stepTimes = (step: StepOf<Due>): StepOf<Due> =>
    step.state === "clear"
      ? step
      : { ...step, openedAt: spoil(step.openedAt), validUntil: orNull(step.validUntil) };
  return (write) => {
    const steps = new Map([...write.steps].map(([name, step]) => [name, stepTimes(step)] as const));
    const common = { steps, createdAt: spoil(write.createdAt), claimedAt: spoil(write.claimedAt) };
    switch (write.state) {
      case "in_progress":
        return { ...write, ...common, leaseUntil: spoil(write.leaseUntil) };
      case "unknown":
        return {
          ...write,
          ...common,
          nextLookAt: orNull(write.nextLookAt),
          retainUntil: orNull(write.retainUntil),
        };
      case "released":
      case "completed":
      case "failed_permanent":
        return { ...write, ...common, retainUntil: spoil(write.retainUntil) };
    }
  };
}

/** Writes over whatever stands, as no store should. */
export async function overwrite(store: Store, write: RecordWrite): Promise<KeyRecord> {
  for (;;) {
    const { record } = await store.insert(write);
    if (record.writeId === write.writeId) return record;
    const replaced = await store.replace(record, write, "wait");
    if (replaced.kind === "replaced") return replaced.record;
  }
}

/** Removes a record, whatever its state, as no store should. */
export async function remove(store: Store, record: KeyRecord): Promise<void> {
  const { identity, owner, revision, writeId } = record;
  const LONG_AGO = { at: 1 };
  const write = {
    ...record,
    state: "released",
    writeId: `${writeId}-removed`,
    steps: new Map(),
    createdAt: LONG_AGO,
    claimedAt: LONG_AGO,
    retainUntil: LONG_AGO,
  } as const;
  await store.replace({ identity, owner, revision }, write, "wait");
  while ((await store.purge(1_000)) > 0);
}
