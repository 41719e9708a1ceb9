import type { Instant } from "../../core/record.ts";
import { RecordCorrupt } from "../../errors.ts";
import type { RawRow } from "./connector.ts";
import { nowMs } from "./functions.ts";

/** The database's now in whole milliseconds, once for the whole statement. */
export const CLOCK: string = `clock AS MATERIALIZED (SELECT ${nowMs("clock_timestamp()")} AS now)`;

/** The clock's now as a column of the answer. */
export const NOW: string = "clock.now::text AS now";

/** The store's now that came with an answer. */
export function nowOf(raw: RawRow): Instant {
  return numberIn(raw, "now");
}

/** A number that our own SQL computed. */
export function numberIn(raw: RawRow, column: string): number {
  const value = Number(raw[column]);
  if (raw[column] === null || !Number.isSafeInteger(value))
    throw new RecordCorrupt(`${column} is no integer`);
  return value;
}
