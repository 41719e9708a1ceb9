import { setTimeout as pause } from "node:timers/promises";
import { postgresStore } from "oncekey/postgres";
import { DatabaseError, Pool } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { postgresIsHere } from "../../../test/support/databases.ts";
import { until } from "../../../test/support/processes.ts";
import { openWireTap } from "../../../test/support/wire-tap.ts";
import { type Answered, ledger, order, setFaults, settle } from "./support/calls.ts";
import { type Service, startService } from "./support/launch.ts";
import { freshPlace } from "./support/places.ts";
import { PLAIN_TABLES, plainOrders, racePlainly } from "./support/plain-orders.ts";

const ROUNDS = roundsFrom(process.env["ROUNDS"]);
const COPIES = 32;

/** A round on a loaded machine may take longer than a store should. */
const PATIENT = { STORE_TIMEOUT: "20s", BANK_TIMEOUT: "30s", RECONCILE_INTERVAL: "1s" };

/** Copies of all rounds. */
const ALL = ROUNDS * COPIES;

/** Refusals of a race that a caller must never be told of. */
const RACES = ["23505", "40P01", "40001", "55P03"];

describe.skipIf(!postgresIsHere())("in a schema with a unique foreign key to the key's record", () => {
  test.each(plainOrders.map((plain) => [plain.name, plain.fails, plain] as const))(
    `an order of statements %s fails with %s in ${ROUNDS} rounds of ${COPIES} copies`,
    { timeout: 600_000 },
    async (_, __, plain) => {
      const { pool } = await quickDatabase();
      await pool.query(PLAIN_TABLES);
      const outcome = await racePlainly(pool, plain, { rounds: ROUNDS, copies: COPIES });
      console.log(`${plain.name}: of ${ALL} copies ${JSON.stringify(outcome)}`);
      expect(outcome.refusals[plain.fails]).toBeGreaterThanOrEqual(ROUNDS);
    },
  );

  test(`the service's own settles once in each of ${ROUNDS} rounds of ${COPIES} copies, and the database refuses nothing`, {
    timeout: 600_000,
  }, async () => {
    const { url, pool, environment } = await quickDatabase();
    const tap = await openWireTap(url);
    onTestFinished(tap.close);
    const service = await startService({ ...environment, ...PATIENT, DATABASE_URL: tap.url });
    const started = tap.complaints.length;
    let copied = 0;
    for (let round = 0; round < ROUNDS; round++) {
      copied += await settledOnce(service, `round-${round}`);
    }
    expect(tap.complaints.slice(started)).toEqual([]);
    await everyKeySettled(service, pool, ROUNDS);
    expect((await pool.query(DEADLOCKS)).rows).toEqual([{ deadlocks: "0" }]);
    console.log(`ours: of ${ALL} copies ${ROUNDS} ran, ${copied} got a kept answer, none was refused`);
  });

  test(`the service's own settles once although others lock its rows in every order, in ${ROUNDS} rounds`, {
    timeout: 600_000,
  }, async () => {
    const { url, pool, environment } = await quickDatabase();
    const tap = await openWireTap(url);
    onTestFinished(tap.close);
    const service = await startService({ ...environment, ...PATIENT, DATABASE_URL: tap.url });
    await setFaults(service.bankUrl, { delayMs: 20 });
    await pool.query("CREATE TABLE tries (record_id BYTEA NOT NULL REFERENCES oncekey_records (id))");
    const started = tap.complaints.length;
    const theirs: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const key = `round-${round}`;
      const lockers = lockingOthers(pool, key, theirs);
      await settledOnce(service, key);
      await lockers;
    }
    await everyKeySettled(service, pool, ROUNDS);
    const ours = tap.complaints.slice(started);
    console.log(`among lockers: ours met ${counted(ours)}, the others ${counted(theirs)}`);
    expect(theirs.filter((state) => state === "40P01").length).toBeGreaterThan(0);
    expect(ours.filter((state) => !RACES.includes(state))).toEqual([]);
  });
});

const DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";

/** A database that finds a deadlock soon, and a pool as large as a round. */
async function quickDatabase() {
  const { environment, execute } = await freshPlace("PostgreSQL");
  const { DATABASE_URL: url } = environment;
  await execute(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET deadlock_timeout = '10ms'`);
  const pool = new Pool({ connectionString: url, max: COPIES });
  pool.on("error", () => {}); // the server may have a last word while its database is dropped
  onTestFinished(() => pool.end());
  return { url, environment, pool };
}

/**
 * Sends all copies of one round at once, and on until there is an answer. Fails unless at most one copy ran, all answers
 * are one, and whoever got none was told truthfully why; counts the copies that were given the kept one.
 */
async function settledOnce({ url }: Service, key: string): Promise<number> {
  const copy = () => settle(url, { key, body: { ...order, reference: key } });
  const answers: Answered[] = [...(await Promise.all(Array.from({ length: COPIES }, copy)))];
  const settled = () => answers.filter(({ status }) => status === 201);
  await until(
    async () => {
      // A machine that is busy elsewhere may not keep the answer within the time for which its end is held.
      if (settled().length === 0) answers.push(await copy());
      return settled().length > 0;
    },
    { withinMs: 60_000 },
  );
  const replays = settled().filter(({ headers }) => headers.has("idempotent-replayed"));
  expect(settled().length - replays.length).toBeLessThanOrEqual(1);
  expect(new Set(settled().map(({ text }) => text)).size).toBe(1);
  for (const { status, body } of answers.filter((answer) => answer.status !== 201))
    expect(["in_progress", "outcome_unknown"], `told ${status}`).toContain(body["code"]);
  return replays.length;
}

async function everyKeySettled({ bankUrl }: Service, pool: Pool, keys: number): Promise<void> {
  const settled = `SELECT count(*), count(DISTINCT record_id) AS keys FROM settlements
    JOIN oncekey_records AS record ON record.id = record_id WHERE status = 'settled'`;
  expect((await pool.query(settled)).rows).toEqual([{ count: String(keys), keys: String(keys) }]);
  expect((await pool.query("SELECT count(*) FROM settlements")).rows).toEqual([{ count: String(keys) }]);
  const store = postgresStore({ pool });
  expect(await store.count()).toMatchObject({
    byState: { in_progress: 0, released: 0, unknown: 0, completed: keys, failed_permanent: 0 },
  });
  await store.close();
  expect(await ledger(bankUrl)).toHaveLength(keys);
}

/**
 * What other parts of a service might do with the same rows while it settles: note a try and lock the key's record, or
 * lock the settlement and then the record, against the order in which the service itself takes them.
 */
async function lockingOthers(pool: Pool, reference: string, refusals: string[]): Promise<void> {
  let recordId: unknown;
  const opened = async () => {
    const { rows } = await pool.query("SELECT record_id FROM settlements WHERE reference = $1", [reference]);
    recordId = rows[0]?.record_id;
    return rows.length > 0;
  };
  await until(opened, { withinMs: 60_000, everyMs: 1 });
  const noting = "INSERT INTO tries (record_id) VALUES ($1)";
  const locking = "SELECT id FROM settlements WHERE record_id = $1 FOR UPDATE";
  const locker = async (first: string, atMs: number) => {
    await pause(atMs);
    const client = await pool.connect();
    try {
      await client.query("BEGIN");
      await client.query(first, [recordId]);
      await client.query("SELECT id FROM oncekey_records WHERE id = $1 FOR UPDATE", [recordId]);
      await client.query("COMMIT");
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error;
      refusals.push(String(error.code));
      await client.query("ROLLBACK");
    } finally {
      client.release();
    }
  };
  const lockers = Array.from({ length: LOCKERS }, (_, index) =>
    locker(index % 2 === 0 ? noting : locking, (index * 40) / LOCKERS),
  );
  await Promise.all(lockers);
}

const LOCKERS = 12;

function counted(states: readonly string[]): string {
  const counts: Record<string, number> = {};
  for (const state of states) counts[state] = (counts[state] ?? 0) + 1;
  return JSON.stringify(counts);
}

function roundsFrom(text = "20"): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new Error(`ROUNDS must be a whole number from 1, not "${text}".`);
  return Number(text);
}
