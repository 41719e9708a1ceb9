import { randomBytes } from "node:crypto";
import { createEngine } from "oncekey";
import { migrate, postgresStore } from "oncekey/postgres";
import { Client, Pool } from "pg";
import { versionOf } from "./circumstances.mjs";
import { preparedForms } from "./keyed.mjs";
import { DOMAIN_TABLE, smallest, writtenCalls } from "./postgres-domain.mjs";
import { postgresFlows } from "./postgres-flows.mjs";
import { NAIVE_TABLE, plainRow } from "./postgres-naive.mjs";
import { holdPostgres } from "./postgres-server.mjs";
import { TRANSFER_TABLES } from "./postgres-transfer.mjs";

/** PostgreSQL, on a server of the user's own or on a private one; in a database that is gone afterwards. */
export async function openPostgres({ database, loads }) {
  // A call may look at the store while it holds a connection.
  const connections = Math.max(2, ...loads.map(({ inFlight }) => inFlight));
  const needed = 2 * connections + BESIDE;
  const ends = [];
  const close = async () => {
    for (const end of ends.toReversed()) await end();
  };
  try {
    const server = await holdPostgres({ url: database, connections: needed });
    ends.push(server.stop);
    const fresh = await freshDatabase(server.url, needed);
    ends.push(fresh.drop);
    // Equal pools, so that no flow meets more or colder connections than another.
    const [raw, kept] = [poolOf(fresh.url, connections), poolOf(fresh.url, connections)];
    ends.push(() => Promise.all([raw, kept].map(ended)));
    const subject = await prepared({ raw, kept });
    await Promise.all([warm(raw, connections), warm(kept, connections)]);
    const notes = `two pools of ${connections} connections; ${subject.notes}`;
    const about = { database: await described(raw, server.origin), driver: `pg ${versionOf("pg")}`, notes };
    return { store: "PostgreSQL", loads: (asked) => asked, ...subject, about, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Connections for what is done beside the flows. */
const BESIDE = 5;

async function prepared({ raw, kept }) {
  await migrate(kept);
  await raw.query(DOMAIN_TABLE);
  await raw.query(TRANSFER_TABLES);
  await raw.query(NAIVE_TABLE);
  // Patient, so that a machine with much else to do makes slow calls and not failed ones.
  const engine = createEngine({ store: postgresStore({ pool: kept }), storeTimeout: "20s" });
  const forms = await preparedForms(engine, smallest);
  const { rows } = await raw.query(
    "select max(pg_column_size(oncekey_records.*)) as bytes from oncekey_records",
  );
  const { select, bytes } = await plainRow(raw, rows[0].bytes);
  return {
    notes: `a record of ${rows[0].bytes} bytes, the row of the select ${bytes}`,
    flows: (inFlight) => postgresFlows({ engine, pool: raw, forms, select, inFlight }),
    written: (first) => writtenCalls(raw, first),
  };
}

/** pg closes idle connections after ten seconds: a flow that had waited its turn would meet cold ones. */
function poolOf(connectionString, max) {
  return new Pool({ connectionString, max, idleTimeoutMillis: 0 });
}

/** The pool is told to end before its connections have: those that the dropped database ends are no failure. */
function ended(pool) {
  pool.on("error", () => {});
  return pool.end();
}

async function warm(pool, connections) {
  const clients = await Promise.all(Array.from({ length: connections }, () => pool.connect()));
  await Promise.all(clients.map((client) => client.query("select count(*) from effects")));
  for (const client of clients) client.release();
}

async function described(pool, origin) {
  const { rows } = await pool.query(`select current_setting('server_version') as version,
    current_setting('fsync') as fsync, current_setting('synchronous_commit') as commit`);
  const { version, fsync, commit } = rows[0];
  return `PostgreSQL ${version} (${origin}; fsync ${fsync}, synchronous_commit ${commit})`;
}

export async function freshDatabase(server, needed) {
  const name = `oncekey_bench_${randomBytes(6).toString("hex")}`;
  await onServer(server, async (client) => {
    const { rows } = await client.query("show max_connections");
    const { max_connections: most } = rows[0];
    if (Number(most) < needed)
      throw new Error(`The server takes ${most} connections and ${needed} are needed: lower --in-flight.`);
    await client.query(`create database ${name} template template0`);
  });
  const url = new URL(server);
  url.pathname = `/${name}`;
  const drop = () =>
    onServer(server, (client) => client.query(`drop database if exists ${name} with (force)`));
  return { url: url.href, drop };
}

async function onServer(connectionString, work) {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
