import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { type StartedProcess, startProcess, until } from "../../../test/support/processes.ts";
import { startBank } from "../src/bank/bank.ts";
import { call, ledger, setFaults, settle } from "./support/calls.ts";
import { startService } from "./support/launch.ts";
import { databases, freshPlace, temporaryFolder } from "./support/places.ts";

const WORKER = fileURLToPath(new URL("../dist/worker.js", import.meta.url));

/** Short enough that a killed server is judged within the test. */
const SHORT = {
  ...{ REQUEST_TIMEOUT: "3500ms", LEASE: "4s", BANK_TIMEOUT: "3s" },
  ...{ SWEEP_GRACE: "100ms", SWEEP_INTERVAL: "100ms", RECONCILE_INTERVAL: "100ms" },
};

describe.for(databases)("workers on $name, in processes of their own,", ({ name, skip }) => {
  test.skipIf(skip)("end what a killed server left, although the first of them is killed too", async () => {
    const place = await freshPlace(name);
    const bank = await startBank({ port: 0, dataDir: temporaryFolder() });
    onTestFinished(() => bank.close());
    const environment = { ...place.environment, ...SHORT, BANK_URL: bank.url, WORKERS: "off" };
    const killed = await startService(environment);
    expect(killed.stdout.join("\n")).toContain("run npm run worker");
    await setFaults(bank.url, { commitThenHang: true });
    const key = randomUUID();
    const cut = expect(settle(killed.url, { key })).rejects.toThrow("fetch failed");
    await until(async () => (await ledger(bank.url)).length === 1);
    killed.kill("SIGKILL");
    await Promise.all([cut, killed.exited]);

    const { url } = await startService(environment);
    expect(await workersOf(url)).toEqual({ sweeper: "absent", reconciler: "absent", purge: "absent" });
    const first = await startWorker(environment);
    await until(async () => (await workersOf(url))["sweeper"] === "ok");
    first.kill("SIGKILL");
    await first.exited;
    const second = await startWorker(environment);
    await until(async () => (await settle(url, { key })).status === 201, { withinMs: 30_000, everyMs: 50 });
    expect(await workersOf(url)).toEqual({ sweeper: "ok", reconciler: "ok", purge: "ok" });
    expect(await ledger(bank.url)).toHaveLength(1);
    expect(await place.count("SELECT count(*) FROM settlements WHERE status = 'settled'")).toBe(1);
    second.kill("SIGTERM");
    expect(await second.exited).toEqual({ code: 0, signal: null });
    expect([...first.stderr, ...second.stderr]).toEqual([]);
  });
});

test("a worker that cannot know where the bank is says so and ends with 1", () => {
  const env = { ...process.env, PORT: "0", DATA_DIR: temporaryFolder(), DATABASE_URL: "", BANK_URL: "" };
  const { status, stderr } = spawnSync(process.execPath, [WORKER], {
    env,
    encoding: "utf8",
    timeout: 20_000,
  });
  expect(stderr).toMatch(/The worker could not start\.\nBANK_URL must be set, or BANK_PORT/);
  expect(status).toBe(1);
});

async function startWorker(env: Readonly<Record<string, string>>): Promise<StartedProcess> {
  const started = { command: process.execPath, args: [WORKER], env: { NODE_ENV: "", ...env } };
  return await startProcess({ ...started, readyWhen: /reconciler every/ });
}

async function workersOf(url: string): Promise<Readonly<Record<string, unknown>>> {
  const { body } = await call(url, "GET /readyz", { token: null });
  const workers = body["workers"];
  return typeof workers === "object" && workers !== null ? { ...workers } : {};
}
