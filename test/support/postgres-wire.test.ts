import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { freshPostgresDatabase, postgresIsHere } from "./databases.ts";
import type { FaultProxy } from "./fault-proxy.ts";
import type { Passage } from "./fault-rules.ts";
import {
  type PostgresStatement,
  postgresReader,
  sendsCommit,
  sendsStatement,
  startPostgresProxy,
} from "./postgres-wire.ts";
import { until } from "./processes.ts";

describe("what a client sends", () => {
  const conversation = Buffer.concat([
    beginning(80877104),
    beginning(80877103),
    beginning(196608, "user\0somebody\0\0"),
    message("p", "secret\0"),
    message("Q", "begin\0"),
    message("P", "insert\0insert into kept values ($1)\0\0\0"),
    message("B", "\0insert\0\0\0\0\u0001\0\0\0\u0006COMMIT\0\0"),
    message("E", "\0\0\0\0\0"),
    message("P", "finish\0commit\0\0\0"),
    message("D", "Sfinish\0"),
    message("S"),
    message("B", "door\0finish\0\0\0\0\0\0\0"),
    message("E", "door\0\0\0\0\0"),
    message("S"),
    message("X"),
  ]);
  const statements: readonly PostgresStatement[] = [
    { sql: "begin", protocol: "simple" },
    { sql: "insert into kept values ($1)", protocol: "extended" },
    { sql: "commit", protocol: "extended" },
  ];

  test("the same statements are found wherever the bytes are split", () => {
    for (let first = 0; first <= conversation.length; first += 1) {
      const read = postgresReader("request");
      const second = first + ((conversation.length - first) >> 1);
      const chunks = [[0, first] as const, [first, second] as const, [second, conversation.length] as const];
      expect(chunks.flatMap(([from, to]) => read(conversation.subarray(from, to)))).toEqual(statements);
    }
    const read = postgresReader("request");
    expect([...conversation].flatMap((byte) => read(Buffer.of(byte)))).toEqual(statements);
  });

  test("a statement is found in the chunk that completes the message that runs it", () => {
    const read = postgresReader("request");
    const start = conversation.length - message("S").length - message("X").length;
    expect(read(conversation.subarray(0, start - 1))).toEqual(statements.slice(0, 2));
    expect(read(conversation.subarray(start - 1, start))).toEqual(statements.slice(2));
  });

  test("bytes that are encrypted are refused, not overlooked", () => {
    const read = postgresReader("request");
    read(beginning(80877103));
    expect(() => read(Buffer.of(0x16, 0x03, 0x01, 0x02, 0x00))).toThrow(/encrypted/);
  });

  test("what the server says is no statement", () => {
    expect(postgresReader("reply")(conversation)).toEqual([]);
  });
});

describe("what counts as a COMMIT", () => {
  test.each([
    "COMMIT",
    " commit ;\n",
    "END",
    "commit work",
    "COMMIT TRANSACTION AND NO CHAIN",
    "insert into kept values ('a;b'); COMMIT",
    "insert into kept values (E'it\\'s'); commit; -- done",
    "/* from: test */ commit /* it's done */",
    'select 1 as "it\'s"; commit',
    "do $body$ begin end; $body$; COMMIT",
  ])("%s", (sql) => {
    expect(sendsCommit(passageOf(sql))).toBe(true);
  });

  test.each([
    "",
    ";",
    "begin; select 1",
    "COMMIT; select 1",
    "select 'COMMIT'",
    "insert into kept values ('; COMMIT')",
    "insert into kept values ('it''s'';COMMIT;')",
    "insert into kept values (E'it\\'; COMMIT; --')",
    "select 1 -- ; COMMIT",
    "select 1 /* ; COMMIT */",
    "select '; COMMIT; --'",
    "select $$; COMMIT; --$$",
    "select $a$; $b$; COMMIT; --$a$",
    'select 1 as "; COMMIT; --"',
    "commit prepared 'kept'",
    "rollback",
  ])("not %s", (sql) => {
    expect(sendsCommit(passageOf(sql))).toBe(false);
  });

  test("a pattern with the flag g finds the same statement every time", () => {
    const holds = sendsStatement(/insert into kept/g);
    const passage = passageOf("insert into kept values (1)");
    expect([holds(passage), holds(passage), holds(passageOf("select 1"))]).toEqual([true, true, false]);
  });
});

describe.skipIf(!postgresIsHere())("before a real server", () => {
  let database: Awaited<ReturnType<typeof freshPostgresDatabase>>;
  let admin: Client;
  let proxy: FaultProxy<PostgresStatement>;
  const clients: Client[] = [];

  beforeAll(async () => {
    database = await freshPostgresDatabase();
    admin = new Client({ connectionString: database.url });
    await admin.connect();
    await admin.query("create table kept (value text)");
  });
  afterAll(async () => {
    await admin.end();
    await database.drop();
  });
  beforeEach(async () => {
    await admin.query("truncate kept");
    proxy = await startPostgresProxy(database.url);
  });
  afterEach(async () => {
    await proxy.close();
    clients.splice(0);
  });

  /** A client behind the proxy, in a transaction that has inserted a row and not ended. */
  async function begun(value = "COMMIT"): Promise<Client> {
    const client = new Client({ connectionString: proxy.url(database.url), application_name: "proxied" });
    client.on("error", () => {}); // The proxy cuts this connection: that is the point of the test.
    clients.push(client);
    await client.connect();
    await client.query("begin");
    await client.query("insert into kept values ($1)", [value]);
    return client;
  }

  async function kept(): Promise<number> {
    const { rows } = await admin.query<{ count: number }>("select count(*)::int as count from kept");
    return rows[0]?.count ?? Number.NaN;
  }

  function untilTheServerIsDone(): Promise<void> {
    return until(async () => {
      const { rows } = await admin.query("select from pg_stat_activity where application_name = 'proxied'");
      return rows.length === 0;
    });
  }

  const commits: readonly (readonly [string, (client: Client) => Promise<unknown>])[] = [
    ["a simple query", (client) => client.query("COMMIT")],
    ["the end of a simple query", (client) => client.query("insert into kept values (';'); commit;")],
    ["a prepared statement", (client) => client.query({ name: "finish", text: "COMMIT" })],
  ];

  test.each(commits)(
    "cut before, a COMMIT as %s is not applied, and the client sees an error",
    async (_, commit) => {
      proxy.plan({ when: sendsCommit, fault: { kind: "cut_before" }, times: 1 });
      await expect(commit(await begun())).rejects.toThrow(/ECONNRESET|terminated/);
      await untilTheServerIsDone();
      expect(await kept()).toBe(0);
      expect(proxy.happened("cut_before")).toBe(1);
    },
  );

  test.each(commits)(
    "cut after, a COMMIT as %s is applied, and the client sees an error",
    async (_, commit) => {
      proxy.plan({ when: sendsCommit, fault: { kind: "cut_after" }, times: 1 });
      await expect(commit(await begun())).rejects.toThrow(/ECONNRESET|terminated/);
      await untilTheServerIsDone();
      expect(await kept()).toBeGreaterThan(0);
      expect(proxy.happened("cut_after")).toBe(1);
    },
  );

  test("a prepared COMMIT is met when it runs, not when it is prepared", async () => {
    const client = await begun();
    await client.query({ name: "finish", text: "COMMIT" });
    await client.query("begin");
    await client.query("insert into kept values ('second')");
    proxy.plan({ when: sendsCommit, fault: { kind: "cut_before" } });
    await expect(client.query({ name: "finish", text: "COMMIT" })).rejects.toThrow();
    await untilTheServerIsDone();
    expect(await kept()).toBe(1);
  });

  test("with its reply swallowed, a COMMIT is applied and the client hangs until it is cut", async () => {
    proxy.plan({ when: sendsCommit, fault: { kind: "swallow_reply" } });
    const client = await begun();
    let outcome = "pending";
    const commit = client.query("COMMIT").then(
      () => {
        outcome = "committed";
      },
      () => {
        outcome = "failed";
      },
    );
    await until(() => proxy.happened("swallow_reply") === 1);
    expect(await kept()).toBe(1);
    await (await begun("another")).query("rollback"); // Time for a reply to slip through.
    expect(outcome).toBe("pending");
    proxy.cutAll();
    await commit;
    expect(outcome).toBe("failed");
  });

  test("cut once its reply is swallowed, a COMMIT has been applied by the time the client hears of it", async () => {
    proxy.plan({ when: sendsCommit, fault: { kind: "swallow_reply", cutAfterMs: 0 } });
    await expect((await begun()).query("COMMIT")).rejects.toThrow(/ECONNRESET|terminated/);
    expect(await kept()).toBe(1);
  });

  test("a COMMIT that is held is applied late, after its client has gone", async () => {
    proxy.plan({ when: sendsCommit, fault: { kind: "hold" } });
    const client = await begun();
    const commit = expect(client.query("COMMIT")).rejects.toThrow();
    await until(() => proxy.happened("hold") === 1);
    await Promise.all([client.end(), commit]);
    expect(await kept()).toBe(0);
    proxy.release();
    await untilTheServerIsDone();
    expect(await kept()).toBe(1);
  });

  test("the word COMMIT in a value, a string or a comment is none", async () => {
    proxy.plan({ when: sendsCommit, fault: { kind: "cut_before" } });
    const client = await begun("; COMMIT");
    await client.query("insert into kept values ('; COMMIT')");
    await client.query("select 1 -- ; COMMIT");
    await client.query("rollback");
    expect(proxy.happened("cut_before")).toBe(0);
    await client.end();
  });

  test("a statement is met by its text, in either protocol, and no other is", async () => {
    const client = await begun();
    proxy.plan({ when: sendsStatement(/^insert into KEPT/i), fault: { kind: "delay", ms: 1 } });
    await client.query("insert into kept values ('simple')");
    await client.query("insert into kept values ($1)", ["extended"]);
    await client.query("select 'insert into kept'");
    expect(proxy.happened("delay")).toBe(2);
    await client.end();
  });

  test("a value of many megabytes goes through, and the COMMIT behind it is met", async () => {
    proxy.plan({ when: sendsCommit, fault: { kind: "delay", ms: 1 } });
    const client = await begun("x".repeat(8 * 2 ** 20));
    await client.query("COMMIT");
    const { rows } = await client.query("select length(value) from kept");
    expect(rows).toEqual([{ length: 8 * 2 ** 20 }]);
    expect(proxy.happened("delay")).toBe(1);
    await client.end();
  });
});

function passageOf(sql: string): Passage<PostgresStatement> {
  const chunk = Buffer.from(sql);
  const messages: readonly PostgresStatement[] = [{ sql, protocol: "simple" }];
  return { direction: "request", connection: 1, chunk, window: chunk, before: 0, messages };
}

/** What starts a connection: a code, and behind it what belongs to it. */
function beginning(code: number, rest = ""): Buffer {
  const head = Buffer.alloc(8);
  head.writeInt32BE(8 + Buffer.byteLength(rest), 0);
  head.writeInt32BE(code, 4);
  return Buffer.concat([head, Buffer.from(rest)]);
}

function message(type: string, body = ""): Buffer {
  const head = Buffer.alloc(5);
  head.write(type, "latin1");
  head.writeInt32BE(4 + Buffer.byteLength(body), 1);
  return Buffer.concat([head, Buffer.from(body)]);
}
