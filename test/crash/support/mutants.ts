import type { KeyRecord, RecordWrite, Seen } from "../../../src/core/record.ts";
import { seen } from "../../../src/core/transition.ts";
import { passes } from "../../../src/engine/retry.ts";
import type { Fenced, FencedWork, Ground, UnitBounds, Within } from "../../../src/stores/store.ts";
import type { PostgresStore } from "./postgres-stores.ts";

/** A store that commits effects with their record in a way that a lost COMMIT breaks. */
export interface Mutant {
  readonly fault: string;
  readonly make: (store: PostgresStore) => PostgresStore;
}

export const mutants: readonly Mutant[] = [
  { fault: "a plain read decides what became of a commit that was not answered", make: decidingByRead },
  { fault: "no fence: a unit runs whatever stands, and writes over it", make: unfenced },
];

/** Where its commit was not answered it looks, and where the old version stands it takes the commit for lost. */
function decidingByRead(store: PostgresStore): PostgresStore {
  return {
    ...store,
    fenced: async (ground, work, bounds) => {
      try {
        return await store.fenced(ground, work, bounds);
      } catch (error) {
        if (!passes(error) || ground.kind !== "held") throw error;
        const { record, now } = await store.read(ground.seen.identity);
        if (record === null || !isVersion(record, ground.seen)) return { kind: "refused", record, now };
        return await withoutFence(store, { ground, work, bounds });
      }
    },
  };
}

function unfenced(store: PostgresStore): PostgresStore {
  return {
    ...store,
    fenced: (ground, work, bounds) =>
      ground.kind === "held"
        ? withoutFence(store, { ground, work, bounds })
        : store.fenced(ground, work, bounds),
  };
}

interface Unfenced<Tx, T> {
  readonly ground: Ground;
  readonly work: FencedWork<Tx, T>;
  readonly bounds: UnitBounds | undefined;
}

function withoutFence<T>(
  store: PostgresStore,
  { work, bounds }: Unfenced<Parameters<PostgresStore["within"]>[0], T>,
): Promise<Fenced<T>> {
  return store.transaction(async (tx): Promise<{ kind: "commit" | "rollback"; value: Fenced<T> }> => {
    const end = await work(tx, null);
    const { value } = end;
    if (end.kind === "rollback") return { kind: "rollback", value: { kind: "rolled_back", value } };
    const { record, now } = await overwrite(store.within(tx), end.write);
    return { kind: "commit", value: { kind: "committed", record, now, value } };
  }, bounds);
}

/** Writes over whatever stands, as no store should. */
async function overwrite(within: Within, write: RecordWrite) {
  for (;;) {
    const { record } = await within.read(write.identity);
    if (record === null) throw new Error(`There is no record of ${write.identity.key}.`);
    const replaced = await within.replace(seen(record), write, "wait");
    if (replaced.kind === "replaced") return replaced;
  }
}

function isVersion({ owner, revision }: KeyRecord, version: Seen): boolean {
  return owner === version.owner && revision === version.revision;
}
