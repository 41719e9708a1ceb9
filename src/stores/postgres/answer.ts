import type { Identity, Instant, KeyRecord } from "../../core/record.ts";
import { integer, orNull } from "../codec.ts";
import type { RawRow } from "./connector.ts";
import { cut, recordIn } from "./packed.ts";

/** What a function about one record answered, in the column `told`. */
export interface Answer {
  readonly now: Instant;
  /** The attempt's number, where one was given. */
  readonly number: number | null;
  /** When the transaction began, as `conclude` asks for it. */
  readonly begun: string;
  /** The row that stands, in lines; `null` where none does. */
  readonly row: string | null;
}

export function answerOf(raw: RawRow): Answer {
  const { lines, rest } = cut(String(raw["told"]), LINES);
  const [now, number, begun = ""] = lines;
  return { now: integer(now, "now"), number: orNull(number || null, "number", integer), begun, row: rest };
}

/** The record that stands; `RecordCorrupt` when its row cannot be one of ours. */
export function recordOf({ row }: Answer, asked?: Identity): KeyRecord | null {
  return row === null ? null : recordIn(row, asked);
}

const LINES = 3;
