import type { Settling } from "oncekey";
import { type Bank, startBank } from "./bank/bank.ts";
import type { Configuration } from "./configuration.ts";
import { greeting } from "./greeting.ts";
import { createApp } from "./http/app.ts";
import { listen } from "./http/server.ts";
import { createMetrics } from "./metrics.ts";
import { type Parts, withParts } from "./parts.ts";
import { LONGEST_DRAIN_MS, type Running, runProcess, tell } from "./process.ts";

await runProcess("The settlement service", (configuration) =>
  withParts(configuration, (parts) => serve(parts, configuration)),
);

async function serve<Tx, Settles extends Settling>(
  { engine, database, newId, settlingAt }: Parts<Tx, Settles>,
  configuration: Configuration,
): Promise<Running> {
  const { host, port, principals, workers } = configuration;
  const metrics = createMetrics(engine, { tell });
  await database.migrate();
  const { bankUrl, closeBank } = await findBank(configuration);
  const settling = settlingAt(bankUrl);
  const app = createApp({ engine, database, settling, principals, metrics, newId, tell });
  const server = await listening("PORT", port, () => listen(app, { host, port }));
  if (workers === "here") engine.start();
  return {
    greeting: greeting({ url: server.url, database: database.description, bankUrl }, configuration),
    stop: async () => {
      server.refuseMore();
      await engine.close({ drain: Math.min(engine.policy.requestTimeoutMs, LONGEST_DRAIN_MS) });
      await server.close();
      await closeBank();
      await database.close();
    },
  };
}

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
