// One tick of the sweeper among many finished records on PostgreSQL, and what the traffic beside it feels of it.
// npm run bench:sweep -- [--quick] [--stale 20000] [--finished 1000000] [--seconds 4] [--rounds 3] [--database URL]
import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createEngine, sweep } from "oncekey";
import { migrate, postgresStore } from "oncekey/postgres";
import { Pool } from "pg";
import { circumstances, loadAverage } from "./circumstances.mjs";
import { freshDatabase } from "./postgres.mjs";
import { holdPostgres } from "./postgres-server.mjs";

const CONNECTIONS = 8;
const CALLS_AT_ONCE = 4;
/** A machine with much else to do makes slow calls and not failed ones. */
const PATIENCE = "20s";
/** Longer ago than any lease and grace. */
const LONG_AGO_MS = 1_000_000_000_000;

async function main(given) {
  const { stale, finished, seconds, rounds, database } = optionsOf(given);
  const server = await holdPostgres({ url: database, connections: 2 * CONNECTIONS + 8 });
  const fresh = await freshDatabase(server.url, 2 * CONNECTIONS + 4);
  const [traffic, upkeep] = [0, 1].map(() => new Pool({ connectionString: fresh.url, max: CONNECTIONS }));
  try {
    await migrate(upkeep);
    await fillFinished(upkeep, finished);
    const engine = createEngine({ store: postgresStore({ pool: traffic }), storeTimeout: PATIENCE });
    const sweeper = createEngine({ store: postgresStore({ pool: upkeep }), storeTimeout: PATIENCE });
    await callsWithin(engine, 500); // warms up
    const told = [];
    for (let round = 0; round < rounds; round++)
      told.push(await roundOf({ engine, sweeper, upkeep, stale, seconds }));
    const report = { ...circumstances(), loadAverage: loadAverage(), stale, finished, rounds: told };
    console.log(JSON.stringify(report, null, 2));
    const ratios = told.map(({ ratio }) => ratio).toSorted((one, other) => one - other);
    const [least, median, most] = [ratios[0], ratios[Math.floor(ratios.length / 2)], ratios.at(-1)];
    console.log(
      `Traffic beside the sweep: ${median.toFixed(2)} of its speed without (${least.toFixed(2)} to ${most.toFixed(2)}).`,
    );
  } finally {
    await Promise.all([traffic, upkeep].map((pool) => pool.end()));
    await fresh.drop();
    await server.stop();
  }
}

function optionsOf(given) {
  const text = { type: "string" };
  const { values } = parseArgs({
    args: given,
    options: {
      quick: { type: "boolean" },
      stale: text,
      finished: text,
      seconds: text,
      rounds: text,
      database: text,
    },
  });
  const sizes = values.quick ? [500, 5_000, 1, 1] : [20_000, 1_000_000, 4, 3];
  const [stale, finished, seconds, rounds] = ["stale", "finished", "seconds", "rounds"].map((name, place) => {
    const number = Number(values[name] ?? sizes[place]);
    if (!Number.isInteger(number) || number < 1)
      throw new Error(`--${name} needs a whole number of at least 1.`);
    return number;
  });
  return { stale, finished, seconds, rounds, database: values.database };
}

/** The traffic alone, then the same beside a sweep of everything that is stale; each as calls in a second. */
async function roundOf({ engine, sweeper, upkeep, stale, seconds }) {
  const alone = await callsWithin(engine, seconds * 1_000);
  await fillStale(sweeper.store, stale);
  const before = await scansOf(upkeep);
  const sweeping = { ended: false, swept: 0, ms: 0 };
  const ticking = sweptBy(sweeper, sweeping);
  const beside = await callsWithin(engine, Number.POSITIVE_INFINITY, () => sweeping.ended);
  await ticking;
  const after = await scansOf(upkeep);
  if (sweeping.swept !== stale) throw new Error(`${sweeping.swept} of ${stale} stale records were swept.`);
  if (after !== before) throw new Error(`The table was read from end to end ${after - before} times.`);
  return {
    alone,
    beside,
    ratio: beside / alone,
    sweptMs: Math.round(sweeping.ms),
    tableScans: after - before,
  };
}

async function sweptBy(sweeper, sweeping) {
  const begunMs = performance.now();
  for (let more = true; more; ) {
    const swept = await sweep(sweeper);
    sweeping.swept += swept.released;
    ({ more } = swept);
  }
  sweeping.ms = performance.now() - begunMs;
  sweeping.ended = true;
}

/** Calls under new keys, one after the other in a few lines, for so long or until `over`; how many in a second. */
async function callsWithin(engine, ms, over = () => false) {
  const begunMs = performance.now();
  let calls = 0;
  const line = async () => {
    do {
      await engine.run({ operation: "bench", principal: "bench", key: randomUUID() }, () => 1);
      calls += 1;
    } while (!over() && performance.now() - begunMs < ms);
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, line));
  return (calls * 1_000) / (performance.now() - begunMs);
}

async function fillStale(store, count) {
  let left = count;
  const line = async () => {
    while (left > 0) await store.insert(staleWrite(LONG_AGO_MS + left--));
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, line));
}

function staleWrite(leaseUntil) {
  const identity = { kind: "http", principal: "bench", key: randomUUID() };
  const bytes = (length) => new Uint8Array(randomBytes(length));
  return {
    ...{ state: "in_progress", identity, operation: "bench", effects: "transaction", attempt: "next" },
    fingerprint: { version: "value 1", salt: bytes(16), raw: bytes(32), canonical: bytes(32) },
    ...{ owner: randomUUID(), writeId: randomUUID(), steps: new Map(), reference: null, correlationId: null },
    ...{ createdAt: { inMs: 0 }, claimedAt: { inMs: 0 }, leaseUntil: { at: leaseUntil } },
  };
}

/** One finished record by the store, and the others as copies of it under ids of their own. */
async function fillFinished(pool, count) {
  const engine = createEngine({ store: postgresStore({ pool }) });
  await engine.run({ operation: "bench", principal: "bench", key: "finished" }, () => "done");
  await pool.query(
    `INSERT INTO oncekey_records
     SELECT (jsonb_populate_record(one, jsonb_build_object('id', '\\x' || encode(sha256(n::text::bytea), 'hex')))).*
     FROM oncekey_records AS one, generate_series(2, $1::int) AS n`,
    [count],
  );
  await pool.query("VACUUM ANALYZE oncekey_records");
}

/** How often the table was read from end to end so far. */
async function scansOf(pool) {
  await pause(1_500); // sessions tell their counts once a second
  const { rows } = await pool.query(
    "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'oncekey_records'",
  );
  return Number(rows[0].seq_scan);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
