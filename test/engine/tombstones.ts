import type { Identity } from "../../src/core/record.ts";
import { seen } from "../../src/core/transition.ts";
import type { Store } from "../../src/stores/store.ts";

/** Lets the retention of a finished record have ended so long ago, by the store's own clock. */
export async function endedAgo(store: Store, identity: Identity, ms: number): Promise<void> {
  const { record, now } = await store.read(identity);
  if (record === null || !("answer" in record)) throw new Error("There is no finished record.");
  const times = { createdAt: { at: record.createdAt }, claimedAt: { at: record.claimedAt } };
  const over = { ...times, steps: new Map(), retainUntil: { at: now - ms } };
  const replaced = await store.replace(seen(record), { ...record, ...over }, "wait");
  if (replaced.kind !== "replaced") throw new Error("The record is another one.");
}
