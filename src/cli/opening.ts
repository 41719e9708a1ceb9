import { resolve as absolute } from "node:path";
import { pathToFileURL } from "node:url";
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseDuration } from "../core/policy.ts";
import { createEngine, type Engine } from "../engine/engine.ts";
import { withoutPasswords } from "./output.ts";
import { openStore, readStoreUrl } from "./stores.ts";

/** Where a command finds the records: a database by its URL, or the user's own engine with its operations. */
export interface Place {
  readonly schema?: string;
  readonly config?: string;
  readonly sweepGrace?: string;
  readonly sweepInterval?: string;
  readonly unknownRetention?: string;
  readonly releasedRetention?: string;
}

/** An engine for as long as one command runs. */
export interface OpenedEngine {
  readonly engine: Engine;
  /** As people may see it. */
  readonly name: string;
  readonly close: () => Promise<void>;
}

/** Adds what every command has that works on records. */
export function onRecords(command: Command): Command {
  return command
    .argument("[url]", "postgres://user@host:5432/database or sqlite:path")
    .option(
      "--config <file>",
      "a module of yours that exports `engine`, with its operations, in the place of a URL",
    )
    .option("--schema <name>", "PostgreSQL: the schema that the tables are in")
    .option("--json", "print JSON", false);
}

/** Adds the settings of a worker that has no configuration file to read them off. */
export function withSettings(command: Command): Command {
  const duration = (flags: string, what: string) =>
    command.addOption(new Option(flags, `${what}; with a URL only`).argParser(durationIn));
  duration("--sweep-grace <duration>", "what the sweeper waits beyond the lease (300s)");
  duration("--unknown-retention <duration>", "how long a held record is kept (30d)");
  duration("--released-retention <duration>", "how long a released record is kept (24h)");
  return command;
}

export function durationIn(text: string): string {
  const parsed = parseDuration(text);
  if (parsed.kind === "bad") throw new InvalidArgumentError(`It must be ${parsed.reason}.`);
  return text;
}

/** Opens what the arguments name; what makes no sense ends the command with its usage. */
async function openEngine(url: string | undefined, place: Place, command: Command): Promise<OpenedEngine> {
  const { config, schema } = place;
  const settings = settingsIn(place);
  if (config === undefined) {
    if (url === undefined)
      return command.error("error: name a database by its URL, or an engine by --config");
    const read = readStoreUrl(url, schema);
    if (read.kind === "bad") return command.error(`error: ${read.reason}`);
    const { store, close } = await openStore(read);
    const engine = createEngine<never, "async">({ store, ...settings });
    return { engine, name: withoutPasswords(url), close };
  }
  if (url !== undefined) return command.error("error: give a URL or --config, not both");
  const [setting] = [...Object.keys(settings), ...(schema === undefined ? [] : ["schema"])];
  if (setting !== undefined)
    return command.error(`error: with --config the engine's own settings hold, not ${setting}`);
  return { ...(await configuredEngine(config)), name: config };
}

function settingsIn({ sweepGrace, sweepInterval, unknownRetention, releasedRetention }: Place) {
  return {
    ...(sweepGrace === undefined ? {} : { sweepGrace }),
    ...(sweepInterval === undefined ? {} : { sweepInterval }),
    ...(unknownRetention === undefined ? {} : { unknownRetention }),
    ...(releasedRetention === undefined ? {} : { releasedRetention }),
  };
}

/** The user's module: it exports `engine`, and `close` where something of its own is to be freed at the end. */
async function configuredEngine(file: string): Promise<Omit<OpenedEngine, "name">> {
  const module: unknown = await import(pathToFileURL(absolute(file)).href);
  const engine = memberOf(module, "engine");
  const close = memberOf(module, "close");
  if (!isEngine(engine))
    throw new Error(`${file} exports no engine: export const engine = createEngine({ … }).`);
  return {
    engine,
    close: async () => {
      if (typeof close === "function") await close();
      else await engine.store.close();
    },
  };
}

function isEngine(value: unknown): value is Engine {
  return ["store", "context", "settlers", "steps", "policy"].every(
    (name) => typeof memberOf(value, name) === "object",
  );
}

/** Whether a reconciler of this engine has anybody to ask: of an operation, or of steps that were declared. */
export function knowsOperations({ settlers, steps }: Engine): boolean {
  return settlers.size > 0 || steps.size > 0;
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return new Map<string, unknown>(Object.entries(value)).get(name);
}

/** Runs a command's work on an engine, which is closed however it ends. */
export async function withEngine<T>(
  url: string | undefined,
  place: Place,
  command: Command,
  work: (opened: OpenedEngine) => Promise<T>,
): Promise<T> {
  const opened = await openEngine(url, place, command);
  try {
    await opened.engine.store.check();
    return await work(opened);
  } finally {
    await opened.close();
  }
}
