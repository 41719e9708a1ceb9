import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "pg";
import type { StoreNeed, StoreSubject } from "../../src/conformance/index.ts";
import { recordId } from "../../src/stores/codec.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import * as postgres from "../../src/stores/postgres/index.ts";
import { sealedStore } from "../../src/stores/sealed/index.ts";
import * as sqlite from "../../src/stores/sqlite/index.ts";
import type { Store } from "../../src/stores/store.ts";
import {
  freshPostgresDatabase,
  freshSqliteFile,
  postgresIsHere,
  sqliteDriver,
} from "../support/databases.ts";
import { seededRandom } from "../support/seed.ts";

/** A store on trial, and what to do when it is over. */
export interface Opened {
  readonly subject: StoreSubject;
  readonly close: () => Promise<void>;
}

export interface StoreUnderTest {
  readonly name: string;
  readonly isHere: () => boolean;
  /** What it is known not to offer: the laws that need it do not apply. */
  readonly lacks: readonly StoreNeed[];
  readonly open: () => Promise<Opened>;
}

/** Every store that the laws are tried on: a new store is one row more. */
export const storesUnderTest: readonly StoreUnderTest[] = [
  {
    name: "memory",
    isHere: () => true,
    lacks: ["transactions", "simultaneous transactions", "damage"],
    open: openMemory,
  },
  { name: "SQLite", isHere: () => true, lacks: ["simultaneous transactions"], open: openSqlite },
  { name: "PostgreSQL", isHere: postgresIsHere, lacks: [], open: openPostgres },
];

/** The same stores with all that may hold a secret sealed: the laws are the same. */
export const sealedStoresUnderTest: readonly StoreUnderTest[] = storesUnderTest.map(
  ({ name, open, ...store }) => ({
    ...store,
    name: `sealed ${name}`,
    open: async () => {
      const { subject, close } = await open();
      const sealed = (handle: Store) => sealedStore(handle, { keys: [KEY] });
      const another = async () => sealed(await subject.another());
      return { subject: { ...subject, store: sealed(subject.store), another }, close };
    },
  }),
);

const KEY = { id: "one", secret: "a secret of 32 bytes or of more than that" };

const random = seededRandom().fraction;
const pause = (durationMs: number) => sleep(durationMs);

/** No other process can have a handle on it: the second handle is the first. Its time passes in a pause only. */
async function openMemory(): Promise<Opened> {
  let nowMs = 1_800_000_000_123;
  const store = memoryStore({ now: () => nowMs });
  const passes = async (durationMs: number) => {
    nowMs += durationMs;
  };
  return {
    subject: { store, another: async () => store, pause: passes, random },
    close: () => store.close(),
  };
}

async function openSqlite(): Promise<Opened> {
  const { path, remove } = freshSqliteFile();
  const connect = () => new (sqliteDriver())(path);
  const connection = connect();
  await sqlite.migrate(connection);
  const [store, other] = [sqlite.sqliteStore({ connect }), sqlite.sqliteStore({ connect })];
  const spoil = connection.prepare("UPDATE oncekey_records SET steps = x'00' WHERE id = ?");
  const damage = async (identity: Parameters<typeof recordId>[0]) => void spoil.run(recordId(identity));
  const close = async () => {
    for (const handle of [store, other]) await handle.close();
    connection.close();
    remove();
  };
  return { subject: { store, another: async () => other, pause, random, damage }, close };
}

async function openPostgres(): Promise<Opened> {
  const { url, drop } = await freshPostgresDatabase();
  const [pool, otherPool] = [new Pool({ connectionString: url }), new Pool({ connectionString: url })];
  await postgres.migrate(pool);
  const [store, other] = [postgres.postgresStore({ pool }), postgres.postgresStore({ pool: otherPool })];
  const spoil = "UPDATE oncekey_records SET tail = '[' WHERE id = $1";
  const damage = async (identity: Parameters<typeof recordId>[0]) =>
    void (await pool.query(spoil, [recordId(identity)]));
  const close = async () => {
    for (const each of [pool, otherPool]) await each.end();
    await drop();
  };
  return { subject: { store, another: async () => other, pause, random, damage }, close };
}
