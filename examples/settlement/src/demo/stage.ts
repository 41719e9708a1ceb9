import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type Client, createClient, type Entries, entriesIn, type Ordered, settlementsAt } from "./client.ts";
import { freePort, type Started, startProgram } from "./processes.ts";

/** Where the demonstration plays: a bank and a server, processes of their own, on one database. */
export interface Stage {
  readonly bank: Started;
  readonly server: () => Started;
  readonly client: Client;
  /** A new order under a new key, noted for the count at the end. */
  readonly order: (name: string) => Ordered;
  readonly ordered: readonly Ordered[];
  /** Kills the server with `kill -9`. */
  readonly killServer: () => Promise<void>;
  /** Starts it again, on the same port and the same database. */
  readonly restartServer: () => Promise<void>;
  readonly setFaults: (faults: object) => Promise<void>;
  /** Every payment that the bank really made. */
  readonly ledger: () => Promise<Entries>;
  /** Every settlement that the service shows, and that was not there before. */
  readonly settlements: () => Promise<Entries>;
  /** Says one line. */
  readonly say: (line: string) => void;
}

/** The times of a real service are minutes; here nobody wants to wait for them. */
const SHORT = {
  ...{ REQUEST_TIMEOUT: "6s", LEASE: "8s", BANK_TIMEOUT: "4s", STORE_TIMEOUT: "10s" },
  ...{ SWEEP_INTERVAL: "500ms", SWEEP_GRACE: "500ms", RECONCILE_INTERVAL: "1s" },
};

export async function openStage(folder: string, databaseUrl: string): Promise<Stage> {
  const bank = await startProgram("bank/main", { PORT: "0", DATA_DIR: folder });
  const places = { DATABASE_URL: databaseUrl, DATA_DIR: folder, BANK_URL: bank.url };
  const environment = { ...SHORT, ...places, PORT: await freePort(), TOKENS: "", WORKERS: "on" };
  let server = await startProgram("main", environment);
  const ordered: Ordered[] = [];
  const run = randomUUID().slice(0, 8);
  const earlier = new Set((await settlementsAt(server.url)).map(({ id }) => id));
  return {
    ...{ bank, ordered, server: () => server, client: createClient(() => server.url) },
    order: (name) => {
      const order = { key: `${name}-${run}`, amount: `${10 + ordered.length}.50` };
      ordered.push(order);
      return order;
    },
    killServer: () => server.kill(),
    restartServer: async () => {
      server = await startProgram("main", environment);
    },
    setFaults: async (faults) => {
      const body = JSON.stringify(faults);
      const { ok } = await fetch(`${bank.url}/faults`, { method: "PUT", body });
      if (!ok) throw new Error("The bank does not know these faults.");
    },
    ledger: async () => entriesIn(await (await fetch(`${bank.url}/ledger`)).json()),
    settlements: async () => (await settlementsAt(server.url)).filter(({ id }) => !earlier.has(id)),
    say: (line) => console.log(line),
  };
}

/** Waits until the bank has paid this many orders. */
export async function untilPaid({ ledger }: Stage, payments: number): Promise<void> {
  const deadlineMs = performance.now() + 30_000;
  while ((await ledger()).length < payments) {
    if (performance.now() > deadlineMs) throw new Error("The bank did not pay within half a minute.");
    await pause(20);
  }
}
