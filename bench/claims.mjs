// What a key costs on SQLite, as ratios in one run: rounds of every flow in turn, so that a machine whose speed drifts
// slows them alike. Usage: npm run bench [-- --rounds 20 --calls 200]; prints a table, and JSON with --json.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { DatabaseSync } from "@photostructure/sqlite";
import { createEngine } from "oncekey";
import { migrate, sqliteStore } from "oncekey/sqlite";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "20" },
    calls: { type: "string", default: "200" },
    json: { type: "boolean", default: false },
  },
});
const rounds = Number(values.rounds);
const calls = Number(values.calls);
const folder = mkdtempSync(join(tmpdir(), "oncekey-bench-"));
const connect = () => {
  const connection = new DatabaseSync(join(folder, "bench.db"));
  connection.exec("pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 50");
  return connection;
};
const database = connect();
try {
  report(await measure(await prepare()));
} finally {
  database.close();
  rmSync(folder, { recursive: true, force: true });
}

/** Each flow makes one call; `against` names the flow whose time it is divided by. */
async function prepare() {
  await migrate(database);
  database.exec("create table effects (id integer primary key, note text not null)");
  const insert = database.prepare("insert into effects (note) values (?)");
  const select = database.prepare("select * from effects where id = ?");
  const engine = createEngine({ store: sqliteStore({ connect }) });
  const request = (key) => ({ operation: "bench", principal: "bench", key, input: { amount: 100 } });
  const effect = (tx) =>
    Number(tx.prepare("insert into effects (note) values (?)").run("effect").lastInsertRowid);
  await engine.runInTransaction(request("replayed"), effect);
  return [
    { name: "unprotected insert", against: null, call: () => insert.run("effect") },
    {
      name: "fresh, effect and record in one commit",
      against: "unprotected insert",
      call: (id) => engine.runInTransaction(request(`fresh-${id}`), effect),
    },
    { name: "primary-key select", against: null, call: () => select.get(1) },
    {
      name: "replay",
      against: "primary-key select",
      call: () => engine.runInTransaction(request("replayed"), effect),
    },
  ];
}

async function measure(flows) {
  const times = new Map(flows.map(({ name }) => [name, []]));
  let id = 0;
  for (let round = -1; round < rounds; round++) {
    for (const { name, call } of flows) {
      const startedMs = performance.now();
      for (let made = 0; made < calls; made++) await call(id++);
      if (round >= 0) times.get(name).push((performance.now() - startedMs) / calls); // round -1 warms up
    }
  }
  return flows.map(({ name, against }) => ({
    name,
    msPerCall: spread(times.get(name)),
    against,
    speedRatio:
      against === null ? null : spread(times.get(name).map((ms, round) => times.get(against)[round] / ms)),
  }));
}

function spread(numbers) {
  const sorted = numbers.toSorted((left, right) => left - right);
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  return { min: at(0), median: at(0.5), max: at(1) };
}

function report(rows) {
  if (values.json)
    return console.log(JSON.stringify({ node: process.version, rounds, calls, rows }, null, 2));
  const shown = ({ min, median, max }) => `${median.toFixed(3)} (${min.toFixed(3)} – ${max.toFixed(3)})`;
  console.table(
    rows.map(({ name, msPerCall, against, speedRatio }) => ({
      flow: name,
      "ms per call": shown(msPerCall),
      "speed ratio": speedRatio === null ? "" : `${shown(speedRatio)} of ${against}`,
    })),
  );
}
