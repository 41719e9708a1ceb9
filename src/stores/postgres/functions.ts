import { toldIn } from "./packed.ts";
import { ANOTHER_TRANSACTION, BEGUN_US } from "./same-transaction.ts";
import type { Tables } from "./tables.ts";

/**
 * The statements about one record as functions, whose plans a session keeps: what is left to plan of a call is the call.
 * Each statement in them has a snapshot of its own under READ COMMITTED. Bytes come in as base64, so that no statement
 * decodes them while it is planned; what they answer is one text (`answer.ts` reads it), the cheapest form of a result.
 */
export function functionsOf(tables: Tables): readonly string[] {
  return [look, claim, claimable, hold, replace, conclude].map((made) => made(tables));
}

/** What a unit's last write says where it met another version; a number follows. */
export const GROUND_LOST = "oncekey: another version stands";

/** As `writtenArguments` of `sql.ts` gives them. */
const WRITTEN = `p_owner text, p_attempt bigint, p_state text, p_due_at bigint, p_due_in bigint,
  p_head text, p_tail text, p_body text`;

const SEEN = "p_seen_owner text, p_seen_revision bigint";

/** The record as last committed. */
function look({ look, records }: Tables): string {
  return made(
    look,
    "p_id text",
    `DECLARE
  told text;
BEGIN
  ${tellStanding(records)}
  RETURN ${answer({ now: nowMs("clock_timestamp()"), record: "told" })};
END`,
  );
}

/**
 * Creates the record, or finds the one that stands. What decides is the primary key; that a standing row is looked for
 * first only spares the insert and a number. Neither number nor record: it was gone again when it was looked for.
 */
function claim({ claim, records, attempts }: Tables): string {
  return made(
    claim,
    `p_id text, ${WRITTEN}`,
    `DECLARE
  moment bigint := ${nowMs("clock_timestamp()")};
  told text;
  number bigint;
BEGIN
  ${tellStanding(records)}
  IF NOT FOUND THEN
    ${insertion(records, attempts)} ON CONFLICT (id) DO NOTHING RETURNING attempt INTO number;
    IF NOT FOUND THEN
      moment := ${nowMs("clock_timestamp()")};
      ${tellStanding(records)}
    END IF;
  END IF;
  RETURN ${answer({ now: "moment", number: "number", record: "told" })};
END`,
  );
}

/**
 * What stands under an identity that is being claimed in the effect's own transaction, with a number where it is free. The
 * lock says "this identity is being claimed"; it is freed by the end of the transaction and never waited for. The look comes
 * after it, in a statement of its own, so that it sees whatever an earlier holder committed. A row that was seen is held
 * besides, and skipped where somebody else holds it.
 */
function claimable({ claimable, records, attempts }: Tables): string {
  return made(
    claimable,
    `p_id text, ${SEEN}, p_lock bigint, p_idle_ms text`,
    `DECLARE
  claimed boolean := pg_try_advisory_xact_lock(p_lock);
  idle text := ${IDLE_BOUND};
  told text;
BEGIN
  ${tellStanding(records)}
  IF FOUND AND claimed AND p_seen_owner IS NOT NULL THEN
    PERFORM FROM ${records} AS record WHERE ${SEEN_STANDS} FOR NO KEY UPDATE SKIP LOCKED;
    claimed := FOUND;
  ELSE
    claimed := claimed AND NOT FOUND AND p_seen_owner IS NULL;
  END IF;
  RETURN ${answer({
    now: nowMs("statement_timestamp()"),
    number: `CASE WHEN claimed THEN ${numberFrom(attempts)} END`,
    begun: BEGUN_US,
    record: "told",
  })};
END`,
  );
}

/**
 * Holds the row of the version that was seen until the transaction ends, and waits for whoever holds it; answers nothing
 * where another version stands. In the same trip it bounds how long the transaction may sit idle.
 */
function hold({ hold, records }: Tables): string {
  return made(
    hold,
    `p_id text, ${SEEN}, p_idle_ms text`,
    `DECLARE
  idle text := ${IDLE_BOUND};
BEGIN
  PERFORM FROM ${records} AS record WHERE ${SEEN_STANDS} FOR NO KEY UPDATE;
  IF FOUND THEN RETURN ${answer({ now: nowMs("clock_timestamp()"), begun: BEGUN_US })}; END IF;
  RETURN NULL;
END`,
  );
}

/**
 * Puts the new version in the place of the one that was seen and gives its number, or tells what stands. No column of a
 * unique index is written, so that foreign keys to the record never make this wait.
 */
function replace({ replace, records, attempts }: Tables): string {
  return made(
    replace,
    `p_id text, ${SEEN}, p_waits boolean, ${WRITTEN}`,
    `DECLARE
  moment bigint := ${nowMs("clock_timestamp()")};
  told text;
  number bigint;
BEGIN
  IF NOT p_waits THEN
    PERFORM FROM ${records} AS record WHERE ${SEEN_STANDS} FOR NO KEY UPDATE SKIP LOCKED;
  END IF;
  IF p_waits OR FOUND THEN
    ${replacement(records, attempts)} RETURNING record.attempt INTO number;
  END IF;
  IF number IS NULL THEN
    moment := ${nowMs("clock_timestamp()")};
    ${tellStanding(records)}
  END IF;
  RETURN ${answer({ now: "moment", number: "number", record: "told" })};
END`,
  );
}

/**
 * Writes the last version of a unit, or fails, so that a COMMIT behind it in the same message is skipped: where another
 * version stands, where a trigger keeps the row from being written, and where the transaction is not the one in which
 * the unit began.
 */
function conclude({ conclude, records, attempts }: Tables): string {
  return made(
    conclude,
    `p_begun bigint, p_id text, ${SEEN}, ${WRITTEN}`,
    `DECLARE
  moment bigint := ${nowMs("statement_timestamp()")};
  number bigint;
BEGIN
  IF ${BEGUN_US} <> p_begun THEN
    RAISE EXCEPTION '${ANOTHER_TRANSACTION} %', ${BEGUN_US} USING ERRCODE = 'invalid_text_representation';
  END IF;
  IF p_seen_owner IS NULL THEN
    ${insertion(records, attempts)} RETURNING attempt INTO number;
  ELSE
    ${replacement(records, attempts)} RETURNING record.attempt INTO number;
  END IF;
  IF number IS NULL THEN
    RAISE EXCEPTION '${GROUND_LOST} 0' USING ERRCODE = 'invalid_text_representation';
  END IF;
  RETURN ${answer({ now: "moment", number: "number" })};
END`,
  );
}

/** A plan that was made while the table was tiny is kept while it grows: it must not be one that reads the whole table. */
function made(name: string, parameters: string, body: string): string {
  return `CREATE FUNCTION ${name}(${parameters})
RETURNS text LANGUAGE plpgsql VOLATILE SET enable_seqscan TO off AS $claim$
#variable_conflict use_column
${body} $claim$`;
}

/** Whole milliseconds, which a record shows; cut and not rounded, so that nothing lies in the future. */
export function nowMs(clock: string): string {
  return `floor(date_part('epoch', ${clock}) * 1000)::bigint`;
}

const ROW_ID = "decode(p_id, 'base64')";

const SEEN_STANDS = `record.id = ${ROW_ID} AND record.owner = p_seen_owner AND record.revision = p_seen_revision`;

/** For this transaction only, since behind a pooler a session is not ours. */
const IDLE_BOUND = "set_config('idle_in_transaction_session_timeout', p_idle_ms, true)";

function tellStanding(records: string): string {
  return `SELECT ${toldIn("record")} INTO told FROM ${records} AS record WHERE record.id = ${ROW_ID};`;
}

function numberFrom(attempts: string): string {
  return `nextval('${attempts.replaceAll("'", "''")}')`;
}

function insertion(records: string, attempts: string): string {
  return `INSERT INTO ${records}
      (id, owner, attempt, revision, state, due_at, updated_at, head, tail, body)
    VALUES (${ROW_ID}, p_owner, coalesce(p_attempt, ${numberFrom(attempts)}), 1, p_state,
      coalesce(p_due_at, moment + p_due_in), moment, p_head, p_tail, decode(p_body, 'base64'))`;
}

/** A `head` that is not given stays. */
function replacement(records: string, attempts: string): string {
  return `UPDATE ${records} AS record SET owner = p_owner,
      attempt = coalesce(p_attempt, ${numberFrom(attempts)}), revision = record.revision + 1, state = p_state,
      due_at = coalesce(p_due_at, moment + p_due_in), updated_at = moment, head = coalesce(p_head, record.head),
      tail = p_tail, body = decode(p_body, 'base64')
    WHERE ${SEEN_STANDS}`;
}

/** Lines: now, number, when the transaction began, and the record's own, which are left out where there is none. */
function answer(
  said: Readonly<Record<"now", string> & Partial<Record<"number" | "begun" | "record", string>>>,
): string {
  const orEmpty = (value: string | undefined) =>
    value === undefined ? "''" : `coalesce((${value})::text, '')`;
  return `concat_ws(E'\\n', ${said.now}, ${orEmpty(said.number)}, ${orEmpty(said.begun)}, ${said.record ?? "NULL"})`;
}
