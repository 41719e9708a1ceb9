// The forms in which a local effect is committed together with its record.
import { createRequire } from "node:module";
import { postgresStore } from "oncekey/postgres";
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
};

function onPg(url) {
  const { Pool } = require("pg");
  const text = "INSERT INTO effects (key, attempt, note) VALUES ($1, $2, $3) RETURNING id";
  const values = ({ key, attempt, note }) => [key, attempt, note];
  return {
    store: postgresStore({ pool: new Pool({ connectionString: url, max: 10 }) }),
    insert: async (tx, row) => (await tx.query(text, values(row))).rows[0].id,
  };
}
