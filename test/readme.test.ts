import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Hono } from "hono";
import knex from "knex";
import { Kysely, PostgresDialect, type Transaction } from "kysely";
import {
  type AnswerInit,
  createEngine,
  type Engine,
  NotPerformed,
  type Returned,
  reconcile,
  type Settling,
} from "oncekey";
import { migrate as migratePostgres, postgresStore } from "oncekey/postgres";
import { migrate as migrateSqlite, type SqliteConnection, sqliteStore } from "oncekey/sqlite";
import { Pool, type PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freshPostgresDatabase, freshSqliteFile, postgresIsHere, sqliteDriver } from "./support/databases.ts";
import { type Compiled, compileShown, openBank, stripeOf } from "./support/readme.ts";
import { startTill } from "./support/till.ts";

const root = dirname(import.meta.dirname);
const EXAMPLES = ["hono/orders.ts", "fetch/mail.ts"];

let compiled: Compiled;
let shown: Shown;

beforeAll(async () => {
  compiled = await compileShown({ root, examples: EXAMPLES });
  shown = await compiled.load<Shown>("readme.js");
});
afterAll(() => compiled?.remove());

test("the README's blocks and the examples pass the repository's own strict rules, against the built package", () => {
  expect(compiled.complaints).toBe("");
});

test("a block that is wrong, imports too much or has no place is reported", async () => {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const wrong = readme.replace("bank.find(", "bank.fnd(").replace("createEngine, ", "createEngine, sweep, ");
  const { complaints, remove } = await compileShown({ root, readme: wrong, examples: [] });
  remove();
  expect(complaints).toMatch(/'sweep' is declared but its value is never read/);
  expect(complaints).toMatch(/'fnd' does not exist/);
  const longer = `${readme}\n\`\`\`ts\nconst more = 1;\n\`\`\`\n`;
  await expect(compileShown({ root, readme: longer, examples: [] })).rejects.toThrow(/9 blocks/);
});

describe("every example of the README does what is said of it", () => {
  describe("on SQLite", () => examples(sqlitePlace));
  describe.skipIf(!postgresIsHere())("on PostgreSQL", () => {
    examples(postgresPlace);
    test("an engine is made of one's own pool", async () => {
      const { policy, store } = shown.engineOf("postgres://nobody@127.0.0.1:1/none");
      expect([store.name, policy.requestTimeoutMs]).toEqual(["postgres", 60_000]);
    });

    test("a transaction is the one that the application's own layer opens, and its writes round it are noticed", async () => {
      const { url, drop } = await freshPostgresDatabase();
      const appPool = new Pool({ connectionString: url, max: 4 });
      await migratePostgres(appPool);
      for (const table of TABLES) await appPool.query(table);
      const kysely = new Kysely<{ transfers: { id: string; amount: number } }>({
        dialect: new PostgresDialect({ pool: appPool }),
      });
      const shop = shown.shopOf({ connectionString: url, kysely });
      const watched = shown.watching({ engine: shop, appPool });
      const outside: unknown[] = [];
      shop.subscribe((event) => {
        if (event.type === "write_outside_transaction") outside.push(event.statement);
      });
      const send = () =>
        shop.runInTransaction({ operation: "transfer", principal: "alice", key: "k" }, async (tx) => {
          await tx.insertInto("transfers").values({ id: "t1", amount: 5 }).execute();
          await watched.query("INSERT INTO transfers VALUES ('t2', 6)");
          return "done";
        });
      expect([await send(), await send()]).toEqual(["done", "done"]);
      expect((await appPool.query("SELECT id FROM transfers ORDER BY 1")).rows).toEqual([
        { id: "t1" },
        { id: "t2" },
      ]);
      expect(outside).toEqual(["INSERT INTO transfers VALUES ('t2', 6)"]);
      await kysely.destroy();
      await drop();
    });
  });
});

function examples<Tx, Settles extends Settling>(open: () => Promise<Place<Tx, Settles>>): void {
  let place: Place<Tx, Settles>;
  beforeAll(async () => {
    place = await open();
  });
  afterAll(() => place?.close());

  test("a transfer that is sent twice makes one row, and the second answer is the first again", async () => {
    const app = appOf();
    place.mountTransfers(app);
    const send = () => posted(app, "/transfers", "transfer", { id: "t1", amount: 5 });
    const [first, second] = [await send(), await send()];
    expect(first).toMatchObject({ status: 201, replayed: null, text: '{"id":"t1","amount":5}' });
    expect(second).toEqual({ ...first, replayed: "true" });
    expect(await place.rows("transfers")).toEqual([{ id: "t1", amount: 5 }]);
  });

  test("a settlement is refused, corrected, lost and found: one row for each key, one payment", async () => {
    const bank = openBank();
    const app = appOf();
    shown.settlements({ app, engine: place.engine, bank, ...rowsOf(place) });
    const send = (key: string, amount: number) => posted(app, "/settlements", key, { amount });
    bank.ask("refuses");
    expect(await send("corrected", 1)).toMatchObject({ status: 503, text: /not_performed/ });
    expect(await place.rows("settlements")).toMatchObject([{ amount: 1, state: "abandoned" }]);
    bank.ask("pays");
    const first = await send("corrected", 2);
    expect(first).toMatchObject({ status: 201, replayed: null });
    expect(await send("corrected", 2)).toEqual({ ...first, replayed: "true" });
    expect(await send("corrected", 1)).toMatchObject({ status: 422 });
    expect(await place.rows("settlements")).toMatchObject([{ amount: 2, state: "paid 1" }]);
    bank.ask("goes silent");
    expect(await send("lost", 3)).toMatchObject({ status: 504, text: /outcome_unknown/ });
    expect(await send("lost", 3)).toMatchObject({ status: 409, text: /outcome_unknown/ });
    expect(await reconcile(place.engine)).toMatchObject({ settled: 1 });
    expect(await send("lost", 3)).toMatchObject({ status: 201, replayed: "true" });
    expect(await place.rows("settlements")).toMatchObject([{ amount: 2 }, { amount: 3, state: "paid 2" }]);
    expect(bank.payments()).toBe(2);
  });

  test("a charge whose reply is lost is resumed by the next retry: one charge, one answer", async () => {
    const till = await startTill();
    const stripe = stripeOf(till.url);
    const app = appOf();
    shown.charging({ app, engine: place.engine, stripe });
    const send = () => posted(app, "/charges", "charge", { amount: 7 });
    stripe.ask("holds");
    expect(await send()).toMatchObject({ status: 504, text: /outcome_unknown/ });
    stripe.ask("answers");
    const first = await send();
    expect(first).toMatchObject({ status: 201, replayed: null, text: '{"charge":"ch_1"}' });
    expect(await send()).toEqual({ ...first, replayed: "true" });
    const { charges, asked } = await till.charged();
    expect(charges).toEqual([{ id: "ch_1", amount: 7 }]);
    expect([asked.length, new Set(asked).size]).toEqual([2, 1]);
  });

  test("a function runs once, and its value is given to every later call", async () => {
    let made = 0;
    const createInvoice = () => ({ number: ++made });
    const { engine } = place;
    expect(await shown.invoiced({ engine, createInvoice })).toEqual({ number: 1 });
    expect(await shown.invoiced({ engine, createInvoice })).toEqual({ number: 1 });
    expect(made).toBe(1);
  });
}

describe.skipIf(!postgresIsHere())("every example of the guides does what is said of it", () => {
  let url: string;
  let drop: () => Promise<void>;
  let pool: Pool;
  beforeAll(async () => {
    ({ url, drop } = await freshPostgresDatabase());
    pool = new Pool({ connectionString: url, max: 4 });
    await migratePostgres(pool);
    for (const table of TABLES) await pool.query(table);
  });
  afterAll(async () => {
    await pool.end();
    await drop();
  });

  test("declared effects: a charge and a receipt are made once, a failure before them leaves the key free", async () => {
    const calls: string[] = [];
    let failing = true;
    const { checkout, signUp } = {
      ...(await compiled.load<Guide>("declared-0.js")),
      ...(await compiled.load<Guide>("declared-2.js")),
    };
    const engine = createEngine({ store: postgresStore<PoolClient>({ pool }) });
    const app = appOf();
    checkout(app, engine, {
      pay: async (key: string) => {
        calls.push("pay");
        return { id: key.length };
      },
      find: async () => ({ kind: "not_found" }),
      cancel: async () => ({ kind: "cancelled" }),
      mail: async () => {
        calls.push("mail");
        if (failing) throw new NotPerformed("The mail server is closed.");
      },
    });
    const send = () => posted(app, "/checkout", "checkout", { amount: 1 });
    expect(await send()).toMatchObject({ status: 503, text: /unfinished/ });
    failing = false;
    expect(await send()).toMatchObject({ status: 201, text: '{"paid":64}' });
    expect(calls).toEqual(["pay", "mail", "mail"]);
    let made = 0;
    const accounts = appOf();
    signUp(accounts, engine, { create: async () => ++made });
    expect(await posted(accounts, "/accounts", "account", {})).toMatchObject({ status: 400 });
    expect(await posted(accounts, "/accounts", "account", { name: "a" })).toMatchObject({
      status: 201,
      text: '{"id":1}',
    });
  });

  test("one commit: a transfer that is sent twice makes one row", async () => {
    const { mount } = await compiled.load<{ mount: (app: App, engine: object) => void }>("commits-one-0.js");
    const app = appOf();
    mount(app, createEngine({ store: postgresStore<PoolClient>({ pool }) }));
    const send = () => posted(app, "/transfers", "one", { id: "one", amount: 5 });
    const first = await send();
    expect(first).toMatchObject({ status: 201, replayed: null });
    expect(await send()).toEqual({ ...first, replayed: "true" });
    expect((await pool.query("SELECT * FROM transfers WHERE id = 'one'")).rows).toHaveLength(1);
  });

  test.each([
    ["Kysely", "bridges-0.js", () => pool],
    ["Drizzle", "bridges-1.js", () => pool],
    ["Knex", "bridges-2.js", () => knex({ client: "pg", connection: url })],
  ] as const)("the bridge of %s: a call that is made twice makes one row", async (layer, file, open) => {
    const made = Object.values(await compiled.load<Record<string, MakeTransfer>>(file));
    const own = new Pool({ connectionString: url, max: 2 });
    const opened = open();
    for (const make of made) {
      const transfer = make(opened, own);
      const expected = { id: layer, amount: 7 };
      expect([await transfer(layer, 7), await transfer(layer, 7)]).toEqual([expected, expected]);
    }
    expect(made).toHaveLength(1);
    expect((await pool.query("SELECT * FROM transfers WHERE id = $1", [layer])).rows).toHaveLength(1);
    if ("destroy" in opened) await opened.destroy();
    await own.end();
  });
});

/** What a guide's example makes: a function that transfers an amount under a key. */
type MakeTransfer = (layer: object, own: Pool) => (key: string, amount: number) => Promise<object>;

describe("every other example does what is said of it", () => {
  let hono: HonoExample;
  let place: Place<SqliteConnection, "sync">;
  beforeAll(async () => {
    hono = await compiled.load<HonoExample>("hono/orders.js");
    place = await sqlitePlace(hono.TABLE);
  });
  afterAll(() => place?.close());

  test("examples/hono: an order is placed once, refusals are repeated, and what was not done may be done later", async () => {
    const app = hono.createApp({ engine: place.engine, tokens: new Map([["secret", "alice"]]) });
    const send = (key: string, item: string) => posted(app, "/orders", key, { item });
    const first = await send("a", "tea");
    expect(first).toMatchObject({ status: 201, replayed: null });
    expect(await send("a", "tea")).toEqual({ ...first, replayed: "true" });
    expect(await place.rows("orders")).toMatchObject([{ owner: "alice", item: "tea" }]);
    expect(await send("b", "nothing")).toMatchObject({ status: 422, replayed: null });
    expect(await send("b", "nothing")).toMatchObject({ status: 422, replayed: "true" });
    expect(await send("c", "later")).toMatchObject({ status: 503, text: /not_performed/ });
    expect(await send("c", "tea")).toMatchObject({ status: 201, replayed: null });
    expect((await app.request("/orders", { method: "POST" })).status).toBe(401);
  });

  test("examples/fetch: a mail is sent once, and never again where nobody knows whether it is out", async () => {
    const sent: string[] = [];
    const send = async (mail: string) => {
      sent.push(mail);
      if (mail.includes("lost")) throw new Error("The mail server hung up.");
      return String(sent.length);
    };
    const { createHandler } = await compiled.load<FetchExample>("fetch/mail.js");
    const handler = createHandler({ engine: place.engine, send });
    const app = new Hono()
      .post("/mails", ({ req }) => handler(req.raw))
      .onError((_, c) => c.text("failed", 500));
    const mail = (key: string, to: string) => posted(app, "/mails", key, { to });
    const first = await mail("d", "bob");
    expect(first).toMatchObject({ status: 202, replayed: null, text: '{"id":"1"}' });
    expect(await mail("d", "bob")).toEqual({ ...first, replayed: "true" });
    expect(await mail("e", "lost")).toMatchObject({ status: 500 });
    expect(await mail("e", "lost")).toMatchObject({ status: 409, text: /outcome_unknown/ });
    expect(sent).toEqual(['{"to":"bob"}', '{"to":"lost"}']);
  });

  test.each(EXAMPLES)("examples/%s is short enough to read at once", (example) => {
    expect(readFileSync(join(root, "examples", example), "utf8").split("\n").length).toBeLessThanOrEqual(61);
  });
});

interface Guide {
  readonly checkout: (app: App, engine: object, shop: object) => void;
  readonly signUp: (app: App, engine: object, accounts: object) => void;
}

interface Shown {
  readonly postgresTransfers: (given: Mounted<PoolClient, "async">) => void;
  readonly sqliteTransfers: (given: Mounted<SqliteConnection, "sync">) => void;
  readonly engineOf: (connectionString: string) => Engine<PoolClient, "async">;
  readonly shopOf: <Tables>(given: {
    readonly connectionString: string;
    readonly kysely: Kysely<Tables>;
  }) => Engine<Transaction<Tables>, "async">;
  readonly watching: (given: { readonly engine: object; readonly appPool: Pool }) => Pool;
  readonly charging: (given: object) => void;
  readonly settlements: (given: object) => void;
  readonly invoiced: (given: object) => Promise<{ readonly number: number }>;
}

interface HonoExample {
  readonly TABLE: string;
  readonly createApp: (
    parts: Pick<Place<SqliteConnection, "sync">, "engine"> & { readonly tokens: object },
  ) => Hono;
}

interface FetchExample {
  readonly createHandler: (parts: object) => (request: Request) => Promise<Response>;
}

type App = Hono<{ Variables: { caller: string } }>;

interface Mounted<Tx, Settles extends Settling> {
  readonly app: App;
  readonly engine: Engine<Tx, Settles>;
}

interface Place<Tx, Settles extends Settling> {
  readonly engine: Engine<Tx, Settles>;
  readonly mountTransfers: (app: App) => void;
  /** Runs a statement in a transaction, and hands `value` back. */
  readonly done: <T>(
    tx: Tx,
    statement: string,
    values: readonly (string | number)[],
    value: T,
  ) => Returned<Settles, T>;
  readonly rows: (table: string) => Promise<readonly object[]>;
  readonly close: () => Promise<void>;
}

const TABLES = [
  "CREATE TABLE transfers (id TEXT PRIMARY KEY, amount INTEGER NOT NULL)",
  "CREATE TABLE settlements (id TEXT PRIMARY KEY, amount INTEGER NOT NULL, state TEXT NOT NULL)",
];

async function sqlitePlace(...more: readonly string[]): Promise<Place<SqliteConnection, "sync">> {
  const { path, remove } = freshSqliteFile();
  const connect = () => new (sqliteDriver())(path);
  const own = connect();
  await migrateSqlite(own);
  for (const table of [...TABLES, ...more]) own.exec(table);
  const engine = createEngine({ store: sqliteStore({ connect }) });
  return {
    engine,
    mountTransfers: (app) => shown.sqliteTransfers({ app, engine }),
    done: (tx, statement, values, value) => {
      tx.prepare(statement.replaceAll(/\$\d/g, "?")).run(...values);
      return value;
    },
    rows: async (table) =>
      own
        .prepare(`SELECT * FROM ${table} ORDER BY 2`)
        .all()
        .map((row) => ({ ...Object(row) })),
    close: async () => {
      await engine.store.close();
      own.close();
      remove();
    },
  };
}

async function postgresPlace(): Promise<Place<PoolClient, "async">> {
  const { url, drop } = await freshPostgresDatabase();
  const pool = new Pool({ connectionString: url, max: 4 });
  await migratePostgres(pool);
  for (const table of TABLES) await pool.query(table);
  const engine = createEngine({ store: postgresStore<PoolClient>({ pool }) });
  return {
    engine,
    mountTransfers: (app) => shown.postgresTransfers({ app, engine }),
    done: async (tx, statement, values, value) => {
      await tx.query(statement, [...values]);
      return value;
    },
    rows: async (table) => (await pool.query(`SELECT * FROM ${table} ORDER BY 2`)).rows,
    close: async () => {
      await engine.store.close();
      await pool.end();
      await drop();
    },
  };
}

/** Behind an authentication that lets everybody in as Alice. */
function appOf(): App {
  const app: App = new Hono();
  app.use(async (c, next) => {
    c.set("caller", "alice");
    await next();
  });
  return app;
}

/** The functions that the README's operation calls, in SQL that every store here understands. */
function rowsOf<Tx, Settles extends Settling>({ done }: Place<Tx, Settles>) {
  const upsert = `INSERT INTO settlements (id, amount, state) VALUES ($1, $2, 'pending')
    ON CONFLICT (id) DO UPDATE SET amount = excluded.amount, state = 'pending'`;
  const mark = "UPDATE settlements SET state = $1 WHERE id = $2";
  return {
    upsertPending: (tx: Tx, id: string, { amount }: { readonly amount: number }) =>
      done(tx, upsert, [id, amount], id),
    writeFinal: (tx: Tx, id: string, { number }: { readonly number: number }) =>
      done<AnswerInit>(tx, mark, [`paid ${number}`, id], { status: 201, json: { id, number } }),
    markAbandoned: (tx: Tx, id: string) => done(tx, mark, ["abandoned", id], undefined),
  };
}

async function posted(app: Pick<Hono, "request">, path: string, key: string, body: object) {
  const headers = {
    ...{ "idempotency-key": key, "content-type": "application/json" },
    ...{ authorization: "Bearer secret", "x-caller": "alice" },
  };
  const answer = await app.request(path, { method: "POST", headers, body: JSON.stringify(body) });
  const replayed = answer.headers.get("idempotent-replayed");
  return {
    status: answer.status,
    replayed,
    location: answer.headers.get("location"),
    text: await answer.text(),
  };
}
