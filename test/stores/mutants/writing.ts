import type { Identity, KeyRecord } from "../../../src/core/record.ts";
import { identityText } from "../../../src/stores/codec.ts";
import type { Replaced, Standing } from "../../../src/stores/store.ts";
import { type Mutant, overwrite, records, verbs, writes } from "./mutant.ts";

/** Wrong ways to claim and to compare-and-set. */
export const writingMutants: readonly Mutant[] = [
  {
    fault: "looks first and inserts afterwards",
    killedBy: ["insert/one-winner"],
    make: verbs((store) => ({
      insert: async (write) => {
        const { record, now } = await store.read(write.identity);
        if (record !== null) return { inserted: false, record, now };
        return { inserted: true, record: await overwrite(store, write), now };
      },
    })),
  },
  {
    fault: "an insert writes over the record that stands",
    killedBy: ["insert/loser-rewrites-nothing", "insert/one-winner", "insert/loser-cannot-write-on"],
    make: verbs((store) => ({
      insert: async (write) => {
        const before = await store.insert(write);
        return before.inserted ? before : { ...before, record: await overwrite(store, write) };
      },
    })),
  },
  {
    fault: "a losing insert touches the row without changing it",
    killedBy: ["insert/loser-rewrites-nothing"],
    make: verbs((store) => ({
      insert: async (write) => {
        const standing = await store.insert(write);
        const { record } = standing;
        if (standing.inserted || record.state !== "in_progress") return standing;
        const times = { createdAt: { at: record.createdAt }, claimedAt: { at: record.claimedAt } };
        const same = { ...record, ...times, steps: new Map(), leaseUntil: { at: record.leaseUntil } };
        await store.replace(record, same, "wait");
        return standing;
      },
    })),
  },
  {
    fault: "a repeated insert begins another attempt",
    killedBy: ["insert/repeat-is-recognised", "insert/late-repeat-changes-nothing"],
    make: verbs((store) => ({
      insert: async (write) => {
        const standing = await store.insert(write);
        if (standing.inserted || standing.record.owner !== write.owner) return standing;
        return {
          ...standing,
          record: await overwrite(store, { ...write, writeId: `${write.writeId}-again` }),
        };
      },
    })),
  },
  {
    fault: "a losing insert hands back the first version that it remembers",
    killedBy: ["insert/loser-sees-the-latest", "insert/late-repeat-changes-nothing"],
    make: verbs((store) => {
      const first = new Map<string, KeyRecord>();
      return {
        insert: async (write) => {
          const standing = await store.insert(write);
          const name = identityText(write.identity);
          const record = first.get(name) ?? standing.record;
          first.set(name, record);
          return { ...standing, record };
        },
      };
    }),
  },
  {
    fault: "an insert fails while any other is under way",
    killedBy: ["insert/identities-do-not-disturb-each-other"],
    make: verbs((store) => {
      let busy: Promise<Standing> | null = null;
      return {
        insert: async (write) => {
          if (busy !== null) return { ...(await busy), inserted: false };
          busy = store.insert(write);
          const standing = await busy;
          await Promise.resolve();
          busy = null;
          return standing;
        },
      };
    }),
  },
  {
    fault: "compares the owner alone, and not the revision",
    killedBy: ["replace/old-revision-is-stale", "replace/repeat-after-another-write-is-stale"],
    make: verbs((store) => ({
      replace: async (seen, write, patience) => {
        const { record } = await store.read(seen.identity);
        const revision = record?.owner === seen.owner ? record.revision : seen.revision;
        return store.replace({ ...seen, revision }, write, patience);
      },
    })),
  },
  {
    fault: "compares the revision alone, and not the owner",
    killedBy: ["replace/old-owner-is-stale", "insert/loser-cannot-write-on"],
    make: verbs((store) => ({
      replace: async (seen, write, patience) => {
        const { record } = await store.read(seen.identity);
        return store.replace({ ...seen, owner: record?.owner ?? seen.owner }, write, patience);
      },
    })),
  },
  {
    fault: "compares first and writes afterwards",
    killedBy: ["replace/one-winner"],
    make: verbs((store) => ({
      replace: async (seen, write, patience) => {
        const { record, now } = await store.read(seen.identity);
        if (record?.owner !== seen.owner || record.revision !== seen.revision) {
          return store.replace(seen, write, patience);
        }
        return { kind: "replaced", record: await overwrite(store, write), now };
      },
    })),
  },
  {
    fault: "a replacement creates what is not there",
    killedBy: ["replace/nothing-to-replace-is-stale"],
    make: verbs((store) => ({
      replace: async (seen, write, patience): Promise<Replaced> => {
        const replaced = await store.replace(seen, write, patience);
        if (replaced.record !== null) return replaced;
        return { kind: "replaced", record: (await store.insert(write)).record, now: replaced.now };
      },
    })),
  },
  {
    fault: "the revision stays as it is",
    killedBy: ["replace/revision-grows-by-one"],
    make: (subject) => {
      const revisionIsOne = verbs((store) => ({
        replace: async (seen, write, patience) => {
          const { record } = await store.read(seen.identity);
          return store.replace({ ...seen, revision: record?.revision ?? seen.revision }, write, patience);
        },
      }));
      return records((record) => ({ ...record, revision: 1 }))(revisionIsOne(subject));
    },
  },
  {
    fault: "a repeat is not recognised by its write id",
    killedBy: ["replace/repeat-succeeds", "replace/repeated-takeover-is-one-attempt"],
    make: verbs((store) => ({
      replace: async (seen, write, patience) => {
        const looked = await store.read(seen.identity);
        const stands = looked.record?.owner === seen.owner && looked.record.revision === seen.revision;
        return stands ? store.replace(seen, write, patience) : { kind: "stale", ...looked };
      },
    })),
  },
  {
    fault: "a repeat is applied a second time",
    killedBy: ["replace/repeat-succeeds", "replace/repeated-takeover-is-one-attempt"],
    make: verbs((store) => ({
      replace: async (seen, write, patience) => {
        const { record } = await store.read(seen.identity);
        if (record?.writeId !== write.writeId) return store.replace(seen, write, patience);
        return store.replace(record, { ...write, writeId: `${write.writeId}-again` }, patience);
      },
    })),
  },
  {
    fault: "any write id that it has ever seen makes a repeat",
    killedBy: ["replace/repeat-after-another-write-is-stale", "replace/write-id-belongs-to-its-record"],
    make: verbs((store) => {
      const known = new Set<string>();
      return {
        insert: (write) => {
          known.add(write.writeId);
          return store.insert(write);
        },
        replace: async (seen, write, patience) => {
          const isRepeat = known.has(write.writeId);
          known.add(write.writeId);
          const replaced = await store.replace(seen, write, patience);
          if (!isRepeat || replaced.record === null) return replaced;
          return { kind: "replaced", record: replaced.record, now: replaced.now };
        },
      };
    }),
  },
  {
    fault: "a takeover keeps the attempt's number",
    killedBy: ["replace/attempts-grow", "replace/attempts-grow-for-a-look"],
    make: verbs((store) => ({
      replace: async (seen, write, patience) => {
        const { record } = await store.read(seen.identity);
        const attempt = write.attempt === "next" ? (record?.attempt ?? "next") : write.attempt;
        return store.replace(seen, { ...write, attempt }, patience);
      },
    })),
  },
  {
    fault: "attempts are counted per record, so that a purged one begins anew",
    killedBy: ["purge/attempts-are-not-reused"],
    make: verbs((store) => {
      const nextOf = async (identity: Identity) => ((await store.read(identity)).record?.attempt ?? 0) + 1;
      return {
        insert: async (write) => store.insert({ ...write, attempt: await nextOf(write.identity) }),
        replace: async (seen, write, patience) => {
          const attempt = write.attempt === "next" ? await nextOf(seen.identity) : write.attempt;
          return store.replace(seen, { ...write, attempt }, patience);
        },
      };
    }),
  },
  {
    fault: "every write is of a new attempt",
    killedBy: ["replace/next-version-stands"],
    make: writes((write) => ({ ...write, attempt: "next" })),
  },
];
