import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createEngine } from "../../src/engine/engine.ts";
import type { EngineEvent } from "../../src/engine/events.ts";
import { protect } from "../../src/http/node.ts";
import * as postgres from "../../src/stores/postgres/index.ts";
import { type SealingKey, sealedStore } from "../../src/stores/sealed/index.ts";
import * as sqlite from "../../src/stores/sqlite/index.ts";
import type { Store } from "../../src/stores/store.ts";
import { oncekey } from "../support/command.ts";
import {
  freshPostgresDatabase,
  freshSqliteFile,
  postgresIsHere,
  sqliteDriver,
} from "../support/databases.ts";
import { listening } from "./hosts.ts";
import { assertFirst, assertReplay, keyed, problemOf } from "./laws/said.ts";
import { linesOf, send } from "./wire.ts";

/** A database, as whoever steals it sees it, and as whoever may write to it changes it. */
interface Database {
  readonly url: string;
  readonly store: Store;
  /** Every byte that is kept. */
  readonly bytes: () => Promise<Buffer>;
  /** Puts alice's answers in the place of bob's and the other way round. */
  readonly swap: () => Promise<void>;
  readonly close: () => Promise<void>;
}

describe("SE-04 on SQLite", () => secrets(openSqlite));
describe.skipIf(!postgresIsHere())("SE-04 on PostgreSQL", () => secrets(openPostgres));

const SECRET = "sk_live_123";

const key = (id: string): SealingKey => ({ id, secret: `${id} is a secret that has more than 32 bytes` });
const [OLD, NEW] = [key("old"), key("new")];

function secrets(open: () => Promise<Database>): void {
  let database: Database;
  beforeAll(async () => {
    database = await open();
  });
  afterAll(() => database?.close());

  test("an answer with a secret replays, and neither the database nor the command line shows it", async () => {
    const sealed = await served(database.store, [OLD]);
    const first = await sealed.sent("secret");
    assertFirst(first, 201);
    expect(first.body.toString()).toContain(SECRET);
    assertReplay(first, await sealed.sent("secret"));
    expect(readable(await database.bytes())).toEqual([]);
    const ofAlice = ["--principal", "alice", "--key", "secret", "--json"];
    for (const shown of [
      await oncekey("list", database.url, "--json"),
      await oncekey("show", database.url, ...ofAlice),
    ]) {
      expect(shown.code).toBe(0);
      expect(shown.stdout).not.toContain(SECRET);
      expect(shown.stdout).toMatch(/"sealedBytes": ?\d+/);
    }
  });

  test("the check above finds what is not sealed", async () => {
    const plain = await served(database.store, null);
    assertFirst(await plain.sent("plain"), 201);
    expect(readable(await database.bytes())).not.toEqual([]);
  });

  test("a ring that has turned on replays it, and one without its key says truthfully that it cannot", async () => {
    const first = await (await served(database.store, [OLD])).sent("turned");
    assertReplay(first, await (await served(database.store, [NEW, OLD])).sent("turned"));
    for (const keys of [[NEW], null]) {
      const blind = await served(database.store, keys);
      const answer = await blind.sent("turned");
      expect(problemOf(answer, "response_not_stored")).toMatchObject({ originalStatus: 201, effect: "done" });
      expect(linesOf(answer, "location")).toEqual(["/charges/1"]);
      expect(blind.events).toMatchObject([
        { type: "request", outcome: "response_not_stored" },
        {
          type: "failure",
          error: expect.objectContaining({ message: expect.stringMatching(/the key "old"/) }),
        },
      ]);
      expect(blind.runs()).toBe(0);
    }
    assertReplay(first, await (await served(database.store, [OLD])).sent("turned"));
  });

  test("what was kept before it was switched on is replayed, and what is kept from then on is sealed", async () => {
    const first = await (await served(database.store, null)).sent("before");
    const sealed = await served(database.store, [OLD]);
    assertReplay(first, await sealed.sent("before"));
    assertFirst(await sealed.sent("after"), 201);
    expect(sealed.runs()).toBe(1);
    const { record } = await database.store.read({ kind: "http", principal: "alice", key: "after" });
    expect(record).toMatchObject({ answer: { status: 201, body: null } });
  });

  test("an answer that was put into another caller's record is damage, and is shown to nobody", async () => {
    const sealed = await served(database.store, [OLD]);
    assertFirst(await sealed.sent("swapped"), 201);
    assertFirst(await sealed.sent("swapped", "bob"), 201);
    await database.swap();
    for (const caller of ["alice", "bob"]) {
      const answer = await sealed.sent("swapped", caller);
      problemOf(answer, "record_corrupt");
      expect(answer.body.toString()).not.toContain(SECRET);
    }
    expect(sealed.runs()).toBe(2);
  });
}

/** The forms in which the secret can be read off some bytes. */
function readable(bytes: Buffer): readonly string[] {
  const hex = Buffer.from(SECRET).toString("hex");
  // Base64 of it at each of the three places that it may have among three bytes, without what its neighbours touch.
  const base64 = ["", "x", "xx"].map((before) =>
    Buffer.from(`${before}${SECRET}`).toString("base64").slice(4, -4),
  );
  return [SECRET, hex, ...base64].filter((form) => bytes.includes(form));
}

/** A service whose answers hold the secret; `null` for one that seals nothing. */
async function served(store: Store, keys: readonly SealingKey[] | null) {
  const events: EngineEvent[] = [];
  let runs = 0;
  const engine = createEngine({
    store: keys === null ? store : sealedStore(store, { keys }),
    listeners: [(event) => events.push(event)],
  });
  const principal = ({ headers }: { readonly headers: NodeJS.Dict<string | string[]> }) => headers["x-user"];
  const charge = protect(engine, { principal }, (_request, response) => {
    runs += 1;
    response.setHeader("location", "/charges/1");
    response.writeHead(201, { "content-type": "application/json" });
    // So often that one of them stands whole, wherever a database cuts a row into pages.
    response.end(JSON.stringify({ id: 1, tokens: Array(8).fill(SECRET) }));
  });
  const server = createServer((request, response) => void charge(request, response));
  const { port, close } = await listening(server.listen(0, "127.0.0.1"));
  onTestFinished(close);
  const sent = (name: string, caller = "alice") =>
    send(port, { target: "/charges", ...keyed(name, [["x-user", caller]]) });
  return { sent, events, runs: () => runs };
}

async function openSqlite(): Promise<Database> {
  const { path, remove } = freshSqliteFile();
  const connect = () => new (sqliteDriver())(path);
  const file = connect();
  await sqlite.migrate(file);
  const store = sqlite.sqliteStore({ connect });
  const columns = ["answer_body", "answer_headers", "answer_status", "answer_digest"];
  return {
    ...{ store, url: `sqlite:${path}` },
    // In a process of its own: a file that is closed here gives up the locks that SQLite has on it.
    bytes: async () => execFileSync("cat", [path, `${path}-wal`]),
    swap: async () => {
      file.exec("CREATE TEMP TABLE taken AS SELECT * FROM oncekey_records");
      const from = columns.map((name) => `${name} = (SELECT ${name} ${OF_THE_OTHER})`).join(", ");
      file.exec(`UPDATE oncekey_records SET ${from} WHERE key = 'swapped'`);
    },
    close: async () => {
      await store.close();
      file.close();
      remove();
    },
  };
}

const OF_THE_OTHER =
  "FROM taken WHERE taken.key = oncekey_records.key AND taken.principal <> oncekey_records.principal";

async function openPostgres(): Promise<Database> {
  const { url, drop } = await freshPostgresDatabase();
  const pool = new Pool({ connectionString: url });
  await postgres.migrate(pool);
  return {
    ...{ url, store: postgres.postgresStore({ pool }) },
    bytes: async () => {
      const { rows } = await pool.query(
        "SELECT to_jsonb(oncekey_records)::text AS told FROM oncekey_records",
      );
      return Buffer.from(rows.map(({ told }) => told).join("\n"));
    },
    swap: async () => {
      await pool.query(`UPDATE oncekey_records AS mine SET body = theirs.body, tail = theirs.tail
        FROM oncekey_records AS theirs WHERE mine.id <> theirs.id
        AND mine.head LIKE '%"swapped"%' AND theirs.head LIKE '%"swapped"%'`);
    },
    close: async () => {
      await pool.end();
      await drop();
    },
  };
}
