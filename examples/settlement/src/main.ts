import { randomUUID } from "node:crypto";
import type { Settling } from "oncekey";
import { ConfigurationError, createEngine } from "oncekey";
import { type Bank, startBank } from "./bank/bank.ts";
import { createBankClient } from "./bank-client.ts";
import { type Configuration, readConfiguration } from "./configuration.ts";
import type { Database } from "./database/database.ts";
import { postgresDatabase } from "./database/postgres.ts";
import { sqliteDatabase } from "./database/sqlite.ts";
import { bankTimeoutWithin, inVariables } from "./durations.ts";
import { greeting, type Whereabouts } from "./greeting.ts";
import { createApp } from "./http/app.ts";
import { listen } from "./http/server.ts";
import { createMetrics } from "./metrics.ts";

const reading = readConfiguration(process.env);
if (reading.kind === "invalid") {
  fail("start", reading.problems.join("\n"));
} else {
  await begin(reading.configuration);
}

async function begin(configuration: Configuration): Promise<void> {
  try {
    const { whereabouts, stop } = await start(configuration);
    const leave = () => {
      stop().then(
        () => process.exit(0),
        (error) => fail("stop", error),
      );
    };
    process.once("SIGTERM", leave);
    process.once("SIGINT", leave);
    console.log(greeting(whereabouts, configuration));
  } catch (error) {
    fail("start", error);
  }
}

interface Running {
  readonly whereabouts: Whereabouts;
  /** Lets what runs end, then gives everything back. */
  readonly stop: () => Promise<void>;
}

async function start(configuration: Configuration): Promise<Running> {
  const { database: place, durations } = configuration;
  const { storeTimeoutMs } = durations;
  switch (place.kind) {
    case "sqlite":
      return await run(await sqliteDatabase({ path: place.path, storeTimeoutMs }), configuration);
    case "postgres":
      return await run(await postgresDatabase({ url: place.url, storeTimeoutMs }), configuration);
  }
}

async function run<Tx, Settles extends Settling>(
  database: Database<Tx, Settles>,
  configuration: Configuration,
): Promise<Running> {
  const { host, port, principals, durations } = configuration;
  const engine = createEngine({ store: database.store, namespace: "settlement", ...durations.engine });
  const { requestTimeoutMs } = engine.policy;
  engine.subscribe((event) => {
    if (event.type === "failure") tell(`While ${event.what}:`, event.error);
  });
  const metrics = createMetrics(engine);
  await database.migrate();
  const { bankUrl, closeBank } = await findBank(configuration);
  const timeoutMs = durations.bankTimeoutMs ?? bankTimeoutWithin(requestTimeoutMs);
  const bank = createBankClient({ url: bankUrl, timeoutMs });
  const app = createApp({ engine, database, bank, principals, metrics, newId: randomUUID, tell });
  const server = await listening("PORT", port, () => listen(app, { host, port }));
  engine.start();
  return {
    whereabouts: { url: server.url, database: database.description, bankUrl },
    stop: async () => {
      server.refuseMore();
      await engine.close({ drain: Math.min(requestTimeoutMs, LONGEST_DRAIN_MS) });
      await server.close();
      await closeBank();
      await database.close();
    },
  };
}

/** Proxies and orchestrators kill what has not ended by then. */
const LONGEST_DRAIN_MS = 10_000;

async function findBank({ bank, host }: Configuration): Promise<{
  readonly bankUrl: string;
  readonly closeBank: () => Promise<void>;
}> {
  switch (bank.kind) {
    case "elsewhere":
      return { bankUrl: bank.url, closeBank: async () => {} };
    case "embedded": {
      const { port, dataDir } = bank;
      const started: Bank = await listening("BANK_PORT", port, () => startBank({ port, host, dataDir }));
      return { bankUrl: started.url, closeBank: started.close };
    }
  }
}

async function listening<T>(variable: string, port: number, listen: () => Promise<T>): Promise<T> {
  try {
    return await listen();
  } catch (error) {
    if (!(error instanceof Error) || !("syscall" in error) || error.syscall !== "listen") throw error;
    const advice = `set ${variable} to another port, or to 0 for any free one`;
    throw new Error(`Port ${port} cannot be listened on (${error.message}): ${advice}.`, { cause: error });
  }
}

function tell(...what: readonly unknown[]): void {
  console.error(...what);
}

function fail(what: "start" | "stop", error: unknown): void {
  const said = error instanceof Error ? error.message : String(error);
  const message = error instanceof ConfigurationError ? inVariables(said) : said;
  console.error(`The settlement service could not ${what}.\n${message}`);
  process.exit(1);
}
