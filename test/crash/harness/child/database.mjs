// The database behind a URL, with points before, in and after whatever a store commits.
import { AsyncLocalStorage } from "node:async_hooks";
import { createRequire } from "node:module";
import { postgresStore } from "oncekey/postgres";
import { sqliteStore } from "oncekey/sqlite";
import { reached } from "./failpoints.mjs";

const require = createRequire(import.meta.url);

/** The unit that is being carried out: `{ work }`, once it is known what its work is. */
const units = new AsyncLocalStorage();

/** The sweep that is being carried out: `{ left }` of its batch. */
const sweeps = new AsyncLocalStorage();

/** Carries out a tick of the sweeper. */
export function sweeping(tick) {
  return sweeps.run({ left: 0 }, tick);
}

/** Says what the unit is that this code runs in, and that it has come this far. */
export function inside(work) {
  const unit = units.getStore();
  if (unit !== undefined) unit.work = work;
  reached(`in ${work}`);
}

/** A store, and what runs a generator of `[text, values]` on one of its transactions. */
export async function openDatabase(url, { storeTimeoutMs }) {
  if (url.startsWith("sqlite:")) return onSqlite(url.slice("sqlite:".length));
  return await onPostgres(url, storeTimeoutMs);
}

function onSqlite(path) {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite") ?? require("@photostructure/sqlite");
  const run = (tx, unit) => {
    let step = unit.next();
    while (step.done !== true) {
      const [text, values] = step.value;
      step = unit.next(tx.prepare(text.replaceAll("$", "?")).all(...values));
    }
    return step.value;
  };
  return { store: withPoints(sqliteStore({ connect: () => new DatabaseSync(path) })), run };
}

async function onPostgres(url, storeTimeoutMs) {
  const { Client, Pool } = require("pg");
  tellWhatIsSent(Client);
  const pool = new Pool({ connectionString: url, max: 6, connectionTimeoutMillis: storeTimeoutMs });
  const store = postgresStore({ pool }); // from here on a connection that ends while it is idle ends nothing else
  // A server that has its connections when it is asked first; where the database is away just now, it has them later.
  await Promise.allSettled(Array.from({ length: 4 }, () => pool.query("SELECT 1")));
  const run = async (tx, unit) => {
    let step = unit.next();
    while (step.done !== true) step = unit.next((await tx.query(...step.value)).rows);
    return step.value;
  };
  return { store: withPoints(store), run };
}

/** Reaches a point when a statement that decides something has left for the server. */
function tellWhatIsSent(Client) {
  const { query } = Client.prototype;
  Client.prototype.query = function (statement, ...rest) {
    const answer = query.call(this, statement, ...rest);
    const unit = units.getStore();
    const text = typeof statement === "string" ? statement : (statement.text ?? "");
    const decides = unit !== undefined && (unit.isOneStatement || /\bCOMMIT\s*;?\s*$/i.test(text));
    // The driver lets go of the bytes at the next tick, in front of this one.
    if (decides) process.nextTick(() => reached(`${unit.work} sent`));
    return answer;
  };
}

function withPoints(store) {
  const unit = async (verb) => {
    const state = { work: "unit", isOneStatement: false };
    const result = await units.run(state, verb);
    // A transaction hands back what its unit chose to say; one that failed has thrown.
    if (result?.kind !== "refused" && result?.kind !== "rolled_back") reached(`${state.work} done`);
    return result;
  };
  const statement = async (work, verb) => {
    const result = await units.run({ work, isOneStatement: true }, verb);
    if (result.inserted === true || result.kind === "replaced") reached(`${work} done`);
    return result;
  };
  return {
    ...store,
    due: async (query) => {
      const listed = await store.due(query);
      const sweep = sweeps.getStore();
      if (sweep !== undefined) sweep.left = listed.records.length;
      return listed;
    },
    insert: (write) => statement("claim", () => store.insert(write)),
    replace: async (seen, write, patience) => {
      const replaced = await statement(nameOf(write), () => store.replace(seen, write, patience));
      const sweep = sweeps.getStore();
      if (sweep !== undefined && --sweep.left > 0) reached("sweeper mid batch");
      return replaced;
    },
    transaction: (work, bounds) => unit(() => store.transaction(work, bounds)),
    fenced: (ground, work, bounds) => unit(() => store.fenced(ground, work, bounds)),
    purge: (limit) => statement("purge", () => store.purge(limit)),
  };
}

/** What a lone compare-and-set is for, as far as points tell it apart. */
function nameOf({ state, attempt, leaseUntil }) {
  // Only a renewal moves the end of the lease; a step's mark and its result leave it where it is.
  if (state === "in_progress" && attempt !== "next") return "inMs" in leaseUntil ? "renewal" : "step";
  if (state === "in_progress") return "takeover";
  if (state === "unknown") return attempt === "next" ? "look" : "doubt";
  return state;
}
