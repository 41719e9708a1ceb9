import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { dirname, join } from "node:path";
import type { DynamicModule } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import type { Express } from "express";
import type { FastifyInstance } from "fastify";
import type Koa from "koa";
import { createEngine } from "oncekey";
import { migrate as migratePostgres } from "oncekey/postgres";
import { migrate, sqliteStore } from "oncekey/sqlite";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listening } from "./hosts/hosts.ts";
import { freshPostgresDatabase, freshSqliteFile, postgresIsHere, sqliteDriver } from "./support/databases.ts";
import { type Compiled, compileShown } from "./support/readme.ts";

const root = dirname(import.meta.dirname);

/** The example of each host, which its page in the guide shows. */
const EXAMPLES = {
  express: "express/orders.ts",
  fastify: "fastify/orders.ts",
  fetch: "fetch/route.ts",
  hono: "hono/orders.ts",
  koa: "koa/mails.ts",
  nest: "nest/orders.ts",
  node: "node/charges.ts",
} as const;

const TABLE = "CREATE TABLE orders (id TEXT PRIMARY KEY, owner TEXT NOT NULL, item TEXT NOT NULL) STRICT";
const tokens = new Map([["secret", "alice"]]);

let compiled: Compiled;
const { path, remove } = freshSqliteFile();
const connect = () => new (sqliteDriver())(path);
const own = connect();
const store = sqliteStore({ connect });
const engine = createEngine({ store });
const open: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  await migrate(own);
  own.exec(TABLE);
  compiled = await compileShown({ root, examples: Object.values(EXAMPLES) });
});
afterAll(async () => {
  for (const close of open) await close();
  await store.close();
  own.close();
  remove();
  compiled?.remove();
});

async function served(server: Server): Promise<string> {
  const { port, close } = await listening(server.listening ? server : server.listen(0, "127.0.0.1"));
  open.push(close);
  return `http://127.0.0.1:${port}`;
}

async function asked(url: string, key: string, body: unknown, token = "secret") {
  const headers = {
    "idempotency-key": key,
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
  };
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const replayed = answer.headers.get("idempotent-replayed");
  return {
    status: answer.status,
    replayed,
    location: answer.headers.get("location"),
    text: await answer.text(),
  };
}

test("the examples pass the repository's own strict rules, against the built package", () => {
  expect(compiled.complaints).toBe("");
});

/** Starts an example that places orders, and says where. */
const shops: Readonly<Record<string, (example: string) => Promise<string>>> = {
  express: async (example) => {
    const { createApp } = await compiled.load<{ createApp: (parts: object) => Express }>(example);
    return await served(createServer(createApp({ engine, tokens })));
  },
  fastify: async (example) => {
    const { createApp } = await compiled.load<{ createApp: (parts: object) => FastifyInstance }>(example);
    const app = createApp({ engine, tokens });
    await app.listen({ port: 0, host: "127.0.0.1" });
    return await served(app.server);
  },
  nest: async (example) => {
    const { createModule } = await compiled.load<{ createModule: (parts: object) => DynamicModule }>(example);
    const module = createModule({ engine, tokens });
    const app = await NestFactory.create(module, { rawBody: true, logger: false });
    await app.listen(0, "127.0.0.1");
    return await served(app.getHttpServer());
  },
  "nest on Fastify": async (example) => {
    const { createModule } = await compiled.load<{ createModule: (parts: object) => DynamicModule }>(example);
    const module = createModule({ engine, tokens });
    const app = await NestFactory.create(module, new FastifyAdapter(), { rawBody: true, logger: false });
    await app.listen(0, "127.0.0.1");
    return await served(app.getHttpServer());
  },
};

describe("an example does what is said of it", () => {
  test.each(Object.keys(shops))("%s: an order is placed once, for those who are known", async (name) => {
    const [host = ""] = name.split(" ");
    const file = Object.entries(EXAMPLES).find(([each]) => each === host)?.[1] ?? "";
    const url = `${await shops[name]?.(file.replace(".ts", ".js"))}/orders`;
    const key = `orders of ${name}`;
    expect((await asked(url, key, { item: "tea" }, "stolen")).status).toBeGreaterThanOrEqual(401);
    const first = await asked(url, key, { item: name });
    expect(first).toMatchObject({
      status: 201,
      replayed: null,
      location: expect.stringMatching(/^\/orders\//),
    });
    expect(await asked(url, key, { item: name })).toEqual({ ...first, replayed: "true" });
    expect(await asked(url, key, { item: "other" })).toMatchObject({ status: 422 });
    const rows = own.prepare("SELECT owner FROM orders WHERE item = ?").all(name);
    expect(rows.map((row) => ({ ...Object(row) }))).toEqual([{ owner: "alice" }]);
  });

  test("koa: a mail is sent once, and never again where nobody knows whether it is out", async () => {
    const sent: string[] = [];
    const send = async (mail: string) => {
      sent.push(mail);
      if (mail.includes("lost")) throw new Error("The mail server hung up.");
      return String(sent.length);
    };
    const { createApp } = await compiled.load<{ createApp: (parts: object) => Koa }>("koa/mails.js");
    const app = createApp({ engine, tokens, send });
    app.silent = true;
    const url = await served(createServer(app.callback()));
    const first = await asked(url, "koa 1", "bob@here");
    expect(first).toMatchObject({ status: 202, replayed: null, text: '{"id":"1"}' });
    expect(await asked(url, "koa 1", "bob@here")).toEqual({ ...first, replayed: "true" });
    expect((await asked(url, "koa 2", "bob")).status).toBe(400);
    expect((await asked(url, "koa 2", "bob@here")).status).toBe(202);
    expect((await asked(url, "koa 3", "lost@here")).status).toBe(500);
    expect(await asked(url, "koa 3", "lost@here")).toMatchObject({ status: 409, text: /outcome_unknown/ });
    expect((await asked(url, "koa 4", "x@y", "stolen")).status).toBe(401);
    expect(sent).toHaveLength(3);
  });

  test("node: a card is charged once, and again under the same key after a call that broke off", async () => {
    const keys: string[] = [];
    const charge = async (_order: unknown, key: string) => {
      keys.push(key);
      if (keys.length === 1) throw new Error("The connection broke off.");
      return { id: "ch_1" };
    };
    const { createCharges } = await compiled.load<{ createCharges: (parts: object) => Server }>(
      "node/charges.js",
    );
    const url = `${await served(createCharges({ engine, tokens, charge }))}/charges`;
    expect(await asked(url, "node 1", { amount: 1 })).toMatchObject({ status: 504, text: /outcome_unknown/ });
    const paid = await asked(url, "node 1", { amount: 1 });
    expect(paid).toMatchObject({ status: 201, replayed: null, text: '{"id":"ch_1"}' });
    expect(await asked(url, "node 1", { amount: 1 })).toEqual({ ...paid, replayed: "true" });
    expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
    expect((await asked(url, "node 1", { amount: 1 }, "stolen")).status).toBe(401);
  });

  test.skipIf(!postgresIsHere())("fetch: a route of Next places an order once", async () => {
    const { url, drop } = await freshPostgresDatabase();
    const pool = new Pool({ connectionString: url, max: 1 });
    await migratePostgres(pool);
    await pool.query("CREATE TABLE orders (id integer GENERATED ALWAYS AS IDENTITY, item text NOT NULL)");
    process.env["DATABASE_URL"] = url;
    const { POST } = await compiled.load<{ POST: (request: Request) => Promise<Response> }>("fetch/route.js");
    const headers = { "idempotency-key": "next", "x-caller": "alice" };
    const send = () =>
      POST(new Request("https://shop.test/api/orders", { method: "POST", headers, body: "tea" }));
    const [first, copy] = [await send(), await send()];
    expect([first.status, await first.text()]).toEqual([201, '{"id":1,"item":"tea"}']);
    expect([copy.status, await copy.text(), copy.headers.get("idempotent-replayed")]).toEqual([
      201,
      '{"id":1,"item":"tea"}',
      "true",
    ]);
    expect((await pool.query("SELECT * FROM orders")).rows).toHaveLength(1);
    await pool.end();
    await drop();
  });
});

describe("a page of the guide", () => {
  test.each(Object.entries(EXAMPLES))(
    "%s shows its example as it is, short enough to read at once",
    (host, file) => {
      const example = readFileSync(join(root, "examples", file), "utf8");
      const page = readFileSync(join(root, "docs/guide/hosts", `${host}.md`), "utf8");
      expect(example.split("\n").length).toBeLessThanOrEqual(61);
      expect([...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text]) => text)).toEqual([example]);
      expect(page).toContain(`(../../../examples/${file})`);
    },
  );
});
