import { type Command, InvalidArgumentError, Option } from "commander";
import type { Identity, KeyRecord } from "../core/record.ts";
import type { ListQuery, Store } from "../stores/store.ts";

/** Which records a person means. */
export interface Selection {
  readonly principal?: string;
  readonly key?: string;
  readonly run?: string;
  readonly operation?: string;
  readonly correlation?: string;
  readonly since?: number;
  readonly until?: number;
}

/** Adds what names one record. */
export function namingOne(command: Command): Command {
  return command
    .option("--principal <name>", "whose key")
    .option("--key <key>", "the key")
    .option("--run <operation>", "the key is one of run, for this operation (else of HTTP)");
}

/** Adds what chooses many: all that is given must hold. */
export function choosingMany(command: Command): Command {
  return command
    .option("--operation <name>", "all of this operation")
    .option("--correlation <id>", "all with this correlation id")
    .addOption(new Option("--since <time>", "first seen at this time or later (ISO 8601)").argParser(timeIn))
    .addOption(new Option("--until <time>", "first seen before this time (ISO 8601)").argParser(timeIn));
}

/** The one record that is named, or what is missing. */
export function identityIn({ principal, key, run }: Selection, command: Command): Identity {
  if (principal === undefined || key === undefined)
    return command.error("error: name a record by --principal and --key (and --run for one of run)");
  return run === undefined
    ? { kind: "http", principal, key }
    : { kind: "run", principal, operation: run, key };
}

/** True where many are chosen, false where one is named; both at once, or neither, makes no sense. */
export function choosesMany(selection: Selection, command: Command): boolean {
  const { principal, key, run, operation, correlation, since, until } = selection;
  const one = [principal, key, run].some((value) => value !== undefined);
  const many = [operation, correlation, since, until].some((value) => value !== undefined);
  if (one && many) command.error("error: name one record, or choose many, not both");
  if (!one && !many)
    command.error(
      "error: name one record by --principal and --key, or choose many by --operation, --correlation, --since or --until",
    );
  return many;
}

/** Every `unknown` that was chosen, page by page. */
export async function unknownOnes(store: Store, selection: Selection): Promise<readonly KeyRecord[]> {
  const { operation, correlation, since, until } = selection;
  const query: ListQuery = {
    limit: PAGE,
    state: "unknown",
    ...(operation === undefined ? {} : { operation }),
    ...(correlation === undefined ? {} : { correlationId: correlation }),
  };
  const chosen: KeyRecord[] = [];
  let before: ListQuery["before"];
  for (;;) {
    const { records } = await store.list(before === undefined ? query : { ...query, before });
    for (const record of records) {
      const { createdAt } = record;
      if ((since === undefined || createdAt >= since) && (until === undefined || createdAt < until))
        chosen.push(record);
    }
    const last = records.at(-1);
    if (last === undefined || records.length < PAGE) return chosen;
    before = { updatedAt: last.updatedAt, identity: last.identity };
  }
}

const PAGE = 500;

function timeIn(text: string): number {
  const at = Date.parse(text);
  if (Number.isNaN(at)) throw new InvalidArgumentError("It must be a time like 2026-01-31T12:00:00Z.");
  return at;
}
