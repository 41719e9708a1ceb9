// The forms in which a local effect is committed together with its record.
import { createRequire } from "node:module";
import { fromDrizzle, fromKnex, fromKysely, fromPg, fromPostgresJs, postgresStore } from "oncekey/postgres";
import { sqliteStore } from "oncekey/sqlite";

const require = createRequire(import.meta.url);

/**
 * Each opens the database behind a URL, at once or by a promise. `insert` writes one row through a transaction's handle
 * and gives its id, or a promise of it; `route` is what the route says of itself besides.
 */
export const forms = {
  sqlite: (url) => {
    const { DatabaseSync } = process.getBuiltinModule("node:sqlite") ?? require("@photostructure/sqlite");
    const text = "INSERT INTO effects (key, attempt, note) VALUES (?, ?, ?) RETURNING id";
    return {
      store: sqliteStore({ connect: () => new DatabaseSync(url.slice("sqlite:".length)) }),
      insert: (tx, { key, attempt, note }) => tx.prepare(text).get(key, attempt, note).id,
    };
  },
  postgres: (url) => onPg(url),
  one: (url) => ({ ...onPg(url), route: { commits: "one" } }),
  "pg bridge": (url) => onLayer(url, fromPg(poolOf(url)), insertByPg),
  "postgres.js": (url) => ({ store: postgresStore({ sql: sqlOf(url) }), insert: insertByPostgresJs }),
  "postgres.js bridge": (url) => onLayer(url, fromPostgresJs(sqlOf(url)), insertByPostgresJs),
  kysely: async (url) => {
    const { Kysely, PostgresDialect } = await import("kysely");
    const db = new Kysely({ dialect: new PostgresDialect({ pool: poolOf(url) }) });
    return onLayer(url, fromKysely(db), async (tx, row) => {
      const { id } = await tx.insertInto("effects").values(row).returning("id").executeTakeFirstOrThrow();
      return id;
    });
  },
  drizzle: async (url) => {
    const { drizzle } = await import("drizzle-orm/node-postgres");
    const { sql } = await import("drizzle-orm");
    return onLayer(url, fromDrizzle(drizzle(poolOf(url))), async (tx, { key, attempt, note }) => {
      const { rows } = await tx.execute(
        sql`INSERT INTO effects (key, attempt, note) VALUES (${key}, ${attempt}, ${note}) RETURNING id`,
      );
      return rows[0].id;
    });
  },
  knex: async (url) => {
    const { default: knex } = await import("knex");
    const db = knex({ client: "pg", connection: url, pool: { min: 0, max: 10 } });
    return onLayer(
      url,
      fromKnex(db),
      async (tx, row) => (await tx("effects").insert(row).returning("id"))[0].id,
    );
  },
};

/** Units are opened by a layer, on connections of its own; all else goes through the store's own small pool. */
function onLayer(url, transactions, insert) {
  return { store: postgresStore({ pool: poolOf(url, 4), transactions }), insert };
}

function onPg(url) {
  return { store: postgresStore({ pool: poolOf(url) }), insert: insertByPg };
}

function poolOf(url, max = 10) {
  const { Pool } = require("pg");
  const pool = new Pool({ connectionString: url, max });
  pool.on("error", (error) => console.log(`An idle connection ended: ${error.message}`));
  return pool;
}

async function insertByPg(tx, { key, attempt, note }) {
  const text = "INSERT INTO effects (key, attempt, note) VALUES ($1, $2, $3) RETURNING id";
  return (await tx.query(text, [key, attempt, note])).rows[0].id;
}

function sqlOf(url) {
  const postgres = require("postgres");
  return postgres(url, { max: 10, fetch_types: false, onnotice: () => {} });
}

async function insertByPostgresJs(tx, { key, attempt, note }) {
  const [row] =
    await tx`INSERT INTO effects (key, attempt, note) VALUES (${key}, ${attempt}, ${note}) RETURNING id`;
  return row.id;
}
