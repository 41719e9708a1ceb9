import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Cluster } from "./cluster.ts";
import type { Tally } from "./tally.ts";

/** The clock of one process goes ahead by an hour, that of another one behind; of what the processes of a run are. */
export const CLOCKS = ["+3600s", "-3600s"] as const;

/** The library that, loaded into a process, gives it another time of day; `null` where it is not installed. */
export function findFaketime(root = "/usr/lib"): string | null {
  const folders = existsSync(root) ? readdirSync(root) : [];
  const paths = folders.map((folder) => join(root, folder, "faketime", "libfaketime.so.1"));
  return paths.find((path) => existsSync(path)) ?? null;
}

/** Asks the processes for the time, and counts those that believe another one by an hour. */
export function tallyClocks({ workers }: Cluster, tally: Tally): void {
  for (const line of workers.flatMap((slot) => slot.lines())) {
    const [, told] = /by whose clock it is (\d+)/.exec(line) ?? [];
    if (told === undefined) continue;
    const hours = Math.round((Number(told) - Date.now()) / 3_600_000);
    if (hours !== 0) tally.add(`clock: ${hours > 0 ? CLOCKS[0] : CLOCKS[1]}`);
  }
}
