#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { addMigrate } from "./commands/migrate.ts";
import { report, withoutPasswords } from "./output.ts";

process.exitCode = await main(process.argv);

/** Runs the command that the arguments name; 0 when it did its work, 1 when it could not, 2 when they make no sense. */
async function main(argv: readonly string[]): Promise<number> {
  const program = new Command("oncekey")
    .description("Looks after the records that make requests safe to send twice.")
    .version(version())
    .configureOutput({ outputError: (text, write) => write(withoutPasswords(text)) })
    .exitOverride();
  addMigrate(program);
  try {
    await program.parseAsync(argv);
    return 0;
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
