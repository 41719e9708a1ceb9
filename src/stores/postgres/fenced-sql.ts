import type { Identity, Seen } from "../../core/record.ts";
import { recordId } from "../codec.ts";
import { isSaid } from "./classify.ts";
import { GROUND_LOST } from "./functions.ts";
import { literals } from "./literal.ts";
import { INVALID_TEXT } from "./same-transaction.ts";
import { advisoryKey, idOf, seenArguments, type Written, writtenArguments } from "./sql.ts";
import type { Tables } from "./tables.ts";

/** Holds the row of the version that was seen, or answers nothing; bounds how long the transaction may sit idle. */
export function holdStatement({ hold }: Tables, seen: Seen, idleMs: number): string {
  const { add } = literals();
  return `SELECT ${hold}(${[...seenArguments(seen, add), add(String(idleMs), "text")].join(", ")}) AS told`;
}

/** What a claim in the effect's own transaction asks for. */
export interface Claimable {
  readonly identity: Identity;
  readonly seen: Seen | null;
  readonly schema: string | null;
  readonly idleMs: number;
}

/** What stands under an identity that is being claimed, with a fencing token where it is free and nobody else claims it. */
export function claimableStatement(
  { claimable }: Tables,
  { identity, seen, schema, idleMs }: Claimable,
): string {
  const { add } = literals();
  const id = recordId(identity);
  const version = seen === null ? nothingSeen(id) : seenArguments(seen, add);
  const lock = add(advisoryKey("claim", schema, id), "bigint");
  return `SELECT ${claimable}(${[...version, lock, add(String(idleMs), "text")].join(", ")}) AS told`;
}

/**
 * True for the error of a `concludeStatement` that met another version than its unit stood on, however a layer wrapped it
 * and in whatever language the server words it. Those of layers quote the statement too, whose values may be any words;
 * so the SQLSTATE has a say.
 */
export function isGroundLost(error: unknown): boolean {
  return isSaid(error, UNIQUE_VIOLATION, PRIMARY_KEY) || isSaid(error, INVALID_TEXT, LOST);
}

const LOST = new RegExp(`${GROUND_LOST} \\d`);
const PRIMARY_KEY = /\boncekey_records_pkey\b/;
const UNIQUE_VIOLATION = "23505";

/** A unit's last write. */
export interface Concluding extends Written {
  /** The version that it replaces; `null` where there was none. */
  readonly seen: Seen | null;
  /** As the statement of the ground told it. */
  readonly begun: string;
  /** A column of its answer besides. */
  readonly besides?: string;
}

/** Writes the last version of a unit, or fails, so that a COMMIT behind it in the same message is skipped. */
export function concludeStatement(
  { conclude }: Tables,
  { seen, begun, besides, ...written }: Concluding,
): string {
  const { add } = literals();
  const version = seen === null ? nothingSeen(written.row.id) : seenArguments(seen, add);
  const given = [add(begun, "bigint"), ...version, ...writtenArguments(written, add)];
  const more = besides === undefined ? "" : `, ${besides}`;
  return `SELECT ${conclude}(${given.join(", ")}) AS told${more}`;
}

function nothingSeen(id: Uint8Array): readonly string[] {
  return [idOf(id, literals().add), "NULL", "NULL"];
}
