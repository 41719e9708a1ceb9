import type { Identity } from "../../src/core/record.ts";
import type { DueQuery, Store, TransactionalStore } from "../../src/stores/store.ts";
import type { OpenTx } from "./open-tx.ts";
import { fenced, transaction, within } from "./units.ts";
import { sent, type Wire } from "./wire.ts";

/** The store as one process reaches it: every call is a happening, and may go wrong in every way. */
export type SimulatedStore = TransactionalStore<OpenTx>;

export function simulatedStore(wire: Wire): SimulatedStore {
  const { database, process } = wire;
  const by = process.name;
  return {
    ...around(wire),
    insert: (write) => sent(wire, "insert", () => database.insert(write, null, by)),
    replace: (seen, write, patience) =>
      sent(wire, `replace by ${write.state}`, () => database.replace({ seen, write, patience }, null, by)),
    read: (identity) => sent(wire, "read", () => database.read(identity, null)),
    due: (query: DueQuery) => sent(wire, "due", () => database.due(query)),
    purge: (limit) => sent(wire, "purge", () => database.purge(limit)),
    settles: "async",
    transaction: (work) => transaction(wire, work),
    fenced: (ground, work) => fenced(wire, ground, work),
    within: (tx) => within(wire, tx),
  };
}

/** What has nothing to do with a record is not interleaved. */
function around({ library, database }: Wire): Omit<Store, "insert" | "replace" | "read" | "due" | "purge"> & {
  readonly recordId: (identity: Identity) => Uint8Array;
} {
  return {
    name: "simulated",
    capabilities: CAPABILITIES,
    list: async () => ({ records: [], damaged: 0, now: database.now() }),
    count: () => Promise.reject(new library.OncekeyError("configuration", "Nobody counts here.")),
    audit: async () => {},
    audits: async () => [],
    beat: async () => {},
    beats: async () => [],
    check: async () => {},
    close: async () => {},
    recordId: () => NO_ID,
  };
}

const NO_ID = new Uint8Array(16);

const CAPABILITIES: Store["capabilities"] = {
  ...{ transactions: true, durable: true, nativeExpiry: false, timePrecisionMs: 1, maxRecordBytes: 1e9 },
};
