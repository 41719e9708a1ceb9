import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { Client, Pool, type PoolClient, type PoolConfig } from "pg";
import type { InProgress, RecordWrite } from "../../src/core/record.ts";
import { conclude, renew } from "../../src/core/transition.ts";
import { migrate, postgresStore } from "../../src/stores/postgres/index.ts";
import type { Store, TransactionalStore } from "../../src/stores/store.ts";
import { freshPostgresDatabase } from "../support/databases.ts";
import { until } from "../support/processes.ts";
import { answerOf, claimOf, httpIdentity } from "./sample.ts";

export type Opened = {
  readonly pool: Pool;
  readonly store: TransactionalStore<PoolClient, "async">;
};

/** A migrated database of a test's own. */
export type TestDatabase = {
  readonly url: string;
  /** A connection of the test's own, to look and to meddle with. */
  readonly admin: Client;
  /** A store over a pool of its own; `settings` are those of its sessions. */
  readonly open: (config?: PoolConfig & { readonly settings?: Readonly<Record<string, string>> }) => Opened;
  /** Resolves once this many sessions of the database wait for a lock. */
  readonly waiting: (sessions: number) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Creates the database with its tables; `close` ends every pool and drops it. */
export async function openTestDatabase(): Promise<TestDatabase> {
  const { url, drop } = await freshPostgresDatabase();
  const admin = new Client({ connectionString: url });
  await admin.connect();
  await migrate(admin);
  const pools: Pool[] = [];
  return {
    url,
    admin,
    open: ({ settings = {}, ...config } = {}) => {
      const options = Object.entries(settings).map(
        ([name, value]) => `-c ${name}=${value.replaceAll(" ", "\\ ")}`,
      );
      const application_name = `store ${pools.length}`;
      const pool = new Pool({
        connectionString: url,
        application_name,
        options: options.join(" "),
        ...config,
      });
      pools.push(pool);
      return { pool, store: postgresStore<PoolClient>({ pool }) };
    },
    waiting: (sessions) => until(async () => (await lockWaits(admin)) === sessions),
    close: async () => {
      await Promise.all(pools.map(endPool));
      await admin.end();
      await drop();
    },
  };
}

/** Ends a pool whose database is dropped next: its promise resolves while the server may still have a last word. */
export function endPool(pool: Pool): Promise<void> {
  pool.on("error", () => {});
  return pool.end();
}

/** How many sessions of this database wait for a lock just now. */
export async function lockWaits(admin: Client): Promise<number> {
  const { rows } = await admin.query(
    "select count(*)::int as waits from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
  return rows[0].waits;
}

/** A door to the server that can be slammed. */
export type Door = {
  readonly url: string;
  /** Cuts every connection once the client's bytes hold `text`: before they are passed on, or with their reply. */
  readonly cutAt: (text: string, moment: "before it is sent" | "before its reply") => void;
  readonly close: () => Promise<void>;
};

/** Listens on a port of its own and passes everything on to the server behind `url`. */
export async function openDoor(url: string): Promise<Door> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let cut: { readonly text: string; readonly before: boolean } | undefined;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname);
    const both = [client, upstream];
    let muted = false;
    const end = () => {
      for (const socket of both) socket.destroy();
    };
    for (const socket of both) {
      sockets.add(socket);
      socket.on("error", end).on("close", end);
    }
    client.on("data", (bytes) => {
      const met = cut !== undefined && bytes.includes(cut.text);
      if (met && cut?.before) return end();
      muted ||= met;
      upstream.write(bytes);
    });
    upstream.on("data", (bytes) => (muted ? end() : client.write(bytes)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The system named no port.");
  const through = new URL(url);
  through.host = `127.0.0.1:${address.port}`;
  return {
    url: through.href,
    cutAt: (text, moment) => {
      cut = { text, before: moment === "before it is sent" };
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** A record that is in progress under this key. */
export async function begun(store: Store, key: string): Promise<InProgress> {
  const { record } = await store.insert(claimOf(httpIdentity(key)));
  if (record.state !== "in_progress") throw new Error(`The record is ${record.state}.`);
  return record;
}

/** Its completion, with a write id of its own and an answer of every byte. */
export function completedFrom(record: InProgress, retainMs = 60_000): RecordWrite {
  const body = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  const answer = answerOf(body, [["X-Of", "é\u00ff"]]);
  return conclude(record, {
    writeId: randomUUID(),
    state: "completed",
    answer,
    keep: { retainMs, tombstoneMs: null },
  });
}

/** Its renewal, with a write id of its own. */
export function renewed(record: InProgress): RecordWrite {
  return renew(record, { writeId: randomUUID(), leaseMs: 90_000 });
}

/** Resolves once every other session of the database sits idle outside a transaction. */
export function untilOthersAreIdle(admin: Client): Promise<void> {
  return until(async () => {
    const { rows } = await admin.query(
      `select 1 from pg_stat_activity
       where datname = current_database() and backend_type = 'client backend' and state <> 'idle' and pid <> pg_backend_pid()`,
    );
    return rows.length === 0;
  });
}
