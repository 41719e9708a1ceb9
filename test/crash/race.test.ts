import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { postgresIsHere } from "../support/databases.ts";
import {
  freshDatabase,
  type Received,
  send,
  startBankProcess,
  startSettlement,
} from "../support/settlement.ts";

/** Rounds of fifty simultaneous copies of one request, half to each of two server processes. */
const ROUNDS = 200;
const COPIES = 50;

const ORDER = { amount: "12.50", currency: "EUR", debtor: "DE01", creditor: "DE02", reference: "invoice 7" };

describe.each(["SQLite", "PostgreSQL"] as const)("two server processes on one %s database", (kind) => {
  test.skipIf(kind === "PostgreSQL" && !postgresIsHere())(
    `answer ${ROUNDS} rounds of ${COPIES} simultaneous copies with one settlement and one payment each`,
    { timeout: 300_000 },
    async () => {
      const dataDir = mkdtempSync(join(tmpdir(), "oncekey-race-"));
      const database = await freshDatabase(kind);
      try {
        const bank = await startBankProcess(dataDir);
        // Fifty copies at once on two loaded processors may take longer than a store should.
        const env = { DATABASE_URL: database.url, BANK_URL: bank.url, STORE_TIMEOUT: "20s" };
        const servers = await Promise.all([startSettlement(env), startSettlement(env)]);
        for (let round = 0; round < ROUNDS; round++) {
          const key = `race-${round}`;
          const copies = Array.from({ length: COPIES }, (_, index) =>
            send(`${servers[index % 2]?.url}/settlements`, { key, body: ORDER }),
          );
          expectOneWinner(key, await Promise.all(copies));
        }
        const ledger = await (await fetch(`${bank.url}/ledger`)).json();
        expect(ledger).toHaveLength(ROUNDS);
        for (const { process } of [...servers, bank]) {
          process.kill("SIGTERM");
          expect(await process.exited).toEqual({ code: 0, signal: null });
        }
      } finally {
        await database.remove();
        rmSync(dataDir, { recursive: true, force: true });
      }
    },
  );
});

/** One answer of its own; every other copy is the same bytes with the marker, or told to come back. */
function expectOneWinner(key: string, answers: readonly (Received | null)[]): void {
  const winners = answers.filter(
    (answer) => answer?.status === 201 && answer.headers["idempotent-replayed"] === undefined,
  );
  expect(winners, `winners of ${key}: ${answers.map((answer) => answer?.status)}`).toHaveLength(1);
  for (const answer of answers) {
    if (answer === winners[0]) continue;
    if (answer?.status === 409) {
      expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1);
      continue;
    }
    expect(answer?.status, key).toBe(201);
    expect(answer?.body.equals(winners[0]?.body ?? Buffer.alloc(0)), key).toBe(true);
  }
}
