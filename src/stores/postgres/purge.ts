import { sqlState } from "./classify.ts";
import { CLOCK, numberIn } from "./columns.ts";
import type { Ask, Statement } from "./connector.ts";
import { parameters, type Tables } from "./sql.ts";
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

/** By its own word too, not only by its index: a hand may have set `purge_at` on one that still runs. */
const OVERDUE = `purge_at <= (SELECT now FROM clock) AND state <> 'in_progress'
      AND (state <> 'unknown' OR disposition = 'hold')`;

/** Locked rows are somebody's just now; others look after them, or the next call. */
function removeOverdue({ records }: Tables, limit: number): Statement {
  const text = `WITH ${CLOCK},
    overdue AS (
      SELECT id FROM ${records} WHERE ${OVERDUE} ORDER BY purge_at LIMIT $1::bigint FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM ${records} WHERE id = ANY (ARRAY(SELECT id FROM overdue)) RETURNING id)
    SELECT count(*)::text AS went FROM gone`;
  return { text, values: [limit] };
}

function overdue({ records }: Tables, limit: number): Statement {
  const text = `WITH ${CLOCK} SELECT encode(id, 'hex') AS id FROM ${records} WHERE ${OVERDUE}
    ORDER BY purge_at LIMIT $1::bigint`;
  return { text, values: [limit] };
}

function removeThese({ records }: Tables, ids: readonly string[]): Statement {
  const { values, add } = parameters();
  const text = `WITH ${CLOCK},
    overdue AS (SELECT id FROM ${records} WHERE ${among(add(ids.join(","), "text"))} AND ${OVERDUE} FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM ${records} WHERE id = ANY (ARRAY(SELECT id FROM overdue)) RETURNING id)
    SELECT count(*)::text AS went FROM gone`;
  return { text, values };
}

function postpone({ records }: Tables, ids: readonly string[]): Statement {
  const { values, add } = parameters();
  const text = `WITH ${CLOCK} UPDATE ${records} SET purge_at = clock.now + interval '24 hours' FROM clock
    WHERE ${among(add(ids.join(","), "text"))} AND purge_at <= clock.now`;
  return { text, values };
}

function among(hexList: string): string {
  return `id = ANY (ARRAY(SELECT decode(hex, 'hex') FROM unnest(string_to_array(${hexList}, ',')) AS hex))`;
}
