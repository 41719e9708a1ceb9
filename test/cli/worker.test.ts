import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { declareSteps } from "../../src/engine/declared.ts";
import { openBank, order, paying } from "../engine/bank.ts";
import { checkedOut, checkout, ran, stepOf } from "../engine/declared-calls.ts";
import { died, requestFor, sqlEngineOn, standing } from "../engine/engines.ts";
import { onEverySqlStore, type Sql } from "../engine/stores.ts";
import { COMMAND, commandIsBuilt, oncekey } from "../support/command.ts";
import { startProcess, until } from "../support/processes.ts";

beforeAll(commandIsBuilt);

const CONFIG = fileURLToPath(new URL("configured.mjs", import.meta.url));

describe("oncekey worker", () => {
  onEverySqlStore((given) => {
    works(given);
  });

  test("that cannot reach its store ends at once, without the password", async () => {
    const { code, stderr } = await oncekey("worker", "postgres://u:s3cret@127.0.0.1:1/d");
    expect(code).toBe(1);
    expect(stderr).not.toContain("s3cret");
  });
});

function started(parameters: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const args = [COMMAND, "worker", ...parameters];
  return startProcess({ command: process.execPath, args, env, readyWhen: /^worker: |"started"/ });
}

function works<Tx>(given: () => Sql<Tx>): void {
  test.each(["SIGTERM", "SIGINT"] as const)(
    "sweeps and purges on a URL alone, says so, and ends with 0 at %s",
    async (signal) => {
      const { store, url } = given();
      const request = requestFor(`dead ${signal}`, { effects: "transaction" });
      await died(store, request);
      const settings = ["--sweep-grace", "1ms", "--sweep-interval", "50ms"];
      const worker = await started([url, ...settings]);
      await until(async () => (await standing(store, request)).state === "released");
      await until(() => worker.stdout.includes("sweeper: released 1"));
      worker.kill(signal);
      expect(await worker.exited).toEqual({ code: 0, signal: null });
      expect(worker.stdout[0]).toMatch(/^worker: sweeper, purge on .*no operation is known/);
      expect(worker.stdout.at(-1)).toBe(`worker: stopped by ${signal}`);
      expect(worker.stderr).toEqual([]);
    },
  );

  test("killed -9 in the middle of a sweep it loses nothing: the next one goes on, and each record is moved once", async () => {
    const { store, url } = given();
    const requests = Array.from({ length: 30 }, (_, n) =>
      requestFor(`dead ${n}`, { effects: "transaction" }),
    );
    await Promise.all(requests.map((request) => died(store, request)));
    const worker = await started([url, "--sweep-grace", "1ms"]);
    await until(async () => (await store.list({ limit: 1, state: "released" })).records.length > 0, {
      everyMs: 1,
      withinMs: 30_000,
    });
    worker.kill("SIGKILL");
    await worker.exited;
    expect(await oncekey("sweep", url, "--sweep-grace", "1ms")).toMatchObject({ code: 0 });
    for (const request of requests)
      expect(await standing(store, request)).toMatchObject({ state: "released", revision: 2 });
  });

  test("with --config it also asks the providers of its operations; two of them look at each record once", async () => {
    const { store, url, rows } = given();
    const bank = openBank();
    const { pay } = paying(sqlEngineOn(store).engine, given(), bank);
    bank.setMood("pays silently");
    const keys = Array.from({ length: 8 }, (_, n) => `lost ${n}`);
    for (const key of keys) await pay(order(key));
    const env = { STORE_URL: url, BANK_SAYS: "paid" };
    const workers = await Promise.all([1, 2].map(() => started(["--config", CONFIG, "--json"], env)));
    for (const key of keys)
      await until(async () => (await rows(key))[0]?.state === "paid", { withinMs: 30_000 });
    for (const worker of workers) worker.kill("SIGTERM");
    for (const worker of workers) expect(await worker.exited).toEqual({ code: 0, signal: null });
    const told = workers.flatMap(({ stdout }) => stdout.map((line) => JSON.parse(line)));
    expect(told.reduce((sum, { settled = 0 }) => sum + settled, 0)).toBe(8);
    expect(told.filter(({ worker }) => worker === "failure")).toEqual([]);
  });

  test.each(["worker", "reconcile"])(
    "asks the providers of declared steps where there is no operation, as oncekey %s",
    async (command) => {
      const { store, url } = given();
      const request = checkout(command);
      const unreached = async () => ({ kind: "pending" }) as const;
      const cancel = async () => ({ kind: "cancelled" }) as const;
      const { engine } = sqlEngineOn(store);
      declareSteps(engine, "checkout", { charge: { provider: "keyed", look: unreached, cancel } });
      await ran(engine, request, ({ effect }) => effect("charge", () => Promise.reject(new Error("reset"))));
      expect(await stepOf(store, request)).toMatchObject({ state: "open" });
      const asking = await startProcess({
        command: process.execPath,
        args: [COMMAND, command, "--config", CONFIG],
        env: { STORE_URL: url, KNOWS: "steps" },
        readyWhen: /released 1/,
      });
      expect(await checkedOut(store, request)).toMatchObject({ state: "released" });
      expect(await stepOf(store, request)).toMatchObject({ state: "finished" });
      asking.kill("SIGTERM");
      await asking.exited;
    },
  );
}
