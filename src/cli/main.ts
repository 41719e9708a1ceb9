#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { addList } from "./commands/list.ts";
import { addMigrate } from "./commands/migrate.ts";
import { addProbe } from "./commands/probe.ts";
import { addPurge } from "./commands/purge.ts";
import { addReconcile } from "./commands/reconcile.ts";
import { addRelease } from "./commands/release.ts";
import { addResolve } from "./commands/resolve.ts";
import { addShow } from "./commands/show.ts";
import { addStats } from "./commands/stats.ts";
import { addSweep } from "./commands/sweep.ts";
import { addWorker } from "./commands/worker.ts";
import { report, withoutPasswords } from "./output.ts";

const COMMANDS: readonly ((program: Command) => void)[] = [
  ...[addMigrate, addStats, addList, addShow, addResolve, addRelease],
  ...[addSweep, addReconcile, addPurge, addWorker, addProbe],
];

process.exitCode = await main(process.argv);
// What a configuration file left open must not keep a command that is done.
setTimeout(() => process.exit(), 2_000).unref();

/** Runs the command that the arguments name; 0 when it did its work, 1 when it could not, 2 when they make no sense. */
async function main(argv: readonly string[]): Promise<number> {
  const program = new Command("oncekey")
    .description("Looks after the records that make requests safe to send twice.")
    .version(version())
    .configureOutput({ outputError: (text, write) => write(withoutPasswords(text)) })
    .exitOverride();
  for (const add of COMMANDS) add(program);
  try {
    await program.parseAsync(argv);
    return typeof process.exitCode === "number" ? process.exitCode : 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2; // it has said what was wrong
    report(error, { json: argv.includes("--json") });
    return 1;
  }
}

function version(): string {
  const { version }: { readonly version: string } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  return version;
}
