import { sqlState } from "./classify.ts";
import { CLOCK, numberIn } from "./columns.ts";
import type { Ask, Statement } from "./connector.ts";
import { ENDED_STATES } from "./packed.ts";
import { parameters } from "./sql.ts";
import type { Tables } from "./tables.ts";
import { only } from "./verbs.ts";

/**
 * Removes up to `limit` records whose retention is over, the longest over first, and says how many went. A row that
 * something of the user's still refers to stays, and is not tried again for a day: it holds up nobody.
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
  try {
    return { went: await wentBy(ask, removeOverdue(tables, limit)), resisting: 0 };
  } catch (error) {
    if (!isResistance(error)) throw error;
  }
  const rows = await ask(overdue(tables, limit));
  return removeByHalves(
    ask,
    tables,
    rows.map((row) => String(row["id"])),
  );
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

const OVERDUE = "due_at <= (SELECT now FROM clock)";

/**
 * The longest overdue ones: as many of each state as might be wanted, each from its own range of the index. Locked rows are
 * somebody's just now; others look after them, or the next call.
 */
function overdueRows(records: string, limit: string, lock: "" | "FOR UPDATE SKIP LOCKED"): string {
  const states = ENDED_STATES.map((state) => `('${state}')`).join(", ");
  return `SELECT due.id FROM (VALUES ${states}) AS ended (word) CROSS JOIN LATERAL (
      SELECT id, due_at FROM ${records} WHERE state = ended.word AND ${OVERDUE}
      ORDER BY due_at LIMIT ${limit} ${lock}) AS due
    ORDER BY due.due_at LIMIT ${limit}`;
}

function removeOverdue({ records }: Tables, limit: number): Statement {
  const text = `WITH ${CLOCK},
    overdue AS (${overdueRows(records, "$1::bigint", "FOR UPDATE SKIP LOCKED")}),
    gone AS (DELETE FROM ${records} WHERE id = ANY (ARRAY(SELECT id FROM overdue)) RETURNING id)
    SELECT count(*)::text AS went FROM gone`;
  return { text, values: [limit] };
}

function overdue({ records }: Tables, limit: number): Statement {
  const text = `WITH ${CLOCK} SELECT encode(id, 'hex') AS id
    FROM (${overdueRows(records, "$1::bigint", "")}) AS overdue`;
  return { text, values: [limit] };
}

function removeThese({ records }: Tables, ids: readonly string[]): Statement {
  const { values, add } = parameters();
  const text = `WITH ${CLOCK},
    overdue AS (SELECT id FROM ${records}
      WHERE ${among(add(ids.join(","), "text"))} AND ${IS_ENDED} AND ${OVERDUE} FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM ${records} WHERE id = ANY (ARRAY(SELECT id FROM overdue)) RETURNING id)
    SELECT count(*)::text AS went FROM gone`;
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
