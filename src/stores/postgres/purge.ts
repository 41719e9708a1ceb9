import { sqlState } from "./classify.ts";
import { CLOCK, numberIn } from "./columns.ts";
import type { Ask, Statement } from "./connector.ts";
import { ENDED_STATES } from "./packed.ts";
import { parameters } from "./sql.ts";
import type { Tables } from "./tables.ts";
import { only } from "./verbs.ts";

/**
 * Removes up to `limit` records whose retention is over, or leaves their tombstones, the longest over first, and says how
 * many went. A row that something of the user's still refers to stays, and is not tried again for a day: it holds up nobody.
 */
export async function purge(ask: Ask, tables: Tables, limit: number): Promise<number> {
  let went = 0;
  let resisting = 0;
  while (went < limit && resisting < MOST_RESISTING) {
    const batch = await purgeBatch(ask, tables, limit - went);
    went += batch.went;
    resisting += batch.resisting;
    if (batch.resisting === 0) break;
  }
  return went;
}

/** One call ends after so many rows that resist, so that it takes no longer than a large batch. */
const MOST_RESISTING = 100;

interface Batch {
  readonly went: number;
  readonly resisting: number;
}

async function purgeBatch(ask: Ask, tables: Tables, limit: number): Promise<Batch> {
  let went = 0;
  try {
    const raw = only(await ask(removeOverdue(tables, limit)));
    went = numberIn(raw, "went");
    if (numberIn(raw, "met") > went) went += await wentBy(ask, endOverdue(tables, limit - went));
    return { went, resisting: 0 };
  } catch (error) {
    if (!isResistance(error)) throw error;
  }
  const rows = await ask(overdue(tables, limit - went));
  const ids = rows.map((row) => String(row["id"]));
  const halves = await removeByHalves(ask, tables, ids);
  return { went: went + halves.went, resisting: halves.resisting };
}

/** Looks for the rows that resist by halving: a few of them cost a few statements, however large the batch. */
async function removeByHalves(ask: Ask, tables: Tables, ids: readonly string[]): Promise<Batch> {
  if (ids.length === 0) return { went: 0, resisting: 0 };
  try {
    return { went: await wentBy(ask, removeThese(tables, ids)), resisting: 0 };
  } catch (error) {
    if (!isResistance(error)) throw error;
  }
  if (ids.length === 1) {
    await ask(postpone(tables, ids));
    return { went: 0, resisting: 1 };
  }
  const half = Math.ceil(ids.length / 2);
  const first = await removeByHalves(ask, tables, ids.slice(0, half));
  const second = await removeByHalves(ask, tables, ids.slice(half));
  return { went: first.went + second.went, resisting: first.resisting + second.resisting };
}

/** A constraint of the user's (a foreign key, in 18 its RESTRICT has a code of its own), or a trigger's RAISE. */
function isResistance(error: unknown): boolean {
  const state = sqlState(error);
  return state !== null && (state.startsWith("23") || state === "P0001");
}

async function wentBy(ask: Ask, statement: Statement): Promise<number> {
  return numberIn(only(await ask(statement)), "went");
}

/** Before all other members of a `tail`, so that it is found without reading on. */
const POSTPONED = '{"postponed":true,';

/** Neither what runs nor an unknown that somebody is to end is removed by time. */
export const IS_ENDED: string = `state IN (${ENDED_STATES.map((state) => `'${state}'`).join(", ")})`;

/** A row that something refers to; its retention is over although it is not due before tomorrow. */
export const IS_POSTPONED: string = `starts_with(tail, '${POSTPONED}')`;

/** Of a row that is to leave a tombstone its first member, which in a tombstone is the last but one. */
const TOMBSTONE_MS = `substring(tail from '^[{]"tombstone_ms":([0-9]{1,16}),')::bigint`;

/** Read and written by the text of its members, so that no damaged row stops those beside it; NULL for such a one. */
const TAIL_OF_TOMBSTONE = `'{' || substring(tail from '^[{]"tombstone_ms":[0-9]{1,16},(.*"retain_until":[{]"(?:at|inMs)":)-?[0-9]')
      || (substring(tail from '"retain_until":[{]"(?:at|inMs)":(-?[0-9]{1,16})[}]')::bigint + ${TOMBSTONE_MS})
      || '},"tombstone_ms":' || ${TOMBSTONE_MS} || ',"steps":[]}'`;

/** Without the hashes of the request. */
const HEAD_OF_TOMBSTONE = String.raw`regexp_replace(head, '("fingerprint_(?:salt|raw|canonical)":)"[^"]*"', E'\\1""', 'g')`;

const LEAVES_TOMBSTONE = `starts_with(tail, '{"tombstone_ms":')`;

/** Whether something is left of an overdue row: one whose tombstone would be over, or cannot be made, goes as others do. */
const IS_BURIED = `CASE WHEN ${LEAVES_TOMBSTONE}
        THEN due_at + ${TOMBSTONE_MS} > (SELECT now FROM clock) AND (${TAIL_OF_TOMBSTONE}) IS NOT NULL
        END IS TRUE AS buried`;

/** Cheap for those that are none: their bodies are there. */
export const IS_TOMBSTONE: string = `state IN ('completed', 'failed_permanent') AND body IS NULL
      AND strpos(tail, ',"tombstone_ms":') > 0`;

const OVERDUE = "due_at <= (SELECT now FROM clock)";

/**
 * The longest overdue ones: as many of each state as might be wanted, each from its own range of the index. Locked rows are
 * somebody's just now; others look after them, or the next call.
 */
function overdueRows(records: string, told: string, lock: "" | "FOR UPDATE SKIP LOCKED"): string {
  const states = ENDED_STATES.map((state) => `('${state}')`).join(", ");
  return `SELECT due.* FROM (VALUES ${states}) AS ended (word) CROSS JOIN LATERAL (
      SELECT ${told}, due_at FROM ${records} WHERE state = ended.word AND ${OVERDUE}
      ORDER BY due_at LIMIT $1::bigint ${lock}) AS due
    ORDER BY due.due_at LIMIT $1::bigint`;
}

/** Passes those that are to leave a tombstone, and says how many it met: where there are none, they cost next to nothing. */
function removeOverdue({ records }: Tables, limit: number): Statement {
  const text = `WITH ${CLOCK},
    overdue AS (${overdueRows(records, "id", "FOR UPDATE SKIP LOCKED")}),
    gone AS (DELETE FROM ${records} WHERE id = ANY (ARRAY(SELECT id FROM overdue)) AND NOT ${LEAVES_TOMBSTONE}
      RETURNING id)
    SELECT count(*)::text AS went, (SELECT count(*) FROM overdue)::text AS met FROM gone`;
  return { text, values: [limit] };
}

function endOverdue({ records }: Tables, limit: number): Statement {
  const text = `WITH ${CLOCK},
    overdue AS (${overdueRows(records, `id, ${IS_BURIED}`, "FOR UPDATE SKIP LOCKED")}),
    ${buriedOrGone(records)}`;
  return { text, values: [limit] };
}

/** Ends the rows of `overdue`, the one way or the other. */
function buriedOrGone(records: string): string {
  return `tombstones AS (UPDATE ${records} SET revision = revision + 1, due_at = due_at + ${TOMBSTONE_MS},
        head = ${HEAD_OF_TOMBSTONE}, tail = ${TAIL_OF_TOMBSTONE}, body = NULL
      WHERE id = ANY (ARRAY(SELECT id FROM overdue WHERE buried)) RETURNING id),
    gone AS (DELETE FROM ${records} WHERE id = ANY (ARRAY(SELECT id FROM overdue WHERE NOT buried)) RETURNING id)
    SELECT ((SELECT count(*) FROM tombstones) + (SELECT count(*) FROM gone))::text AS went`;
}

function overdue({ records }: Tables, limit: number): Statement {
  const text = `WITH ${CLOCK} SELECT encode(id, 'hex') AS id
    FROM (${overdueRows(records, "id", "")}) AS overdue`;
  return { text, values: [limit] };
}

function removeThese({ records }: Tables, ids: readonly string[]): Statement {
  const { values, add } = parameters();
  const text = `WITH ${CLOCK},
    overdue AS (SELECT id, ${IS_BURIED} FROM ${records}
      WHERE ${among(add(ids.join(","), "text"))} AND ${IS_ENDED} AND ${OVERDUE} FOR UPDATE SKIP LOCKED),
    ${buriedOrGone(records)}`;
  return { text, values };
}

function postpone({ records }: Tables, ids: readonly string[]): Statement {
  const { values, add } = parameters();
  const marked = `CASE WHEN ${IS_POSTPONED} THEN tail ELSE '${POSTPONED}' || substr(tail, 2) END`;
  const text = `WITH ${CLOCK} UPDATE ${records} SET due_at = clock.now + ${DAY_MS}, tail = ${marked} FROM clock
    WHERE ${among(add(ids.join(","), "text"))} AND ${IS_ENDED} AND due_at <= clock.now`;
  return { text, values };
}

const DAY_MS = 86_400_000;

function among(hexList: string): string {
  return `id = ANY (ARRAY(SELECT decode(hex, 'hex') FROM unnest(string_to_array(${hexList}, ',')) AS hex))`;
}
