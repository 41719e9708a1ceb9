import { setTimeout as sleep } from "node:timers/promises";
import { OncekeyError, RecordCorrupt } from "../../../src/errors.ts";
import type { FencedEnd, FencedWork, UnitEnd } from "../../../src/stores/store.ts";
import { ends, fences, grounds, handMade, identityOf, on, type Transactional, writeOver } from "./fencing.ts";
import { afterwards, inside, type Mutant } from "./mutant.ts";

/** Wrong ways to run a unit on its ground. */
export const fencedMutants: readonly Mutant[] = [
  {
    fault: "a unit runs on whatever stands",
    of: "SQLite",
    killedBy: ["fenced/another-version-is-refused", "fenced/repeat-is-refused"],
    make: grounds((ground, record) => (record === null ? ground : on(ground, record))),
  },
  {
    fault: "a unit's ground is compared by revision alone",
    of: "SQLite",
    killedBy: ["fenced/owner-and-revision-both-count"],
    make: grounds((ground, record) =>
      ground.seen === null || ground.seen.revision !== record?.revision ? ground : on(ground, record),
    ),
  },
  {
    fault: "a unit's ground is compared by owner alone",
    of: "SQLite",
    killedBy: ["fenced/owner-and-revision-both-count", "fenced/another-version-is-refused"],
    make: grounds((ground, record) =>
      ground.seen === null || ground.seen.owner !== record?.owner ? ground : on(ground, record),
    ),
  },
  {
    fault: "a version that is not there is claimed as if it had never been",
    of: "SQLite",
    killedBy: ["fenced/no-record-is-refused"],
    make: grounds((ground, record) =>
      record === null ? { kind: "claimable", identity: identityOf(ground), seen: null } : ground,
    ),
  },
  {
    fault: "a unit is tried out before its ground is looked at",
    of: "SQLite",
    killedBy: ["fenced/runs-the-unit-once", "fenced/another-version-is-refused"],
    make: fences(async (store, ground, work) => {
      await store.transaction((tx) => afterwards(work(tx, null), () => ({ kind: "rollback", value: null })));
      return store.fenced(ground, work);
    }),
  },
  {
    fault: "a unit's write is committed without what the unit did",
    of: "SQLite",
    killedBy: ["fenced/commit-keeps-all"],
    make: fences(async (store, ground, work) => {
      const end = await store.fenced(ground, (tx, number) =>
        afterwards(work(tx, number), (value) => ({ kind: "rollback", value })),
      );
      if (end.kind === "refused" || end.kind === "busy") return end;
      return store.fenced(ground, () => end.value);
    }),
  },
  {
    fault: "a unit that rolls back is committed, all but its write",
    of: "SQLite",
    killedBy: ["fenced/rollback-keeps-nothing"],
    make: fences(async (store, ground, work) => {
      const end = await store.fenced(ground, work);
      if (end.kind === "rolled_back") await keepEffect(store, work);
      return end;
    }),
  },
  {
    fault: "a unit that throws is committed, all but its write",
    of: "SQLite",
    killedBy: ["fenced/throw-keeps-nothing"],
    make: fences((store, ground, work) =>
      store.fenced(ground, work).catch(async (error: unknown) => {
        await keepEffect(store, work);
        throw error;
      }),
    ),
  },
  {
    fault: "a unit's own error is lost",
    of: "SQLite",
    killedBy: ["fenced/throw-keeps-nothing"],
    make: fences((store, ground, work) =>
      store.fenced(ground, work).catch(() => {
        throw new Error("The transaction was rolled back.");
      }),
    ),
  },
  {
    fault: "a unit's last write is not compared",
    of: "SQLite",
    killedBy: ["fenced/own-change-is-refused"],
    make: handMade({ write: writeOver }),
  },
  {
    fault: "a unit's ground is looked at outside its transaction",
    of: "SQLite",
    killedBy: ["fenced/one-claim-commits"],
    make: handMade({ looks: "outside", write: writeOver }),
  },
  {
    fault: "a repeated unit is run again on what it committed itself",
    of: "SQLite",
    killedBy: ["fenced/repeat-is-refused"],
    make: (subject) => {
      const mine = new Set<string>();
      return fences(async (store, ground, work) => {
        const { record } = await store.read(identityOf(ground));
        const again = record !== null && mine.has(record.owner) ? on(ground, record) : ground;
        const end = await store.fenced(again, work);
        if (end.kind === "committed") mine.add(end.record.owner);
        return end;
      })(subject);
    },
  },
  {
    fault: "a unit is refused without a word about what stands",
    of: "SQLite",
    killedBy: ["fenced/another-version-is-refused", "fenced/repeat-is-refused"],
    make: ends((end) => (end.kind === "refused" ? { ...end, record: null } : end)),
  },
  {
    fault: "a claim's number counts the attempts of its record",
    of: "SQLite",
    killedBy: ["fenced/claim-has-a-new-number"],
    make: fences(async (store, ground, work) => {
      const { record } = await store.read(identityOf(ground));
      const next = (record?.attempt ?? 0) + 1;
      return store.fenced(ground, (tx, number) => work(tx, number === null ? null : next));
    }),
  },
  {
    fault: "every unit is given a number",
    of: "SQLite",
    killedBy: ["fenced/claim-has-a-new-number"],
    make: fences((store, ground, work) => store.fenced(ground, (tx, number) => work(tx, number ?? 1))),
  },
  {
    fault: "a unit's write that is too large is kept without its answer",
    of: "PostgreSQL",
    killedBy: ["fenced/too-large-keeps-nothing"],
    make: fences((store, ground, work) =>
      store.fenced(ground, work).catch((error: unknown) => {
        if (!(error instanceof OncekeyError && error.code === "record_too_large")) throw error;
        return store.fenced(ground, (tx, number) => afterwards(work(tx, number), withoutBody));
      }),
    ),
  },
  {
    fault: "a damaged record counts as another version",
    of: "SQLite",
    killedBy: ["fenced/damage-is-said"],
    make: fences((store, ground, work) =>
      store.fenced(ground, work).catch((error: unknown) => {
        if (error instanceof RecordCorrupt) return { kind: "refused", record: null, now: 0 };
        throw error;
      }),
    ),
  },
  {
    fault: "a unit's ground is read and not held",
    of: "PostgreSQL",
    killedBy: ["fenced/ground-stays", "fenced/held-waits-and-judges", "fenced/claim-is-busy-at-once"],
    make: handMade({}),
  },
  {
    fault: "a claim takes what was inserted while it ran",
    of: "PostgreSQL",
    killedBy: ["fenced/insert-in-between-is-refused"],
    make: handMade({ write: writeOver }),
  },
  {
    fault: "a claim that meets another one waits for its end",
    of: "PostgreSQL",
    killedBy: ["fenced/claim-is-busy-at-once", "fenced/held-version-is-busy"],
    make: fences(async (store, ground, work) => {
      for (;;) {
        const end = await store.fenced(ground, work);
        if (end.kind !== "busy") return end;
        await sleep(20);
      }
    }),
  },
  {
    fault: "a claim that meets another one is refused",
    of: "PostgreSQL",
    killedBy: ["fenced/claim-is-busy-at-once", "fenced/held-version-is-busy"],
    make: ends((end) => (end.kind === "busy" ? { kind: "refused", record: null, now: 0 } : end)),
  },
  {
    fault: "a claim does not see who tried before",
    of: "PostgreSQL",
    killedBy: ["fenced/claim-is-busy-at-once"],
    make: inside(() => ({ tryClaim: () => true })),
  },
  {
    fault: "one claim makes all others busy",
    of: "PostgreSQL",
    killedBy: ["fenced/claim-is-busy-at-once"],
    make: (subject) => {
      let open = 0;
      return fences(async (store, ground, work) => {
        if (ground.kind === "held") return store.fenced(ground, work);
        if (open > 0) return { kind: "busy" };
        open += 1;
        return store.fenced(ground, work).finally(() => {
          open -= 1;
        });
      })(subject);
    },
  },
  {
    fault: "a claim that comes too late is busy",
    of: "PostgreSQL",
    killedBy: ["fenced/late-claim-is-refused-at-once"],
    make: ends((end, ground) =>
      ground.kind === "claimable" && end.kind === "refused" ? { kind: "busy" } : end,
    ),
  },
  {
    fault: "a unit on a held version does not wait",
    of: "PostgreSQL",
    killedBy: ["fenced/held-waits-and-judges"],
    make: grounds((ground) =>
      ground.kind === "held" ? { ...ground, kind: "claimable", identity: ground.seen.identity } : ground,
    ),
  },
];

/** Runs a unit and keeps all that it did, however it ends. */
async function keepEffect<T>(store: Transactional, work: FencedWork<unknown, T>): Promise<void> {
  const kept: UnitEnd<null> = { kind: "commit", value: null };
  await store.transaction((tx) => {
    try {
      return afterwards(work(tx, null), () => kept);
    } catch {
      return kept;
    }
  });
}

function withoutBody<T>(end: FencedEnd<T>): FencedEnd<T> {
  if (end.kind === "rollback" || !("answer" in end.write)) return end;
  return { ...end, write: { ...end.write, answer: { ...end.write.answer, body: null } } };
}
