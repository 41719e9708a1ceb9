import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { describe, expect, test } from "vitest";
import { postgresIsHere, sqliteDriver } from "../support/databases.ts";
import { freePort } from "../support/processes.ts";
import { seededRandom } from "../support/seed.ts";
import {
  freshDatabase,
  type Received,
  type Settlement,
  send,
  startSettlement,
} from "../support/settlement.ts";

const KILLS = 20;
const CLIENTS = 12;

/** Short enough that a killed attempt is judged within the test. */
const TIMES = { REQUEST_TIMEOUT: "1s", LEASE: "1500ms", SWEEP_GRACE: "200ms", SWEEP_INTERVAL: "200ms" };

/** Once the killing is over, every key must get its answer within this. */
const SETTLED_WITHIN_MS = 60_000;

const STARTING_BALANCE = 1_000_000;

describe.each(["SQLite", "PostgreSQL"] as const)("transfers on %s", (kind) => {
  test.skipIf(kind === "PostgreSQL" && !postgresIsHere())(
    `${KILLS} times kill -9 under load: one transfer for each key, balanced accounts, nothing stuck or unknown`,
    { timeout: 300_000 },
    async () => {
      const random = seededRandom();
      const database = await freshDatabase(kind);
      try {
        const port = String(await freePort());
        const env = { ...TIMES, DATABASE_URL: database.url, PORT: port, BANK_PORT: String(await freePort()) };
        let server = await startSettlement(env);
        const [from, to] = await openAccounts(server);
        const load = startLoad(server.url, { from, to });
        for (let kill = 0; kill < KILLS; kill++) {
          await sleep(50 + random.below(400));
          server.process.kill("SIGKILL");
          await server.process.exited;
          server = await startSettlement(env);
        }
        const answers = await load.finish();
        expect(answers.size).toBeGreaterThan(KILLS);
        await expectOneTransferEach(server, answers, { from, to });
        await expectNothingLeft(kind, database.url, answers.size);
        server.process.kill("SIGTERM");
        expect(await server.process.exited).toEqual({ code: 0, signal: null });
      } finally {
        await database.remove();
      }
    },
  );
});

interface Accounts {
  readonly from: string;
  readonly to: string;
}

async function openAccounts(server: Settlement): Promise<readonly [string, string]> {
  const opened = async (key: string) => {
    const body = { currency: "EUR", balance: `${STARTING_BALANCE}.00` };
    const answer = await send(`${server.url}/accounts`, { key, body });
    expect(answer?.status, answer?.body.toString()).toBe(201);
    return String(parsed(answer)["id"]);
  };
  return [await opened("account-from"), await opened("account-to")];
}

/** Clients that retry each key until it has a final answer, and stop taking new keys when told. */
function startLoad(url: string, accounts: Accounts) {
  const answers = new Map<string, Received>();
  let deadlineMs = Number.POSITIVE_INFINITY;
  let next = 0;
  const client = async () => {
    while (deadlineMs === Number.POSITIVE_INFINITY) {
      const key = `transfer-${next++}`;
      answers.set(key, await untilFinal(url, key, accounts, () => performance.now() > deadlineMs));
    }
  };
  const clients = Promise.allSettled(Array.from({ length: CLIENTS }, client));
  return {
    finish: async () => {
      deadlineMs = performance.now() + SETTLED_WITHIN_MS;
      for (const client of await clients) if (client.status === "rejected") throw client.reason;
      return answers;
    },
  };
}

async function untilFinal(
  url: string,
  key: string,
  accounts: Accounts,
  tooLate: () => boolean,
): Promise<Received> {
  let last: Received | null = null;
  while (!tooLate()) {
    last = await send(`${url}/transfers`, { key, body: { ...accounts, amount: "0.01", currency: "EUR" } });
    if (last?.status === 201) return last;
    if (last !== null) expect([409, 503, 504], `${key}: ${last.body}`).toContain(last.status);
    await sleep(40);
  }
  throw new Error(`${key} has no final answer; the last one was ${last?.status} ${last?.body}`);
}

async function expectOneTransferEach(
  server: Settlement,
  answers: ReadonlyMap<string, Received>,
  { from, to }: Accounts,
): Promise<void> {
  const ids = new Set([...answers.values()].map((answer) => parsed(answer)["id"]));
  expect(ids.size).toBe(answers.size);
  const spent = answers.size / 100;
  const balance = async (id: string) =>
    Number(parsed(await send(`${server.url}/accounts/${id}`, { method: "GET" }))["balance"]);
  expect(await balance(from)).toBeCloseTo(STARTING_BALANCE - spent, 5);
  expect(await balance(to)).toBeCloseTo(STARTING_BALANCE + spent, 5);
  const [key, first] = [...answers][0] ?? ["", null];
  const replayed = await send(`${server.url}/transfers`, {
    key,
    body: { from, to, amount: "0.01", currency: "EUR" },
  });
  expect(replayed?.headers["idempotent-replayed"]).toBe("true");
  expect(replayed?.body.equals(first?.body ?? Buffer.alloc(0))).toBe(true);
}

async function expectNothingLeft(kind: string, url: string, keys: number): Promise<void> {
  expect(await countOf(kind, url, "select count(*) as n from transfers")).toBe(keys);
  const states = "select count(*) as n from oncekey_records where state <> 'completed'";
  expect(await countOf(kind, url, states)).toBe(0);
}

async function countOf(kind: string, url: string, statement: string): Promise<number> {
  if (kind === "SQLite") {
    const connection = new (sqliteDriver())(url.slice("sqlite:".length));
    const row = connection.prepare(statement).get();
    connection.close();
    return Number(row?.["n"]);
  }
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(statement);
  await client.end();
  return Number(rows[0]?.n);
}

function parsed(answer: Received | null): Record<string, unknown> {
  return JSON.parse(answer?.body.toString() ?? "{}");
}
