import { isIPv6 } from "node:net";
import type { Settling } from "oncekey";
import type { Configuration } from "./configuration.ts";
import { type Parts, withParts } from "./parts.ts";
import { LONGEST_DRAIN_MS, type Running, runProcess } from "./process.ts";

await runProcess("The worker", (configuration) =>
  withParts(configuration, (parts) => work(parts, configuration)),
);

/** Ends what servers left, in a process of its own; there may be any number of them. */
async function work<Tx, Settles extends Settling>(
  { engine, database, settlingAt }: Parts<Tx, Settles>,
  configuration: Configuration,
): Promise<Running> {
  const bankUrl = urlOfBank(configuration);
  await database.migrate();
  settlingAt(bankUrl);
  engine.start();
  const { sweepIntervalMs, reconcileIntervalMs } = engine.policy;
  return {
    greeting: [
      `The worker of the settlement service runs (process ${process.pid})`,
      `  database   ${database.description}`,
      `  bank       ${bankUrl}`,
      `  sweeper    every ${sweepIntervalMs} ms, and the purge with it`,
      `  reconciler every ${reconcileIntervalMs} ms`,
    ].join("\n"),
    stop: async () => {
      await engine.close({ drain: LONGEST_DRAIN_MS });
      await database.close();
    },
  };
}

/** The bank that is elsewhere, or the one that a server of the same configuration has embedded. */
function urlOfBank({ bank, host }: Configuration): string {
  switch (bank.kind) {
    case "elsewhere":
      return bank.url;
    case "embedded":
      if (bank.port === 0)
        throw new Error("BANK_URL must be set, or BANK_PORT: nobody knows on which free port the bank is.");
      return `http://${isIPv6(host) ? `[${host}]` : host}:${bank.port}`;
  }
}
