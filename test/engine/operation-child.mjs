// One process with an operation: node operation-child.mjs <store url> <bank file> <key> <where it kills itself>; what it
// keeps is sealed where SEALING_SECRET says by what.
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { createEngine, operation } from "oncekey";
import { postgresStore } from "oncekey/postgres";
import { sealedStore } from "oncekey/sealed";
import { sqliteStore } from "oncekey/sqlite";

const [url, bankFile, key, moment] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const { DatabaseSync } = process.getBuiltinModule("node:sqlite") ?? require("@photostructure/sqlite");

const dieAt = (point) => {
  if (point !== moment) return;
  process.stdout.write(`${point}\n`);
  process.kill(process.pid, "SIGKILL");
  for (;;); // the signal is on its way
};

const upsert = (first) =>
  `INSERT INTO effects (id, key, state) VALUES (${first ? "$1, $2, $3" : "?, ?, ?"})
   ON CONFLICT (id) DO UPDATE SET state = excluded.state`;

function opened() {
  if (url.startsWith("sqlite:")) {
    const connect = () => new DatabaseSync(url.slice("sqlite:".length));
    const put = (tx, row) => tx.prepare(upsert(false)).run(row.id, row.key, row.state);
    return { store: sqliteStore({ connect }), put, after: (_done, next) => next() };
  }
  const { Pool } = require("pg");
  const store = postgresStore({ pool: new Pool({ connectionString: url }) });
  const put = (tx, row) => tx.query(upsert(true), [row.id, row.key, row.state]);
  return { store, put, after: (done, next) => done.then(next) };
}

const bank = new DatabaseSync(bankFile);
const { store, put, after } = opened();
const secret = process.env.SEALING_SECRET;
const kept = secret === undefined ? store : sealedStore(store, { keys: [{ id: "old", secret }] });
const engine = createEngine({ store: kept, requestTimeout: 2_000, lease: 2_500 });
const pay = operation(engine, {
  name: "pay",
  provider: "keyed",
  open: (tx, { reference }) => {
    const row = reference ?? { id: randomUUID(), key };
    return after(put(tx, { ...row, state: "pending" }), () => {
      dieAt("in open");
      return row;
    });
  },
  perform: async ({ attempt }) => {
    dieAt("before the payment");
    bank.prepare("INSERT INTO payments (key) VALUES (?) ON CONFLICT DO NOTHING").run(attempt.downstreamKey);
    dieAt("after the payment");
    return { kind: "paid" };
  },
  finish: (tx, { reference, result }) =>
    after(put(tx, { ...reference, state: result.kind }), () => {
      dieAt("in finish");
      return { status: 201, json: { id: reference.id } };
    }),
  look: async () => ({ kind: "not_found" }),
  cancel: async () => ({ kind: "cancelled" }),
});

const fingerprint = {
  version: "value 1",
  material: () => ({ raw: new Uint8Array(32), canonical: () => new Uint8Array(32) }),
};
await pay.execute({ identity: { kind: "http", principal: "alice", key }, fingerprint }, { key });
dieAt("before the answer");
