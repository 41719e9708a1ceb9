import { RecordCorrupt } from "../../../src/errors.ts";
import { recordId } from "../../../src/stores/codec.ts";
import type { Looked, Replaced, Standing, Store } from "../../../src/stores/store.ts";
import { afterwards, inside, type Mutant, transactions, verbs } from "./mutant.ts";

/** Wrong ways to keep together what belongs together, and to meet what is damaged. */
export const transactionMutants: readonly Mutant[] = [
  {
    fault: "the id of a record is that of its principal",
    of: "SQLite",
    killedBy: ["identity/record-id-is-its-own"],
    make: transactions((store) => ({
      recordId: ({ principal }) => store.recordId({ kind: "http", principal, key: "any" }),
    })),
  },
  {
    fault: "the id of a record is handed out as the store's own bytes",
    of: "SQLite",
    killedBy: ["identity/record-id-is-its-own"],
    make: transactions(() => ({ recordId })),
  },
  {
    fault: "a unit that rolls back is committed",
    of: "SQLite",
    killedBy: ["transaction/rollback-keeps-nothing"],
    make: transactions((store) => ({
      transaction: (work) =>
        store.transaction((tx) => afterwards(work(tx), ({ value }) => ({ kind: "commit", value }))),
    })),
  },
  {
    fault: "a unit that throws is committed",
    of: "SQLite",
    killedBy: ["transaction/throw-keeps-nothing"],
    make: transactions((store) => ({
      transaction: async (work) => {
        const failures: unknown[] = [];
        const values = await store.transaction((tx) => {
          try {
            return afterwards(work(tx), (end) => ({ ...end, value: [end.value] }));
          } catch (error) {
            failures.push(error);
            return { kind: "commit", value: [] };
          }
        });
        for (const value of values) return value;
        throw failures[0];
      },
    })),
  },
  {
    fault: "a commit is lost",
    of: "SQLite",
    killedBy: ["transaction/commit-keeps-all"],
    make: transactions((store) => ({
      transaction: (work) =>
        store.transaction((tx) => afterwards(work(tx), ({ value }) => ({ kind: "rollback", value }))),
    })),
  },
  {
    fault: "an insert that loses fails inside a transaction",
    of: "SQLite",
    killedBy: ["transaction/losing-insert-leaves-it-usable"],
    make: inside((within) => ({
      insert: (write) =>
        afterwards(within.insert(write), (standing) => {
          if (!standing.inserted && standing.record.owner !== write.owner) throw new Error("duplicate key");
          return standing;
        }),
    })),
  },
  {
    fault: "a stale replacement fails inside a transaction",
    of: "SQLite",
    killedBy: ["transaction/stale-replacement-leaves-it-usable"],
    make: inside((within) => ({
      replace: (seen, write, patience) =>
        afterwards(within.replace(seen, write, patience), (replaced) => {
          if (replaced.kind === "stale") throw new Error("could not serialize access");
          return replaced;
        }),
    })),
  },
  {
    fault: "a read inside a transaction does not see its writes",
    of: "SQLite",
    killedBy: ["transaction/sees-its-own-writes"],
    make: inside((within) => ({
      read: (identity) => afterwards(within.read(identity), (looked) => ({ ...looked, record: null })),
    })),
  },
  {
    fault: "nothing can be claimed",
    of: "SQLite",
    killedBy: ["transaction/claim-of-a-free-identity"],
    make: inside(() => ({ tryClaim: () => false })),
  },
  {
    fault: "a unit is tried out before it is run",
    of: "SQLite",
    killedBy: ["transaction/runs-the-unit-once"],
    make: transactions((store) => ({
      transaction: async (work) => {
        await store.transaction((tx) => afterwards(work(tx), () => ({ kind: "rollback", value: null })));
        return store.transaction(work);
      },
    })),
  },
  {
    fault: "the verbs inside a transaction go round it",
    of: "PostgreSQL",
    killedBy: [
      "simultaneous/uncommitted-is-invisible",
      "transaction/rollback-keeps-nothing",
      "transaction/throw-keeps-nothing",
    ],
    make: transactions((store) => ({
      within: (tx) => {
        const { tryClaim } = store.within(tx);
        return { insert: store.insert, replace: store.replace, read: store.read, tryClaim };
      },
    })),
  },
  {
    fault: "whoever asks may claim",
    of: "PostgreSQL",
    killedBy: ["simultaneous/one-claims"],
    make: inside(() => ({ tryClaim: () => true })),
  },
  {
    fault: "an impatient replacement waits all the same",
    of: "PostgreSQL",
    killedBy: ["simultaneous/a-held-row-is-locked"],
    make: replaces((store, [seen, write]) => store.replace(seen, write, "wait")),
  },
  {
    fault: "a row that is held is said to be stale",
    of: "PostgreSQL",
    killedBy: ["simultaneous/a-held-row-is-locked"],
    make: replaces(async (store, verb) => {
      const replaced = await store.replace(...verb);
      return replaced.kind === "locked" ? { ...replaced, kind: "stale" } : replaced;
    }),
  },
  {
    fault: "an old version is said to be locked",
    of: "PostgreSQL",
    killedBy: ["simultaneous/an-old-version-is-stale-also-while-held"],
    make: replaces(async (store, verb) => {
      const { record, ...replaced } = await store.replace(...verb);
      if (replaced.kind !== "stale" || record === null) return store.replace(...verb);
      return { ...replaced, kind: "locked", record };
    }),
  },
  {
    fault: "a patient replacement does not wait",
    of: "PostgreSQL",
    killedBy: ["simultaneous/waiting-settles-it", "simultaneous/lost-commit-is-settled-by-repeating"],
    make: replaces((store, [seen, write]) => store.replace(seen, write, "never")),
  },
  {
    fault: "an insert that had to wait takes itself for a loser",
    of: "PostgreSQL",
    killedBy: ["simultaneous/inserts-are-settled"],
    make: verbs((store) => ({
      insert: async (write): Promise<Standing> => {
        const askedAt = performance.now();
        const standing = await store.insert(write);
        return { ...standing, inserted: standing.inserted && performance.now() - askedAt < 40 };
      },
    })),
  },
  {
    fault: "all writes wait for an open transaction",
    of: "PostgreSQL",
    killedBy: ["simultaneous/others-go-on"],
    make: (subject) => {
      let open: Promise<unknown> = Promise.resolve();
      return transactions((store) => ({
        transaction: (work) => {
          const result = store.transaction(work);
          open = result.catch(() => {});
          return result;
        },
        insert: async (write) => {
          await open;
          return store.insert(write);
        },
      }))(subject);
    },
  },
  {
    fault: "a damaged record counts as none",
    of: "SQLite",
    killedBy: ["damage/is-said"],
    make: verbs((store) => ({
      read: (identity) =>
        store.read(identity).catch((error: unknown): Looked => {
          if (error instanceof RecordCorrupt) return { record: null, now: 0 };
          throw error;
        }),
    })),
  },
  {
    fault: "one damaged record hides a whole list",
    of: "SQLite",
    killedBy: ["damage/hides-nothing"],
    make: verbs((store) => ({
      list: async (query) => {
        const listed = await store.list(query);
        return listed.damaged === 0 ? listed : { ...listed, records: [] };
      },
    })),
  },
  {
    fault: "a page counts damaged records that the next one counts too",
    killedBy: ["damage/is-counted-once"],
    make: verbs((store) => ({
      due: async (query) => {
        const { after: _, ...whole } = query;
        const { damaged } = await store.due({ ...whole, limit: 100_000 });
        return { ...(await store.due(query)), damaged };
      },
    })),
  },
  {
    fault: "a purge stops at a damaged record",
    of: "SQLite",
    killedBy: ["damage/stops-nothing"],
    make: verbs((store) => ({
      purge: async (limit) => ((await isDamaged(store)) ? 0 : store.purge(limit)),
    })),
  },
];

function replaces(
  replace: (store: Store, verb: Parameters<Store["replace"]>) => Promise<Replaced>,
): Mutant["make"] {
  return verbs((store) => ({ replace: (...verb) => replace(store, verb) }));
}

async function isDamaged(store: Store): Promise<boolean> {
  return (await store.list({ limit: 100_000 })).damaged > 0;
}
