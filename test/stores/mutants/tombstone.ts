import type { KeyRecord, RecordWrite } from "../../../src/core/record.ts";
import { type Mutant, remove, verbs, writes } from "./mutant.ts";

/** Wrong ways to remember that a key was used. */
export const tombstoneMutants: readonly Mutant[] = [
  {
    fault: "a purge leaves no tombstone",
    killedBy: [
      ...["tombstone/keeps-the-key-alone", "tombstone/stays-and-goes", "tombstone/is-listed-and-counted"],
      "tombstone/is-another-version",
    ],
    make: writes((write) => ("tombstoneMs" in write ? { ...write, tombstoneMs: null } : write)),
  },
  {
    fault: "a tombstone still holds the answer",
    killedBy: ["tombstone/keeps-the-key-alone"],
    make: remembering((record, { answer }) => ({ ...record, answer })),
  },
  {
    fault: "a tombstone still holds the reference",
    killedBy: ["tombstone/keeps-the-key-alone"],
    make: remembering((record, { reference }) => ({ ...record, reference })),
  },
  {
    fault: "a tombstone still holds the hashes of the request",
    killedBy: ["tombstone/keeps-the-key-alone"],
    make: remembering((record, { fingerprint }) => ({ ...record, fingerprint })),
  },
  {
    fault: "a purge makes a tombstone of what is still retained",
    killedBy: ["tombstone/not-before-the-retention-ends"],
    make: verbs((store) => ({
      purge: async (limit) => {
        const { records } = await store.list({ limit: 100_000, state: "completed" });
        for (const record of records) {
          if (record.state !== "completed" || record.tombstoneMs === null || isTombstone(record)) continue;
          const times = { createdAt: { at: record.createdAt }, claimedAt: { at: record.claimedAt } };
          const over = { ...times, steps: new Map(), retainUntil: { inMs: 0 } };
          await store.replace(record, { ...record, ...over }, "wait");
        }
        return store.purge(limit);
      },
    })),
  },
  {
    fault: "the purge that comes next takes a tombstone along",
    killedBy: ["tombstone/stays-and-goes", "tombstone/keeps-the-key-alone"],
    make: verbs((store) => ({
      purge: async (limit) => {
        const { records } = await store.list({ limit: 100_000, state: "completed" });
        for (const record of records.filter(isTombstone)) await remove(store, record);
        return store.purge(limit);
      },
    })),
  },
  {
    fault: "a tombstone stands for ever",
    killedBy: ["tombstone/stays-and-goes", "tombstone/none-that-is-over"],
    make: writes(forEver),
  },
  {
    fault: "a purge does not count those that left a tombstone",
    killedBy: ["tombstone/counts-as-gone"],
    make: verbs((store) => ({
      purge: async (limit) => {
        const before = await store.count();
        const went = await store.purge(limit);
        return went - (await store.count()).tombstones + before.tombstones;
      },
    })),
  },
  {
    fault: "tombstones are not counted",
    killedBy: ["tombstone/is-listed-and-counted"],
    make: verbs((store) => ({ count: async () => ({ ...(await store.count()), tombstones: 0 }) })),
  },
  {
    fault: "a tombstone is no version of its own",
    killedBy: ["tombstone/is-another-version"],
    make: verbs((store) => ({
      replace: async (seen, write, patience) => {
        const replaced = await store.replace(seen, write, patience);
        const { record } = replaced;
        if (replaced.kind !== "stale" || record?.revision !== seen.revision + 1 || !isTombstone(record))
          return replaced;
        return store.replace(record, write, patience);
      },
    })),
  },
];

type Finished = Extract<KeyRecord, { readonly state: "completed" | "failed_permanent" }>;

/** Lets a tombstone, when it is read, have what the write of its record had. */
function remembering(spoil: (record: Finished, write: Finished) => KeyRecord): Mutant["make"] {
  const before = new Map<string, Finished>();
  const isFinished = (record: KeyRecord | null): record is Finished => record !== null && "answer" in record;
  return verbs((store) => ({
    insert: async (write) => {
      const standing = await store.insert(write);
      if (isFinished(standing.record)) before.set(standing.record.owner, standing.record);
      return standing;
    },
    read: async (identity) => {
      const { record, now } = await store.read(identity);
      const whole = record === null ? undefined : before.get(record.owner);
      if (!isFinished(record) || whole === undefined || !isTombstone(record)) return { record, now };
      return { record: spoil(record, whole), now };
    },
  }));
}

function isTombstone(record: KeyRecord): boolean {
  return "answer" in record && record.fingerprint.raw.length === 0;
}

function forEver(write: RecordWrite): RecordWrite {
  const remembered = "tombstoneMs" in write && write.tombstoneMs !== null;
  return remembered ? { ...write, tombstoneMs: 8_000_000_000_000 } : write;
}
