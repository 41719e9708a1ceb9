// A configuration file as a user writes it: the engine with its one operation, or with declared steps where KNOWS says
// "steps", on STORE_URL; the bank's word is in BANK_SAYS.
import { createRequire } from "node:module";
import { createEngine, declareSteps, operation } from "oncekey";
import { postgresStore } from "oncekey/postgres";
import { sqliteStore } from "oncekey/sqlite";

const require = createRequire(import.meta.url);
const url = process.env.STORE_URL;

function opened() {
  if (url.startsWith("sqlite:")) {
    const { DatabaseSync } = process.getBuiltinModule("node:sqlite") ?? require("@photostructure/sqlite");
    const store = sqliteStore({ connect: () => new DatabaseSync(url.slice("sqlite:".length)) });
    const sql = "UPDATE effects SET state = ? WHERE id = ?";
    return {
      store,
      put: (tx, { id, state }) => void tx.prepare(sql).run(state, id),
      close: () => store.close(),
    };
  }
  const { Pool } = require("pg");
  const pool = new Pool({ connectionString: url });
  const sql = "UPDATE effects SET state = $1 WHERE id = $2";
  return {
    store: postgresStore({ pool }),
    put: async (tx, { id, state }) => void (await tx.query(sql, [state, id])),
    close: () => pool.end(),
  };
}

const { store, put, close: closeStore } = opened();
export const engine = createEngine({ store, sweepGrace: 1, sweepInterval: 50, reconcileInterval: 50 });
export const close = closeStore;

const after = (done, next) => (done === undefined ? next() : done.then(next));

const charge = {
  provider: "keyed",
  look: async () => ({ kind: "found", result: "charged" }),
  cancel: async () => ({ kind: "cancelled" }),
};

const pay = {
  name: "pay",
  provider: "keyed",
  open: (_tx, { reference }) => reference,
  perform: async () => {
    throw new Error("This process only looks after records.");
  },
  finish: (tx, { reference, result }) =>
    after(put(tx, { ...reference, state: result.kind }), () => ({
      status: 201,
      json: { number: result.number },
    })),
  look: async () =>
    process.env.BANK_SAYS === "paid"
      ? { kind: "found", result: { kind: "paid", number: 1 } }
      : { kind: "not_found" },
  cancel: async () => ({ kind: "cancelled" }),
  abandon: (tx, { reference }) => put(tx, { ...reference, state: "abandoned" }),
};

if (process.env.KNOWS === "steps") declareSteps(engine, "checkout", { charge });
else operation(engine, pay);
