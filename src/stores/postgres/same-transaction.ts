import { isSaid } from "./classify.ts";
import { literals } from "./literal.ts";

/** Tells transactions apart and assigns no id, which would cost a write: a later one began in a later message. */
const WHEN_BEGUN = "(extract(epoch FROM transaction_timestamp()) * 1000000)::bigint::text";

/** The column by which a statement says which transaction it is in. */
export const BEGUN: string = `${WHEN_BEGUN} AS begun`;

/** Bounds how long this transaction may sit idle; a setting of its own, which ends with it. */
export function idleBound(idleMs: number): string {
  return `set_config('idle_in_transaction_session_timeout', '${idleMs}', true) AS idle`;
}

/** A condition that holds in the transaction that told this, and fails the statement in any other one. */
export function stillIn(begun: string): string {
  const { add } = literals();
  const fails = `('${ENDED_INSIDE} ' || ${WHEN_BEGUN})::boolean`;
  return `CASE ${WHEN_BEGUN} WHEN ${add(begun, "text")} THEN true ELSE ${fails} END`;
}

/** True for the error of a statement that `stillIn` failed; where a layer quotes the text, no number is behind the words. */
export function isEndedInside(error: unknown): boolean {
  return isSaid(error, INVALID_TEXT, ENDED);
}

const ENDED_INSIDE = "oncekey: another transaction";
const ENDED = new RegExp(`${ENDED_INSIDE} \\d`);

/** What a cast fails with. */
export const INVALID_TEXT = "22P02";
