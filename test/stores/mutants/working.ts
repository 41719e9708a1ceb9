import type { Identity, KeyRecord } from "../../../src/core/record.ts";
import type { Counts, Listed, Store } from "../../../src/stores/store.ts";
import { type Mutant, remove, verbs } from "./mutant.ts";

/** Wrong ways to show workers and people what there is, and to forget it. */
export const workingMutants: readonly Mutant[] = [
  {
    fault: "the list of stale ones forgets the grace",
    killedBy: ["due/stale-is-beyond-the-grace", "due/comes-by-itself"],
    make: verbs((store) => ({
      due: (query) => store.due(query.kind === "stale" ? { ...query, graceMs: 0 } : query),
    })),
  },
  {
    fault: "whatever was claimed long ago is stale, renewed or not",
    killedBy: ["due/only-running-ones-are-stale"],
    make: dueFrom((store, query) => {
      if (query.kind === "looks") return store.due(query);
      return store.list({ limit: query.limit, state: "in_progress" });
    }),
  },
  {
    fault: "every unknown is to be looked at",
    killedBy: ["due/looks-whose-time-has-come"],
    make: dueFrom((store, query) => {
      if (query.kind === "stale") return store.due(query);
      return store.list({ limit: query.limit, state: "unknown" });
    }),
  },
  {
    fault: "the shortest overdue come first",
    killedBy: ["due/longest-overdue-first", "due/no-more-than-asked-for"],
    make: dueFrom(async (store, query) => {
      const all = await store.due({ ...query, limit: 100_000 });
      return { ...all, records: all.records.toReversed().slice(0, query.limit) };
    }),
  },
  {
    fault: "all that is due comes back, whatever was asked for",
    killedBy: ["due/no-more-than-asked-for"],
    make: dueFrom((store, query) => store.due({ ...query, limit: 100_000 })),
  },
  {
    fault: "a page of what is due skips what was due at the instant of the last one",
    killedBy: ["due/pages-follow-on"],
    make: dueFrom(async (store, { after, ...query }) => {
      const all = await store.due({ ...query, limit: 100_000 });
      const rest = all.records.filter((record) => after === undefined || dueAt(record) > after.dueAt);
      return { ...all, records: rest.slice(0, query.limit) };
    }),
  },
  {
    fault: "every page of what is due is the first one",
    killedBy: ["due/pages-follow-on"],
    make: dueFrom((store, { after: _, ...query }) => store.due(query)),
  },
  {
    fault: "a page of what is due goes on behind the last record only while that one is due",
    killedBy: ["due/pages-follow-on"],
    make: dueFrom(async (store, { after, ...query }) => {
      const all = await store.due({ ...query, limit: 100_000 });
      const keys = all.records.map(({ identity }) => JSON.stringify(identity));
      const from = after === undefined ? 0 : keys.indexOf(JSON.stringify(after.identity)) + 1;
      return { ...all, records: all.records.slice(from, from + query.limit) };
    }),
  },
  {
    fault: "what is due is judged by a clock that is ten seconds late",
    killedBy: ["due/comes-by-itself"],
    make: dueFrom(async (store, query) => {
      const all = await store.due(query);
      return { ...all, records: all.records.filter((record) => dueAt(record) < all.now - 10_000) };
    }),
  },
  {
    fault: "what is due is an earlier version",
    killedBy: ["due/shows-the-records-themselves"],
    make: dueFrom(async (store, query) => {
      const all = await store.due(query);
      return { ...all, records: all.records.map((record) => ({ ...record, revision: record.revision - 1 })) };
    }),
  },
  {
    fault: "a purge takes every unknown",
    killedBy: ["purge/never-takes-a-doubt-to-be-ended"],
    make: purgeAlso(({ state }) => state === "unknown"),
  },
  {
    fault: "a purge goes by the age alone",
    killedBy: [
      "purge/never-takes-a-running-one",
      "purge/keeps-what-is-retained",
      "purge/never-takes-a-doubt-to-be-ended",
    ],
    make: purgeAlso(({ createdAt, updatedAt }) => createdAt < updatedAt - 86_400_000),
  },
  {
    fault: "a purge takes all that ended, retained or not",
    killedBy: ["purge/keeps-what-is-retained", "purge/comes-by-itself"],
    make: purgeAlso(({ state }) => state !== "in_progress" && state !== "unknown"),
  },
  {
    fault: "a purge leaves held ones",
    killedBy: ["purge/takes-what-ended"],
    make: verbs((store) => ({
      purge: async (limit) => {
        const { records } = await store.list({ limit: 100_000, disposition: "hold" });
        const gone = await store.purge(limit);
        for (const { attempt: _, ...record } of records) {
          if (record.state !== "unknown" || (await store.read(record.identity)).record !== null) continue;
          const times = { createdAt: { at: record.createdAt }, claimedAt: { at: record.claimedAt } };
          const later = { nextLookAt: null, retainUntil: { inMs: 1_000 }, steps: new Map() };
          await store.insert({ ...record, ...times, ...later, attempt: "next" });
        }
        return gone;
      },
    })),
  },
  {
    fault: "a purge does not stop at its limit",
    killedBy: ["purge/no-more-than-asked-for"],
    make: verbs((store) => ({ purge: (limit) => store.purge(limit * 10) })),
  },
  {
    fault: "a purge says that nothing went",
    killedBy: ["purge/no-more-than-asked-for"],
    make: verbs((store) => ({
      purge: async (limit) => {
        await store.purge(limit);
        return 0;
      },
    })),
  },
  {
    fault: "a purge takes the log along",
    killedBy: ["purge/leaves-the-log"],
    make: verbs((store) => ({
      audits: async (identity) => ((await store.read(identity)).record ? store.audits(identity) : []),
    })),
  },
  {
    fault: "a list compares names without regard to case",
    killedBy: ["list/by-each-filter"],
    make: verbs((store) => ({
      list: async ({ principal, ...query }) => {
        const all = await store.list(query);
        const isAsked = ({ identity }: KeyRecord) =>
          principal === undefined || identity.principal.toLowerCase() === principal.toLowerCase();
        return { ...all, records: all.records.filter(isAsked) };
      },
    })),
  },
  {
    fault: "a list does not look at the disposition",
    killedBy: ["list/by-state-and-disposition"],
    make: verbs((store) => ({ list: ({ disposition: _, ...query }) => store.list(query) })),
  },
  {
    fault: "a list puts the newest record first, and not the newest change",
    killedBy: ["list/newest-change-first"],
    make: verbs((store) => ({
      list: async (query) => {
        const all = await store.list(query);
        return { ...all, records: all.records.toSorted((one, other) => other.createdAt - one.createdAt) };
      },
    })),
  },
  {
    fault: "the next page of a list begins at the next instant",
    killedBy: ["list/pages-meet"],
    make: verbs((store) => ({
      list: async ({ before, ...query }) => {
        if (before === undefined) return store.list(query);
        const all = await store.list({ ...query, limit: 100_000 });
        const rest = all.records.filter(({ updatedAt }) => updatedAt < before.updatedAt);
        return { ...all, records: rest.slice(0, query.limit) };
      },
    })),
  },
  {
    fault: "counts forget who is to end a doubt",
    killedBy: ["count/adds-up"],
    make: counts((all) => ({ ...all, byDisposition: { reconcile: 0, review: 0, hold: 0 } })),
  },
  {
    fault: "counts hold no failures",
    killedBy: ["count/adds-up"],
    make: counts((all) => ({ ...all, byState: { ...all.byState, failed_permanent: 0 } })),
  },
  {
    fault: "what waits for the purge is not counted",
    killedBy: ["count/adds-up"],
    make: counts((all) => ({ ...all, endedNotPurged: 0 })),
  },
  {
    fault: "what waits for the purge is said to wait since now",
    killedBy: ["count/longest-overdue"],
    make: counts((all) => ({ ...all, oldestEndedMs: all.oldestEndedMs === null ? null : 0 })),
  },
  {
    fault: "an old record is as young as its last change",
    killedBy: ["count/oldest-unfinished"],
    make: counts((all) => ({ ...all, oldestUnknownMs: 0 })),
  },
  {
    fault: "the log is read backwards",
    killedBy: ["audit/as-it-was-said"],
    make: verbs((store) => ({ audits: async (identity) => (await store.audits(identity)).toReversed() })),
  },
  {
    fault: "the log is kept by key alone",
    killedBy: ["audit/of-one-identity"],
    make: verbs((store) => {
      const byKey = ({ key }: Identity): Identity => ({ kind: "http", principal: "everybody", key });
      return {
        audit: (entry) => store.audit({ ...entry, identity: byKey(entry.identity) }),
        audits: async (identity) =>
          (await store.audits(byKey(identity))).map((entry) => ({ ...entry, identity })),
      };
    }),
  },
  {
    fault: "a worker beats only once",
    killedBy: ["beat/age-by-the-store-clock"],
    make: verbs((store) => ({
      beat: async (worker) => {
        const known = await store.beats();
        if (!known.some((beat) => beat.worker === worker)) await store.beat(worker);
      },
    })),
  },
  {
    fault: "all workers share one beat",
    killedBy: ["beat/each-worker-for-itself"],
    make: verbs((store) => ({
      beats: async () => {
        const all = await store.beats();
        const ageMs = Math.min(...all.map((beat) => beat.ageMs));
        return all.map((beat) => ({ ...beat, ageMs, beatenAt: beat.beatenAt + beat.ageMs - ageMs }));
      },
    })),
  },
  {
    fault: "its check fails",
    killedBy: ["check/passes"],
    make: verbs(() => ({ check: () => Promise.reject(new Error("The tables are missing.")) })),
  },
];

function dueFrom(due: (store: Store, query: Parameters<Store["due"]>[0]) => Promise<Listed>): Mutant["make"] {
  return verbs((store) => ({ due: (query) => due(store, query) }));
}

function dueAt(record: KeyRecord): number {
  if (record.state === "in_progress") return record.leaseUntil;
  return record.state === "unknown" ? (record.nextLookAt ?? 0) : 0;
}

function purgeAlso(isTaken: (record: KeyRecord) => boolean): Mutant["make"] {
  return verbs((store) => ({
    purge: async (limit) => {
      const { records } = await store.list({ limit: 100_000 });
      for (const record of records.filter(isTaken)) await remove(store, record);
      return store.purge(limit);
    },
  }));
}

function counts(spoil: (counts: Counts) => Counts): Mutant["make"] {
  return verbs((store) => ({ count: async () => spoil(await store.count()) }));
}
