import { createServer, type Socket } from "node:net";
import { Pool, type PoolClient } from "pg";
import { isPromise } from "../../src/engine/command.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { migrate as migratePostgres, postgresStore } from "../../src/stores/postgres/index.ts";
import {
  migrate as migrateSqlite,
  type SqliteConnection,
  sqliteStore,
} from "../../src/stores/sqlite/index.ts";
import {
  freshPostgresDatabase,
  freshSqliteFile,
  postgresIsHere,
  sqliteDriver,
} from "../support/databases.ts";
import { freePort } from "../support/processes.ts";
import { type Ground, type HostUnderTest, type Trial, trialOf } from "./harness.ts";
import type { HostNeed } from "./law.ts";

/** A store that every host is tried on. */
export interface StoreUnderHosts {
  readonly name: string;
  readonly isHere: () => boolean;
  /** Laws that need one of these do not apply. */
  readonly lacks: readonly HostNeed[];
  readonly open: (host: HostUnderTest) => Promise<Trial>;
}

export const storesUnderHosts: readonly StoreUnderHosts[] = [
  {
    name: "memory",
    isHere: () => true,
    lacks: ["transactions", "waiting transactions", "tables"],
    open: async (host) => trialOf(host, memoryGround()),
  },
  {
    name: "SQLite",
    isHere: () => true,
    lacks: ["waiting transactions"],
    open: async (host) => trialOf(host, await sqliteGround()),
  },
  {
    name: "PostgreSQL",
    isHere: postgresIsHere,
    lacks: [],
    open: async (host) => trialOf(host, await postgresGround()),
  },
];

const nothing = async () => {};

function noTransactions(): never {
  throw new Error("The memory store has no transactions.");
}

function memoryGround(): Ground<never, never> {
  const store = memoryStore();
  const never = () => new Promise<never>(() => {});
  const silent = { ...memoryStore(), insert: never, replace: never, read: never };
  return {
    connect: () => ({ store, end: nothing }),
    silent: () => ({ store: silent, end: nothing }),
    bare: () => ({ store, end: nothing }),
    unit: noTransactions,
    given: noTransactions,
    written: async () => 0,
    cheap: true,
    close: nothing,
  };
}

async function sqliteGround(): Promise<Ground<SqliteConnection, "sync">> {
  const { path, remove } = freshSqliteFile();
  const open = () => new (sqliteDriver())(path);
  const own = open();
  await migrateSqlite(own);
  own.exec("CREATE TABLE effects (key TEXT NOT NULL)");
  const connect = () => {
    const store = sqliteStore({ connect: open });
    return { store, end: () => store.close() };
  };
  return {
    connect,
    silent: () => {
      const { store, end } = connect();
      const holder = open();
      holder.exec("BEGIN IMMEDIATE"); // somebody holds the write lock and never lets go
      return {
        store,
        end: async () => {
          holder.close();
          await end();
        },
      };
    },
    bare: () => {
      const empty = freshSqliteFile();
      const store = sqliteStore({ connect: () => new (sqliteDriver())(empty.path) });
      return {
        store,
        end: async () => {
          await store.close();
          empty.remove();
        },
      };
    },
    given: (value) => value,
    unit: (tx, key, answer) => {
      tx.prepare("INSERT INTO effects (key) VALUES (?)").run(key);
      const made = answer();
      if (isPromise(made)) throw new Error("A transaction of SQLite cannot wait.");
      return made;
    },
    cheap: false,
    written: async (key) => own.prepare("SELECT key FROM effects WHERE key = ?").all(key).length,
    close: async () => {
      own.close();
      remove();
    },
  };
}

async function postgresGround(): Promise<Ground<PoolClient, "async">> {
  const { url, drop } = await freshPostgresDatabase();
  const own = new Pool({ connectionString: url, max: 2 });
  await migratePostgres(own);
  await own.query("CREATE TABLE effects (key text NOT NULL)");
  const mutePort = await freePort();
  const connect = (connectionString = url) => {
    const pool = new Pool({ connectionString, max: 5 });
    return { store: postgresStore<PoolClient>({ pool }), end: () => pool.end() };
  };
  return {
    connect: () => connect(),
    silent: () => {
      const mute = muteServer(mutePort);
      const { store, end } = connect(mute.url);
      return {
        store,
        end: async () => {
          mute.close();
          await end();
        },
      };
    },
    bare: () => {
      const pool = new Pool({ connectionString: url, max: 2 });
      return { store: postgresStore<PoolClient>({ pool, schema: "nowhere" }), end: () => pool.end() };
    },
    given: async (value) => value,
    unit: async (tx, key, answer) => {
      await tx.query("INSERT INTO effects (key) VALUES ($1)", [key]);
      return await answer();
    },
    cheap: false,
    written: async (key) => (await own.query("SELECT 1 FROM effects WHERE key = $1", [key])).rows.length,
    close: async () => {
      await own.end();
      await drop();
    },
  };
}

/** Takes connections and says nothing. */
function muteServer(port: number): { readonly url: string; readonly close: () => void } {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  }).listen(port, "127.0.0.1");
  const close = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { url: `postgres://nobody@127.0.0.1:${port}/none`, close };
}
