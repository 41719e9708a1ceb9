import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { Client } from "pg";
import { describe, expect, test } from "vitest";
import { freshPostgresDatabase, freshSqliteFile, postgresIsHere, sqliteDriver } from "./databases.ts";
import { freePort, startProcess, stopAll, until } from "./processes.ts";
import { seed, seededRandom } from "./seed.ts";

describe("databases", () => {
  test.skipIf(!postgresIsHere())(
    "a PostgreSQL database is empty, flushes its commits, and is gone once dropped",
    async () => {
      const database = await freshPostgresDatabase();
      const client = new Client({ connectionString: database.url });
      client.on("error", () => {}); // The drop cuts this connection: that is the point of the test.
      await client.connect();
      expect(
        (await client.query("select tablename from pg_tables where schemaname = 'public'")).rows,
      ).toEqual([]);
      expect((await client.query("show fsync")).rows).toEqual([{ fsync: "on" }]);
      await database.drop();
      await expect(client.query("select 1")).rejects.toThrow();
      await expect(new Client({ connectionString: database.url }).connect()).rejects.toThrow(
        /does not exist/,
      );
    },
  );

  test.skipIf(!postgresIsHere())(
    "processes that tests start find the server in their environment",
    async () => {
      const script = "console.log(process.env.TEST_POSTGRES_URL)";
      const child = await startProcess({
        command: process.execPath,
        args: ["-e", script],
        readyWhen: /^postgres(ql)?:/,
      });
      await child.exited;
    },
  );

  test("a SQLite file lies in a folder of its own, which can be removed", () => {
    const file = freshSqliteFile();
    const database = new (sqliteDriver())(file.path);
    database.exec("create table kept (value text)");
    database.close();
    expect(existsSync(file.path)).toBe(true);
    file.remove();
    expect(existsSync(dirname(file.path))).toBe(false);
  });
});

describe("processes", () => {
  const stays = "console.log('up'); setInterval(() => {}, 1000)";

  test("a process is ready when it prints so, and ends by the signal it is sent", async () => {
    const child = await startProcess({ command: process.execPath, args: ["-e", stays], readyWhen: /^up$/ });
    expect(child.stdout).toEqual(["up"]);
    child.kill("SIGKILL");
    expect(await child.exited).toEqual({ code: null, signal: "SIGKILL" });
  });

  test("a process that ends before it is ready fails with what it printed", async () => {
    const script = "console.error('no such luck'); process.exit(3)";
    const started = startProcess({ command: process.execPath, args: ["-e", script], readyWhen: /up/ });
    await expect(started).rejects.toThrow(/"code":3.*no such luck/s);
  });

  test("a process that is never ready is killed and fails", async () => {
    const given = { command: process.execPath, args: ["-e", stays], readyWhen: /down/, readyWithinMs: 400 };
    await expect(startProcess(given)).rejects.toThrow(/printed no \/down\/ in 400 ms/);
  });

  test("a command that does not exist fails", async () => {
    await expect(startProcess({ command: "/no/such/command" })).rejects.toThrow(/ENOENT/);
  });

  test("whatever still lives is killed at the end", async () => {
    const child = await startProcess({ command: process.execPath, args: ["-e", stays], readyWhen: /up/ });
    await stopAll();
    expect(() => process.kill(child.pid, 0)).toThrow(/ESRCH/);
  });

  test("a free port can be listened on", async () => {
    const script = `require("node:net").createServer().listen(${await freePort()}, "127.0.0.1", () => console.log("up"))`;
    const child = await startProcess({ command: process.execPath, args: ["-e", script], readyWhen: /up/ });
    expect(child.stderr).toEqual([]);
  });

  test("waiting in vain fails and quotes the condition", async () => {
    await expect(until(() => 1 > 2, { withinMs: 30, everyMs: 5 })).rejects.toThrow(
      "Not so within 30 ms: () => 1 > 2",
    );
  });
});

describe("seeds", () => {
  test("one seed draws one sequence", () => {
    const draw = (random = seededRandom(7)) => [
      random.below(1000),
      random.fraction(),
      random.pick(["a", "b", "c"]),
    ];
    expect(draw()).toEqual(draw());
    expect(draw()).not.toEqual(draw(seededRandom(8)));
  });

  test("the seed of a file stays the same, and every draw is in its bounds", () => {
    const random = seededRandom(seed());
    const drawn = Array.from({ length: 1000 }, () => random.below(6));
    expect([...new Set(drawn)].sort()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(seededRandom().below(6)).toBe(drawn[0]);
  });
});
