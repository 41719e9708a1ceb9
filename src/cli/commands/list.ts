import { type Command, InvalidArgumentError, Option } from "commander";
import type { Disposition, RecordState } from "../../core/record.ts";
import { onRecords, type Place, withEngine } from "../opening.ts";
import { type Format, print } from "../output.ts";
import { documentOf, HEADINGS, rowOf, table } from "../records.ts";

/** `oncekey list`: records by what is asked of them, the newest change first. */
export function addList(program: Command): void {
  onRecords(program.command("list").description("List records, the newest change first."))
    .addOption(new Option("--state <state>", "in this state").choices(STATES))
    .addOption(new Option("--disposition <who>", "unknown, and to be ended so").choices(DISPOSITIONS))
    .option("--operation <name>", "of this operation")
    .option("--principal <name>", "of this principal")
    .option("--key <key>", "with this key")
    .option("--correlation <id>", "with this correlation id")
    .addOption(new Option("--limit <count>", "at most so many").argParser(countIn).default(50))
    .action((url: string | undefined, options: Options, command: Command) =>
      withEngine(url, options, command, async ({ engine }) => {
        const { correlation, limit, state, disposition, operation, principal, key } = options;
        const filters = { state, disposition, operation, principal, key, correlationId: correlation };
        const given = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined));
        const { records, damaged, now } = await engine.store.list({ limit, ...given });
        const spoilt = damaged === 0 ? [] : [`${damaged} could not be read.`];
        const text =
          records.length === 0
            ? "No records."
            : table([HEADINGS, ...records.map((record) => rowOf(record, now))]);
        print(
          {
            text: [text, ...spoilt].join("\n"),
            document: { records: records.map((record) => documentOf(record, now)), damaged },
          },
          options,
        );
      }),
    );
}

interface Options extends Place, Format {
  readonly state?: RecordState;
  readonly disposition?: Disposition;
  readonly operation?: string;
  readonly principal?: string;
  readonly key?: string;
  readonly correlation?: string;
  readonly limit: number;
}

const STATES: readonly RecordState[] = [
  "in_progress",
  "released",
  "unknown",
  "completed",
  "failed_permanent",
];
const DISPOSITIONS: readonly Disposition[] = ["reconcile", "review", "hold"];

function countIn(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text))
    throw new InvalidArgumentError("It must be a whole number of at least 1.");
  return Number(text);
}
