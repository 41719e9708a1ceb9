import type { Command } from "commander";
import { type Stats, stats } from "../../worker/stats.ts";
import { onRecords, type Place, withEngine } from "../opening.ts";
import { type Format, print } from "../output.ts";
import { table } from "../records.ts";

/** `oncekey stats`: how many records there are, how old the oldest are, and whether workers are at work. */
export function addStats(program: Command): void {
  const description =
    "Count the records by state, tell the ages of the oldest, and whether workers are at work.";
  onRecords(program.command("stats").description(description)).action(
    (url: string | undefined, options: Place & Format, command: Command) =>
      withEngine(url, options, command, async ({ engine }) => {
        const told = await stats(engine);
        print({ text: table(rowsOf(told)), document: told }, options);
      }),
  );
}

function rowsOf({ byState, byDisposition, workers, ...told }: Stats): readonly (readonly string[])[] {
  const counts = (of: object) => Object.entries(of).map(([name, count]) => [name, String(count)]);
  return [
    ["RECORDS", "COUNT"],
    ...counts(byState),
    ...counts(byDisposition).map(([name = "", count = ""]) => [`unknown (${name})`, count]),
    ["only the tombstone left", String(told.tombstones)],
    ["expired, not purged", String(told.endedNotPurged)],
    ["OLDEST", "AGE"],
    ["in_progress", ageOf(told.oldestInProgressMs)],
    ["unknown", ageOf(told.oldestUnknownMs)],
    ["expired, not purged", ageOf(told.oldestEndedMs)],
    ["WORKER", "HEALTH"],
    ...counts(workers),
  ];
}

/** Seconds, which compare at a glance. */
function ageOf(ms: number | null): string {
  return ms === null ? "–" : `${Math.floor(ms / 1_000)} s`;
}
