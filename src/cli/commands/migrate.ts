import type { Command } from "commander";
import { print, withoutPasswords } from "../output.ts";
import { type Applied, openSchema, printMigrations, readStoreUrl, type StoreUrl } from "../stores.ts";

/** `oncekey migrate URL`: makes or changes the tables, or shows how it would. */
export function addMigrate(program: Command): void {
  program
    .command("migrate")
    .description("Make the tables of a store, or bring them up to date.")
    .argument("<url>", "postgres://user@host:5432/database or sqlite:path")
    .option("--schema <name>", "PostgreSQL: the schema that the tables are in")
    .option("--print", "print the SQL instead of running it; connects to nothing", false)
    .option("--json", "print one JSON document", false)
    .action((url: string, options: Options, command: Command) => run(url, options, command));
}

interface Options {
  readonly schema?: string;
  readonly print: boolean;
  readonly json: boolean;
}

async function run(text: string, options: Options, command: Command): Promise<void> {
  const url = readStoreUrl(text, options.schema);
  if (url.kind === "bad") return command.error(`error: ${url.reason}`);
  if (options.print) {
    const sql = printMigrations(url);
    print({ text: sql.trimEnd(), document: { sql } }, options);
    return;
  }
  const applied = await migrate(url);
  const document = { applied: applied.map(({ version, name }) => ({ version, name })) };
  print({ text: told(applied, withoutPasswords(text)), document }, options);
}

async function migrate(url: StoreUrl): Promise<readonly Applied[]> {
  const schema = await openSchema(url);
  try {
    return await schema.migrate();
  } finally {
    await schema.close();
  }
}

function told(applied: readonly Applied[], database: string): string {
  if (applied.length === 0) return `Nothing to do: ${database} has every migration.`;
  const lines = applied.map(({ version, name }) => `  ${version}  ${name}`);
  return [`Applied to ${database}:`, ...lines].join("\n");
}
