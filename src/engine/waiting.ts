import { isRepeatable } from "../core/decide.ts";
import type { KeyRecord } from "../core/record.ts";

/** Where the next request itself calls again, nobody need wait for a worker. */
const REPEAT_MS = 1_000;

/** When asking again may bring the outcome of an unknown record; `null` where a person has to find out. */
export function retryOf(record: KeyRecord): number | null {
  if (record.state !== "unknown") return null;
  const { nextLookAt, updatedAt } = record;
  if (isRepeatable(record, updatedAt)) return REPEAT_MS;
  return nextLookAt === null ? null : Math.max(0, nextLookAt - updatedAt);
}
