// Two purges of many expired records on PostgreSQL, and how long the claims beside them take.
// npm run bench:purge -- [--quick] [--expired 200000] [--live 1000] [--rate 50] [--seconds 10] [--database URL]
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createEngine, purge } from "oncekey";
import { migrate, postgresStore } from "oncekey/postgres";
import { Pool } from "pg";
import { circumstances, loadAverage } from "./circumstances.mjs";
import { freshDatabase } from "./postgres.mjs";
import { holdPostgres } from "./postgres-server.mjs";

const CONNECTIONS = 8;
/** A machine with much else to do makes slow calls and not failed ones. */
const PATIENCE = "20s";
/** What the purge removes by one statement at most. */
const BATCH = 1_000;

async function main(given) {
  const options = optionsOf(given);
  const server = await holdPostgres({ url: options.database, connections: 3 * CONNECTIONS + 8 });
  const fresh = await freshDatabase(server.url, 3 * CONNECTIONS + 4);
  const pools = [0, 1, 2].map(() => new Pool({ connectionString: fresh.url, max: CONNECTIONS }));
  try {
    const [traffic, ...purging] = pools;
    await migrate(traffic);
    await fill(traffic, options);
    const [engine, ...purgers] = [traffic, ...purging].map((pool) =>
      createEngine({ store: postgresStore({ pool }), storeTimeout: PATIENCE }),
    );
    await claimsWhile(engine, options.rate, pause(1_000)); // warms up
    const alone = await claimsWhile(engine, options.rate, pause(options.seconds * 1_000));
    const before = await seenBy(traffic);
    const begunMs = performance.now();
    const purges = Promise.all(purgers.map(purgedBy));
    const beside = await claimsWhile(engine, options.rate, purges);
    const purgedMs = Math.round(performance.now() - begunMs);
    const purged = (await purges).reduce((sum, went) => sum + went, 0);
    const after = await seenBy(traffic);
    const told = { alone, beside, purged, purgedMs, left: await leftIn(traffic), ...changed(before, after) };
    console.log(
      JSON.stringify({ ...circumstances(), loadAverage: loadAverage(), ...options, ...told }, null, 2),
    );
    refuse(told, options);
    console.log(`A claim's p99: ${beside.p99Ms} ms beside the purges, ${alone.p99Ms} ms without.`);
  } finally {
    await Promise.all(pools.map((pool) => pool.end()));
    await fresh.drop();
    await server.stop();
  }
}

function optionsOf(given) {
  const text = { type: "string" };
  const options = { quick: { type: "boolean" }, database: text };
  const sized = { expired: text, live: text, rate: text, seconds: text };
  const { values } = parseArgs({ args: given, options: { ...options, ...sized } });
  const sizes = values.quick ? [5_000, 100, 50, 1] : [200_000, 1_000, 50, 10];
  const [expired, live, rate, seconds] = Object.keys(sized).map((name, place) => {
    const number = Number(values[name] ?? sizes[place]);
    if (!Number.isInteger(number) || number < 1)
      throw new Error(`--${name} needs a whole number of at least 1.`);
    return number;
  });
  return { expired, live, rate, seconds, database: values.database };
}

/** Copies of one finished record under ids of their own: expired ones a millisecond apart, and live ones. */
async function fill(pool, { expired, live }) {
  const engine = createEngine({ store: postgresStore({ pool }) });
  await engine.run({ operation: "bench", principal: "bench", key: "finished" }, () => "done");
  await pool.query(
    `INSERT INTO oncekey_records
     SELECT (jsonb_populate_record(one, jsonb_build_object('id', '\\x' || encode(sha256(n::text::bytea), 'hex'),
       'due_at', CASE WHEN n > $1 THEN one.due_at ELSE 1000000000000 + n END))).*
     FROM oncekey_records AS one, generate_series(1, $1::int + $2::int - 1) AS n`,
    [expired, live],
  );
  await pool.query(`
    CREATE TABLE deletions (many bigint);
    CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN INSERT INTO deletions SELECT count(*) FROM gone; RETURN NULL; END';
    CREATE TRIGGER counted AFTER DELETE ON oncekey_records REFERENCING OLD TABLE AS gone
      FOR EACH STATEMENT EXECUTE FUNCTION counted()`);
  await pool.query("VACUUM ANALYZE oncekey_records");
}

async function purgedBy(engine) {
  let went = 0;
  for (let more = true; more; ) {
    const tick = await purge(engine);
    went += tick.purged;
    ({ more } = tick);
  }
  return went;
}

/** Claims, so many a second, each when its time has come, however long those before it take; how long they took. */
async function claimsWhile(engine, rate, ended) {
  let over = false;
  const stop = () => {
    over = true;
  };
  ended.then(stop, stop);
  const begunMs = performance.now();
  const claims = [];
  while (!over) {
    claims.push(claimed(engine));
    await pause(Math.max(0, begunMs + (claims.length * 1_000) / rate - performance.now()));
  }
  const sorted = (await Promise.all(claims)).toSorted((one, other) => one - other);
  const at = (part) =>
    Number(sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))].toFixed(1));
  return { claims: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), mostMs: at(1) };
}

async function claimed(engine) {
  const begunMs = performance.now();
  await engine.run({ operation: "bench", principal: "bench", key: randomUUID() }, () => 1);
  return performance.now() - begunMs;
}

/** What the database itself counts. */
async function seenBy(pool) {
  await pause(1_500); // sessions tell their counts once a second
  const { rows } = await pool.query(`SELECT
    (SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'oncekey_records')::int AS "tableScans",
    (SELECT deadlocks FROM pg_stat_database WHERE datname = current_database())::int AS deadlocks,
    (SELECT coalesce(max(many), 0) FROM deletions)::int AS "mostAtOnce"`);
  return rows[0];
}

function changed(before, after) {
  return {
    mostAtOnce: after.mostAtOnce,
    deadlocks: after.deadlocks - before.deadlocks,
    tableScans: after.tableScans - before.tableScans,
  };
}

async function leftIn(pool) {
  const { rows } = await pool.query(
    "SELECT count(*)::int AS left FROM oncekey_records WHERE due_at < 1100000000000",
  );
  return rows[0].left;
}

function refuse({ purged, mostAtOnce, left, deadlocks, tableScans }, { expired }) {
  if (purged !== expired || left !== 0)
    throw new Error(`${purged} of ${expired} went, and ${left} are left.`);
  if (mostAtOnce > BATCH) throw new Error(`One statement deleted ${mostAtOnce} records.`);
  if (deadlocks > 0) throw new Error(`There were ${deadlocks} deadlocks.`);
  if (tableScans > 0) throw new Error(`The table was read from end to end ${tableScans} times.`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
