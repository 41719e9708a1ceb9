import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { CLOCKS } from "./clocks.ts";
import { bankTimesIn, LOST_REQUESTS, type Plan, type Times } from "./plan.ts";
import { openSlot, type Slot } from "./slot.ts";

/** Every process of a run but the database. */
export interface Cluster {
  readonly servers: readonly Slot[];
  /** The servers, and a process of their kind that nobody asks anything. */
  readonly workers: readonly Slot[];
  readonly bank: Slot;
  readonly putFaults: (faults: Readonly<Record<string, unknown>>) => Promise<boolean>;
  readonly ledger: () => Promise<readonly Readonly<Record<string, unknown>>[]>;
  readonly close: () => Promise<void>;
}

/** The ways to the database: one on which nothing is cut off, and the one of the last server and of the worker. */
export interface DatabaseUrls {
  readonly direct: string;
  readonly cut: string;
}

const SERVERS = 3;

const SERVER = fileURLToPath(new URL("child/server.mjs", import.meta.url));
const FRONT = fileURLToPath(new URL("child/front-bank.mjs", import.meta.url));
const BANK = fileURLToPath(new URL("../../../examples/settlement/dist/bank/main.js", import.meta.url));

/** Starts a bank, the front of it that does not deduplicate, the servers, and a worker. */
export async function openCluster(plan: Plan, times: Times, urls: DatabaseUrls): Promise<Cluster> {
  const { seed } = plan;
  const dataDir = mkdtempSync(join(tmpdir(), "oncekey-harness-"));
  const bank = await openSlot({ name: "bank", script: BANK, seed, env: { DATA_DIR: dataDir } });
  const env = { BANK_URL: bank.url };
  const front = await openSlot({ name: "front", script: FRONT, seed, env });
  const open = (name: string, number: number) => {
    const databaseUrl = number >= SERVERS - 1 ? urls.cut : urls.direct;
    const own = { ...envOf(plan, times, databaseUrl), ...env, FRONT_URL: front.url, ROLE: name };
    return openSlot({
      name,
      script: SERVER,
      seed: seed + 977 * number,
      env: { ...own, ...clockOf(plan, number) },
    });
  };
  const servers = await Promise.all(Array.from({ length: SERVERS }, (_, n) => open(`server ${n}`, n)));
  const worker = await open("worker", SERVERS);
  const all = [...servers, worker, front, bank];
  return {
    ...{ servers, bank, workers: [...servers, worker] },
    putFaults: async (faults) => {
      const headers = { "content-type": "application/json" };
      const request = { method: "PUT", headers, body: JSON.stringify(faults) };
      const answer = await fetch(`${bank.url}/faults`, request).catch(() => null);
      return answer?.ok === true;
    },
    ledger: async () => {
      const entries: unknown = await (await fetch(`${bank.url}/ledger`)).json();
      if (!Array.isArray(entries)) throw new Error("The bank's ledger is no list.");
      return entries;
    },
    close: async () => {
      await Promise.all(all.map((slot) => slot.close()));
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

function envOf({ mutant }: Plan, times: Times, databaseUrl: string): Readonly<Record<string, string>> {
  const { timeoutMs } = bankTimesIn(times);
  const ticks = { sweep: times.lease / 4, reconcile: times.lease / 5, purge: times.lease / 2 };
  const settings = { engine: times, bankTimeoutMs: timeoutMs, lostRequests: LOST_REQUESTS, ticks };
  return { DATABASE_URL: databaseUrl, MUTANT: mutant, SETTINGS: JSON.stringify(settings) };
}

/** One process lives an hour in the future, another one in the past; what all share is the monotonic clock. */
function clockOf({ faketime }: Plan, number: number): Readonly<Record<string, string>> {
  const offset = CLOCKS[number - 1];
  if (faketime === null || offset === undefined) return {};
  return {
    ...{ LD_PRELOAD: faketime, FAKETIME: offset },
    ...{ DONT_FAKE_MONOTONIC: "1", FAKETIME_DONT_FAKE_MONOTONIC: "1" },
  };
}
