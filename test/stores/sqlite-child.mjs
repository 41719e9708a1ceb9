// What the tests run in processes of their own: node sqlite-child.mjs <what> <file> [...]
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { migrate, sqliteStore } from "oncekey/sqlite";
import { claim, conclude, seen } from "../../dist/core/transition.js";

const [what, file, ...rest] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const { DatabaseSync } = process.getBuiltinModule("node:sqlite") ?? require("@photostructure/sqlite");
const connect = () => new DatabaseSync(file);
const store = sqliteStore({ connect, storeTimeout: "30s" });

const tell = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const gate = async () => {
  tell("ready");
  while (!existsSync(`${file}.go`)) await sleep(2);
};

const claimOf = (key) =>
  claim({
    identity: { kind: "http", principal: "alice", key },
    operation: "POST /payments",
    effects: "transaction",
    fingerprint: {
      version: "1",
      salt: new Uint8Array(16),
      raw: new Uint8Array(32),
      canonical: new Uint8Array(32),
    },
    owner: randomUUID(),
    writeId: randomUUID(),
    correlationId: null,
    leaseMs: 90_000,
    steps: new Map(),
  });

/** Claims a key; the winner commits its effect with its record. */
async function pay(key) {
  const write = claimOf(key);
  const standing = await store.insert(write);
  if (!standing.inserted) return false;
  const { record } = standing;
  const answer = { status: 201, headers: [], body: new TextEncoder().encode(key) };
  const ended = conclude(record, {
    writeId: randomUUID(),
    state: "completed",
    answer,
    keep: { retainMs: 60_000, tombstoneMs: null },
  });
  await store.transaction((tx) => {
    const replaced = store.within(tx).replace(seen(record), ended, "wait");
    if (replaced.kind !== "replaced") return { kind: "rollback", value: replaced };
    tx.prepare("INSERT INTO effects (key) VALUES (?)").run(key);
    return { kind: "commit", value: replaced };
  });
  return true;
}

/** Keeps the longest time for which a timer had to wait; also the source of what an idle thread does. */
function watchTimer() {
  let [lastMs, longestMs] = [performance.now(), 0];
  const timer = setInterval(() => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
  }, 5);
  return () => {
    clearInterval(timer);
    return Math.max(longestMs, performance.now() - lastMs);
  };
}

/** For how long our event loop was stopped: beyond what an idle thread, too, had to wait for a processor. */
async function watchEventLoop() {
  const script = `const { parentPort } = require("node:worker_threads");
    const longestMs = (${watchTimer})();
    parentPort.once("message", () => parentPort.postMessage(longestMs()));`;
  const idle = new Worker(script, { eval: true });
  await once(idle, "online");
  const longestMs = watchTimer();
  return async () => {
    const stoppedMs = longestMs();
    idle.postMessage("enough");
    const [waitedMs] = await once(idle, "message");
    return stoppedMs - waitedMs;
  };
}

const acts = {
  /** Claims so many keys, one after the other. */
  async claims(count) {
    for (let n = 0; n < Number(count); n += 1) await store.insert(claimOf(`k${n}`));
    tell("done");
  },
  /** Pays so many keys, one after the other. */
  async pays(count) {
    for (let n = 0; n < Number(count); n += 1) await pay(`k${n}`);
    tell("done");
  },
  /** Pays these keys all at once, with others who do the same. */
  async race(keys) {
    await pay(`warm-${process.pid}`);
    await gate();
    const blocked = await watchEventLoop();
    const ends = await Promise.allSettled(
      JSON.parse(keys).map(async (key) => ({ key, won: await pay(key) })),
    );
    tell({
      won: ends.flatMap(({ value }) => (value?.won ? [value.key] : [])),
      errors: ends.flatMap(({ reason }) => (reason === undefined ? [] : [String(reason)])),
      blockedMs: await blocked(),
    });
  },
  /** Pays new keys for ever. */
  async forever(prefix) {
    tell("ready");
    for (let n = 0; ; n += 1) await Promise.all([pay(`${prefix}-${n}-a`), pay(`${prefix}-${n}-b`)]);
  },
  /** Holds the write lock until it is killed, or for so long. */
  async hold(forMs) {
    const connection = connect();
    connection.exec("BEGIN IMMEDIATE");
    tell("held");
    await sleep(Number(forMs));
    connection.exec("ROLLBACK");
    connection.close();
  },
  /** Migrates together with others who do the same. */
  async migrates() {
    await gate();
    const connection = connect();
    const applied = await migrate(connection);
    connection.close();
    tell(applied.map(({ version }) => version));
  },
};

await acts[what](...rest);
await store.close();
