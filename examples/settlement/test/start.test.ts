import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { until } from "../../../test/support/processes.ts";
import { startBank } from "../src/bank/bank.ts";
import { call, ledger, setFaults, settle } from "./support/calls.ts";
import { command, startService } from "./support/launch.ts";
import { databases, freshPlace, temporaryFolder } from "./support/places.ts";

describe("what start-up prints", () => {
  const curlIsHere = spawnSync("curl", ["--version"]).status === 0;

  test.skipIf(!curlIsHere)(
    "a command that settles as it is pasted, and is repeated as it is pasted again",
    async () => {
      const { stdout, bankUrl } = await startService({ DATA_DIR: temporaryFolder(), DATABASE_URL: "" });
      const line = stdout.find((each) => each.startsWith("curl ")) ?? "";
      const paste = () => spawnSync("sh", ["-c", line], { encoding: "utf8" }).stdout;
      expect(paste()).toMatch(/^HTTP\/1\.1 201 .*"status":"settled"/s);
      expect(paste()).toMatch(/idempotent-replayed: true/);
      expect(await ledger(bankUrl)).toHaveLength(1);
    },
  );

  test("the database, never with its password, and no token that is a secret", async () => {
    const folder = temporaryFolder();
    const { stdout } = await startService({ DATA_DIR: folder, DATABASE_URL: "", TOKENS: "s3cret=carol" });
    expect(stdout.join("\n")).toContain(`SQLite, ${join(folder, "settlement.sqlite")}`);
    expect(stdout.join("\n")).not.toContain("s3cret");
  });
});

describe("a start that fails", () => {
  const start = (environment: Readonly<Record<string, string>>) => {
    const env = { ...process.env, PORT: "0", DATA_DIR: temporaryFolder(), DATABASE_URL: "", ...environment };
    return spawnSync(command.command, [...command.args], { env, encoding: "utf8", timeout: 20_000 });
  };
  const wrong: readonly (readonly [environment: Readonly<Record<string, string>>, said: RegExp])[] = [
    [{ PORT: "http", LEASE: "soon" }, /PORT must be .*\nLEASE must be/],
    [{ DATABASE_URL: "mysql://root:secret@host/a" }, /DATABASE_URL names a MySQL, which is not built yet/],
    [{ NODE_ENV: "production" }, /TOKENS must be set in production/],
    [{ REQUEST_TIMEOUT: "2s", LEASE: "1s" }, /LEASE must be longer than REQUEST_TIMEOUT/],
    [{ DATABASE_URL: "postgres://nobody:secret@127.0.0.1:1/none" }, /No connection to PostgreSQL/],
  ];
  test.each(wrong)("%o says why and ends with 1", (environment, said) => {
    const { status, stdout, stderr } = start(environment);
    expect(stderr).toMatch(said);
    expect(stderr).not.toContain("secret");
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
  });

  test.each(["PORT", "BANK_PORT"])("%s that is taken is named", async (variable) => {
    const holder = createServer().listen(0, "127.0.0.1");
    await once(holder, "listening");
    onTestFinished(() => void holder.close());
    const address = holder.address();
    const port = typeof address === "object" ? String(address?.port) : "";
    const { status, stderr } = start({ BANK_PORT: "0", [variable]: port });
    expect(stderr).toMatch(
      new RegExp(`Port ${port} cannot be listened on .* set ${variable} to another`, "s"),
    );
    expect(status).toBe(1);
  });
});

describe.for(databases)("processes on $name", ({ name, skip }) => {
  test.skipIf(skip)(
    "two that start at once on an empty database both serve, and share their keys",
    async () => {
      const place = await freshPlace(name);
      const bank = await startBank({ port: 0, dataDir: temporaryFolder() });
      onTestFinished(() => bank.close());
      const environment = { ...place.environment, BANK_URL: bank.url };
      const [one, two] = await Promise.all([startService(environment), startService(environment)]);
      const key = randomUUID();
      const first = await settle(one.url, { key });
      const second = await settle(two.url, { key });
      expect(first.status).toBe(201);
      expect(second.text).toBe(first.text);
      expect(second.headers.get("idempotent-replayed")).toBe("true");
      expect(await ledger(bank.url)).toHaveLength(1);
    },
  );

  test.skipIf(skip)(
    "one that is told to end answers what runs, takes nothing new, and ends with 0",
    async () => {
      const place = await freshPlace(name);
      const service = await startService(place.environment);
      await setFaults(service.bankUrl, { delayMs: 2500 });
      const running = settle(service.url);
      await until(async () => (await place.count("SELECT count(*) FROM settlements")) === 1);
      service.kill("SIGTERM");
      expect(await running).toMatchObject({ status: 201 });
      expect(await service.exited).toEqual({ code: 0, signal: null });
      expect(service.stderr).toEqual([]);
      await expect(call(service.url, "GET /healthz")).rejects.toThrow("fetch failed");
    },
  );

  test.skipIf(skip)(
    "one whose request hangs ends with 0 all the same, and the next gets the truth",
    async () => {
      const place = await freshPlace(name);
      const times = { REQUEST_TIMEOUT: "1s", BANK_TIMEOUT: "30s", RECONCILE_INTERVAL: "100ms" };
      const service = await startService({ ...place.environment, ...times });
      await setFaults(service.bankUrl, { commitThenHang: true });
      const key = randomUUID();
      const running = settle(service.url, { key });
      await until(async () => (await ledger(service.bankUrl)).length === 1);
      service.kill("SIGTERM");
      expect(await running).toMatchObject({ status: 504, body: { code: "outcome_unknown" } });
      expect(await service.exited).toEqual({ code: 0, signal: null });
      const { url, bankUrl } = await startService({ ...place.environment, ...times });
      await until(async () => (await settle(url, { key })).status === 201, { withinMs: 30_000, everyMs: 50 });
      expect(await ledger(bankUrl)).toHaveLength(1);
    },
  );
});
