import type { KeyRecord, RecordState } from "../../core/record.ts";
import { RecordCorrupt } from "../../errors.ts";
import { recordId } from "../codec.ts";
import type { Counts, DueQuery, Listed, ListQuery } from "../store.ts";
import { CLOCK, NOW, nowOf, numberIn } from "./columns.ts";
import type { Ask, RawRow, Statement } from "./connector.ts";
import { hexIdIn, memberOfHead, PACKED_STATES, recordIn, toldIn } from "./packed.ts";
import { IS_ENDED, IS_POSTPONED, IS_TOMBSTONE } from "./purge.ts";
import { parameters } from "./sql.ts";
import type { Tables } from "./tables.ts";
import { only } from "./verbs.ts";

/** Records that a worker should look at, the longest overdue first: a range of the one index of states and times. */
export function due(ask: Ask, tables: Tables, query: DueQuery): Promise<Listed> {
  return readable(ask, (damaged) => dueStatement(tables, query, damaged));
}

/** Records for people. It reads the table: an index for it would slow every write, and who reads it can make one. */
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
      reconcile: numberIn(raw, "unknown_reconcile"),
      review: numberIn(raw, "unknown_review"),
      hold: numberIn(raw, "unknown_hold"),
    },
    oldestInProgressMs: orNull("oldest_in_progress"),
    oldestUnknownMs: orNull("oldest_unknown"),
    tombstones: numberIn(raw, "tombstones"),
    endedNotPurged: numberIn(raw, "ended"),
    oldestEndedMs: orNull("oldest_ended"),
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
  const { told } = raw;
  if (typeof told !== "string") return null;
  try {
    return recordIn(told);
  } catch (error) {
    if (!(error instanceof RecordCorrupt)) throw error;
    damaged.push(hexIdIn(told));
    return null;
  }
}

function dueStatement({ records }: Tables, query: DueQuery, damaged: Damaged): Statement {
  const { values, add } = parameters();
  const overdue = () => {
    switch (query.kind) {
      case "stale":
        return { state: "in_progress", until: `- ${add(Math.ceil(query.graceMs), "bigint")}` };
      case "looks":
        return { state: "unknown_reconcile", until: "" };
    }
  };
  const { state, until } = overdue();
  const { after } = query;
  const place = () =>
    after === undefined
      ? ""
      : ` AND (due_at, id) > (${add(after.dueAt, "bigint")}, ${add(recordId(after.identity), "bytea")})`;
  const text = `WITH ${CLOCK}, found AS (
      SELECT * FROM ${records} WHERE state = '${state}'
        AND due_at <= (SELECT now FROM clock) ${until}${place()}${without(damaged, add)}
      ORDER BY due_at, id LIMIT ${add(query.limit, "bigint")})
    SELECT ${NOW}, ${toldOrNull()} AS told FROM clock LEFT JOIN found ON true
    ORDER BY found.due_at, found.id`;
  return { text, values };
}

/** Where nothing was found there is a row all the same, with the clock's now. */
function toldOrNull(): string {
  return `CASE WHEN found.id IS NOT NULL THEN ${toldIn("found")} END`;
}

function listStatement({ records }: Tables, query: ListQuery, damaged: Damaged): Statement {
  const { values, add } = parameters();
  const { state, disposition, before } = query;
  const conditions = [
    ...(state === undefined ? [] : [amongStates((word) => isOfState(word, state))]),
    ...(disposition === undefined ? [] : [amongStates((word) => word === `unknown_${disposition}`)]),
    ...member("principal", query.principal, add),
    ...member("key", query.key, add),
    ...member("operation", query.operation, add),
    ...member("correlation_id", query.correlationId, add),
  ];
  if (before !== undefined) {
    const place = `${add(before.updatedAt, "bigint")}, ${add(recordId(before.identity), "bytea")}`;
    conditions.push(`(updated_at, id) < (${place})`);
  }
  const text = `WITH ${CLOCK}, found AS (
      SELECT * FROM ${records} WHERE ${["true", ...conditions].join(" AND ")}${without(damaged, add)}
      ORDER BY updated_at DESC, id DESC LIMIT ${add(query.limit, "bigint")})
    SELECT ${NOW}, ${toldOrNull()} AS told FROM clock LEFT JOIN found ON true
    ORDER BY found.updated_at DESC, found.id DESC`;
  return { text, values };
}

function isOfState(word: string, state: RecordState): boolean {
  return word === state || (state === "unknown" && word.startsWith("unknown_"));
}

function amongStates(wanted: (word: string) => boolean): string {
  return `state IN (${PACKED_STATES.filter(wanted)
    .map((word) => `'${word}'`)
    .join(", ")})`;
}

type Add = ReturnType<typeof parameters>["add"];

function without(damaged: Damaged, add: Add): string {
  if (damaged.length === 0) return "";
  const list = `unnest(string_to_array(${add(damaged.join(","), "text")}, ',')) AS hex`;
  return ` AND id <> ALL (ARRAY(SELECT decode(hex, 'hex') FROM ${list}))`;
}

function member(
  name: Parameters<typeof memberOfHead>[0],
  value: string | undefined,
  add: Add,
): readonly string[] {
  return value === undefined ? [] : [`strpos(head, ${add(memberOfHead(name, value), "text")}) > 0`];
}

/** Only the unfinished ones, which are few, are asked when they were claimed; those put off, when they were to go. */
function countText({ records }: Tables): string {
  const tally = (name: string, condition: string) => `count(*) FILTER (WHERE ${condition})::text AS ${name}`;
  const exact = PACKED_STATES.map((word) => tally(word, `state = '${word}'`));
  const isUnknown = amongStates((word) => isOfState(word, "unknown"));
  const age = (condition: string) =>
    `(max(clock.now) - min(${CLAIMED_AT}) FILTER (WHERE ${condition}))::text`;
  const isOver = `${IS_ENDED} AND (due_at <= clock.now OR ${IS_POSTPONED})`;
  const wasOver = `CASE WHEN ${IS_POSTPONED} THEN ${RETAINED_UNTIL} ELSE due_at END`;
  return `WITH ${CLOCK} SELECT ${exact.join(", ")}, ${tally("unknown", isUnknown)},
    ${age("state = 'in_progress'")} AS oldest_in_progress, ${age(isUnknown)} AS oldest_unknown,
    ${tally("tombstones", IS_TOMBSTONE)}, ${tally("ended", isOver)},
    (max(clock.now) - min(${wasOver}) FILTER (WHERE ${isOver}))::text AS oldest_ended
    FROM ${records} CROSS JOIN clock`;
}

const CLAIMED_AT = timeIn("claimed_at");
const RETAINED_UNTIL = timeIn("retain_until");

/** Read by the text of its member, since a `tail` that is no JSON must not fail the count of all others. */
function timeIn(name: "claimed_at" | "retain_until"): string {
  const by = (member: "at" | "inMs") =>
    `substring(tail from '"${name}":[{]"${member}":(-?[0-9]{1,16})[}]')::bigint`;
  return `coalesce(${by("at")}, updated_at + ${by("inMs")})`;
}
