import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { SqliteConnection } from "../../src/stores/sqlite/index.ts";
import { until } from "../support/processes.ts";
import { seededRandom } from "../support/seed.ts";
import { claimOf, httpIdentity } from "./sample.ts";
import { openForTest, sqliteFile, sqliteStoreForTest, startChild, told } from "./sqlite-files.ts";

const tracer = "strace";
const canTrace = spawnSync(tracer, ["-V"]).status === 0;
const inCi = process.env["CI"] === "true";

describe("what SQLite acknowledged", () => {
  test.skipIf(!canTrace && !inCi)(
    "reached the disk first: no commit of a claim or of a unit goes without its own sync",
    async () => {
      expect(canTrace, "strace is missing: apt-get install strace").toBe(true);
      const syncsOf = async (what: string) => {
        const { path } = await storeWithEffects();
        const summary = `${path}.syncs`;
        const before = [tracer, "-f", "-c", "-e", "trace=fsync,fdatasync", "-o", summary];
        expect(await told(await startChild([what, path, "50"], { before }))).toBe('"done"');
        const calls = readFileSync(summary, "utf8").matchAll(
          /^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?f(?:data)?sync$/gm,
        );
        return [...calls].reduce((sum, [, count]) => sum + Number(count), 0);
      };
      expect(await syncsOf("claims")).toBeGreaterThanOrEqual(50);
      expect(await syncsOf("pays")).toBeGreaterThanOrEqual(100);
    },
  );

  if (!canTrace && !inCi)
    console.warn("\nNOT tested: that every commit reaches the disk. It takes strace, which is not here.\n");

  test("outlives kill -9 at any moment, effect and record together or neither, and no key is lost", async () => {
    const { store, path, connection } = await storeWithEffects();
    const random = seededRandom();
    for (let round = 0; round < 5; round += 1) {
      const children = await Promise.all(
        ["a", "b"].map((name) => startChild(["forever", path, `${round}${name}`], { readyWhen: /ready/ })),
      );
      const target = count(connection, "oncekey_records") + 10 + random.below(40);
      await until(() => count(connection, "oncekey_records") >= target, { everyMs: 1 + random.below(5) });
      for (const child of children) child.kill("SIGKILL");
      await Promise.all(children.map(({ exited }) => exited));
      expect(connection.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
    }
    const split = `SELECT key FROM oncekey_records WHERE state = 'completed' EXCEPT SELECT key FROM effects
      UNION ALL SELECT key FROM effects EXCEPT SELECT key FROM oncekey_records WHERE state = 'completed'`;
    expect(connection.prepare(split).all()).toEqual([]);
    expect(count(connection, "effects")).toBeGreaterThan(20);
    const { records, damaged } = await store.list({ limit: 100_000 });
    expect(damaged).toBe(0);
    expect(new Set(records.map(({ attempt }) => attempt)).size).toBe(records.length);
    expect(await store.insert(claimOf(httpIdentity("afterwards")))).toMatchObject({ inserted: true });
  });
});

describe("two processes on one file", () => {
  test("that claim the same 200 keys have one winner for each of them", async () => {
    const { path, connection } = await storeWithEffects();
    const keys = Array.from({ length: 200 }, (_, n) => `k${n}`);
    const ends = await race(path, [keys, [...keys].reverse()]);
    expect(ends.flatMap(({ errors }) => errors)).toEqual([]);
    expect(ends.flatMap(({ won }) => won).sort()).toEqual([...keys].sort());
    expect(count(connection, "effects WHERE key LIKE 'k%'")).toBe(200);
  });

  test("DB-13: claim 200 keys each, a tenth of them twice: no error, an effect for each key, no event loop blocked", async () => {
    const { path, connection } = await storeWithEffects();
    const keysOf = (name: string) => Array.from({ length: 200 }, (_, n) => `${name}${n % 180}`);
    const ends = await race(path, [keysOf("a"), keysOf("b")]);
    expect(ends.flatMap(({ errors }) => errors)).toEqual([]);
    for (const table of ["effects", "oncekey_records"]) {
      expect(count(connection, `${table} WHERE key NOT LIKE 'warm-%'`)).toBe(360);
    }
    for (const { blockedMs } of ends) expect(blockedMs).toBeLessThan(200);
  });

  test("that migrate at once apply each step once, and both go on", async () => {
    const path = sqliteFile();
    const children = await Promise.all(
      [1, 2, 3].map(() => startChild(["migrates", path], { readyWhen: /ready/ })),
    );
    writeFileSync(`${path}.go`, "");
    const applied = await Promise.all(children.map(told));
    expect(applied.sort()).toEqual(["[1,2]", "[]", "[]"]);
    expect(count(openForTest(path), "oncekey_migrations")).toBe(2);
  });

  test("go on once the one that held the write lock is killed; until then the other says contention", async () => {
    const { store, path } = await sqliteStoreForTest({ storeTimeout: 300 });
    const holder = await startChild(["hold", path, "600000"], { readyWhen: /held/ });
    await expect(store.insert(claimOf(httpIdentity("k")))).rejects.toMatchObject({
      code: "store_contention",
    });
    holder.kill("SIGKILL");
    await holder.exited;
    expect(await store.insert(claimOf(httpIdentity("k")))).toMatchObject({ inserted: true });
  });

  test("wait for each other's short transactions, and serve other things meanwhile", async () => {
    const { store, path } = await sqliteStoreForTest({ storeTimeout: "30s" });
    const holder = await startChild(["hold", path, "300"], { readyWhen: /held/ });
    let turned = 0;
    const timer = setInterval(() => {
      turned += 1;
    }, 5);
    expect(await store.insert(claimOf(httpIdentity("k")))).toMatchObject({ inserted: true });
    clearInterval(timer);
    expect((await holder.exited).code).toBe(0);
    expect(turned).toBeGreaterThan(5);
  });
});

interface Ended {
  readonly won: readonly string[];
  readonly errors: readonly string[];
  readonly blockedMs: number;
}

async function race(path: string, keys: readonly (readonly string[])[]): Promise<readonly Ended[]> {
  const children = await Promise.all(
    keys.map((some) => startChild(["race", path, JSON.stringify(some)], { readyWhen: /ready/ })),
  );
  writeFileSync(`${path}.go`, "");
  const ended: readonly Ended[] = JSON.parse(`[${await Promise.all(children.map(told))}]`);
  return ended;
}

async function storeWithEffects() {
  const { store, path } = await sqliteStoreForTest();
  const connection = openForTest(path);
  connection.exec("CREATE TABLE effects (key TEXT NOT NULL)");
  return { store, path, connection };
}

function count(connection: SqliteConnection, table: string): number {
  return Number(Object(connection.prepare(`SELECT count(*) AS rows FROM ${table}`).get()).rows);
}
