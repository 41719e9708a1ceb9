import type { KeyRecord } from "../../core/record.ts";
import { RecordCorrupt } from "../../errors.ts";
import { recordId } from "../codec.ts";
import type { Counts, DueQuery, Listed, ListQuery } from "../store.ts";
import { CLOCK, hexIdOf, inJson, NOW, nowOf, numberIn, recordOf } from "./columns.ts";
import type { Ask, RawRow, Statement } from "./connector.ts";
import { milliseconds, parameters, type Tables } from "./sql.ts";
import { only } from "./verbs.ts";

/** Records that a worker should look at, the longest overdue first; each kind of them has its own partial index. */
export function due(ask: Ask, tables: Tables, query: DueQuery): Promise<Listed> {
  return readable(ask, (damaged) => dueStatement(tables, query, damaged));
}

/** Records for people. Newest change first is a sort of what the filters leave: an index on it would slow every write. */
export function list(ask: Ask, tables: Tables, query: ListQuery): Promise<Listed> {
  return readable(ask, (damaged) => listStatement(tables, query, damaged));
}

/** Reads the whole table once. */
export async function count(ask: Ask, tables: Tables): Promise<Counts> {
  const raw = only(await ask({ text: countText(tables), values: [] }));
  const orNull = (column: string) => (raw[column] === null ? null : numberIn(raw, column));
  return {
    byState: {
      in_progress: numberIn(raw, "in_progress"),
      released: numberIn(raw, "released"),
      unknown: numberIn(raw, "unknown"),
      completed: numberIn(raw, "completed"),
      failed_permanent: numberIn(raw, "failed_permanent"),
    },
    byDisposition: {
      reconcile: numberIn(raw, "reconcile"),
      review: numberIn(raw, "review"),
      hold: numberIn(raw, "hold"),
    },
    oldestInProgressMs: orNull("oldest_in_progress"),
    oldestUnknownMs: orNull("oldest_unknown"),
    endedNotPurged: numberIn(raw, "ended"),
  };
}

/** Ids of rows in hex, that a query leaves out. */
type Damaged = readonly string[];

/**
 * The records of a page. Rows that cannot be read are left out and the page is asked for again, until readable ones
 * fill it: however many damaged rows stand in front, they hide nothing.
 */
async function readable(ask: Ask, statement: (damaged: Damaged) => Statement): Promise<Listed> {
  const damaged: string[] = [];
  while (true) {
    const rows = await ask(statement(damaged));
    const known = damaged.length;
    const records: KeyRecord[] = [];
    for (const raw of rows) {
      const record = recordOrDamaged(raw, damaged);
      if (record !== null) records.push(record);
    }
    if (damaged.length === known) return { records, damaged: known, now: nowOf(only(rows)) };
  }
}

function recordOrDamaged(raw: RawRow, damaged: string[]): KeyRecord | null {
  try {
    return recordOf(raw);
  } catch (error) {
    if (!(error instanceof RecordCorrupt)) throw error;
    damaged.push(hexIdOf(raw));
    return null;
  }
}

function dueStatement({ records }: Tables, query: DueQuery, damaged: Damaged): Statement {
  const { values, add } = parameters();
  const overdue = () => {
    switch (query.kind) {
      case "stale": {
        const grace = milliseconds(add(query.graceMs, "float8"));
        const lapsed = `lease_until <= (SELECT now FROM clock) - ${grace}`;
        return { since: "lease_until", condition: `state = 'in_progress' AND ${lapsed}` };
      }
      case "looks": {
        const come = "next_look_at <= (SELECT now FROM clock)";
        return {
          since: "next_look_at",
          condition: `state = 'unknown' AND disposition = 'reconcile' AND ${come}`,
        };
      }
    }
  };
  const { since, condition } = overdue();
  const text = `WITH ${CLOCK}, found AS (
      SELECT * FROM ${records} WHERE ${condition}${without(damaged, add)}
      ORDER BY ${since} LIMIT ${add(query.limit, "bigint")})
    SELECT ${NOW}, ${inJson("found")} AS record FROM clock LEFT JOIN found ON true ORDER BY found.${since}`;
  return { text, values };
}

function listStatement({ records }: Tables, query: ListQuery, damaged: Damaged): Statement {
  const { values, add } = parameters();
  const conditions = [
    ...equal("state", query.state, add),
    ...equal("disposition", query.disposition, add),
    ...equal("operation", query.operation, add),
    ...hashed("principal", query.principal, add),
    ...hashed("key", query.key, add),
    ...hashed("correlation_id", query.correlationId, add),
  ];
  if (query.before !== undefined) {
    const at = `timestamptz 'epoch' + ${milliseconds(add(query.before.updatedAt, "float8"))}`;
    conditions.push(`(${SHOWN_AT}, id) < (${at}, ${add(recordId(query.before.identity), "bytea")})`);
  }
  const text = `WITH ${CLOCK}, found AS (
      SELECT * FROM ${records} WHERE ${["true", ...conditions].join(" AND ")}${without(damaged, add)}
      ORDER BY ${SHOWN_AT} DESC, id DESC LIMIT ${add(query.limit, "bigint")})
    SELECT ${NOW}, ${inJson("found")} AS record FROM clock LEFT JOIN found ON true
    ORDER BY date_trunc('milliseconds', found.updated_at) DESC, found.id DESC`;
  return { text, values };
}

/** As the record shows it: a page continues after a value that the caller has seen. */
const SHOWN_AT = "date_trunc('milliseconds', updated_at)";

type Add = ReturnType<typeof parameters>["add"];

function without(damaged: Damaged, add: Add): string {
  if (damaged.length === 0) return "";
  const list = `unnest(string_to_array(${add(damaged.join(","), "text")}, ',')) AS hex`;
  return ` AND id <> ALL (ARRAY(SELECT decode(hex, 'hex') FROM ${list}))`;
}

function equal(column: string, value: string | undefined, add: Add): readonly string[] {
  return value === undefined ? [] : [`${column} = ${add(value, "text")}`];
}

/** Their index holds hashes: small, and no text is too long for it. */
function hashed(column: string, value: string | undefined, add: Add): readonly string[] {
  if (value === undefined) return [];
  const text = add(value, "text");
  return [`hashtextextended(${column}, 0) = hashtextextended(${text} COLLATE "C", 0)`, `${column} = ${text}`];
}

function countText({ records }: Tables): string {
  const states = ["in_progress", "released", "unknown", "completed", "failed_permanent"];
  const dispositions = ["reconcile", "review", "hold"];
  const age = (state: string) => {
    const oldest = `min(claimed_at) FILTER (WHERE state = '${state}')`;
    return `round(extract(epoch FROM max(clock.now) - ${oldest}) * 1000)::bigint::text`;
  };
  return `WITH ${CLOCK} SELECT ${states.map((state) => `count(*) FILTER (WHERE state = '${state}')::text AS ${state}`).join(", ")},
    ${dispositions.map((kind) => `count(*) FILTER (WHERE disposition = '${kind}')::text AS ${kind}`).join(", ")},
    ${age("in_progress")} AS oldest_in_progress, ${age("unknown")} AS oldest_unknown,
    count(*) FILTER (WHERE retain_until <= clock.now AND state <> 'in_progress'
      AND (state <> 'unknown' OR disposition = 'hold'))::text AS ended
    FROM ${records} CROSS JOIN clock`;
}
