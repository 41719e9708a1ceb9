import { isSaid } from "./classify.ts";
import { literals } from "./literal.ts";

/** Tells transactions apart and assigns no id, which would cost a write: a later one began in a later message. */
export const BEGUN_US = "(date_part('epoch', transaction_timestamp()) * 1000000)::bigint";

/** The column by which a statement says which transaction it is in. */
export const BEGUN: string = `${BEGUN_US}::text AS begun`;

/** Bounds how long this transaction may sit idle; a setting of its own, which ends with it. */
export function idleBound(idleMs: number): string {
  return `set_config('idle_in_transaction_session_timeout', '${idleMs}', true) AS idle`;
}

/** A condition that holds in the transaction that told this, and fails the statement in any other one. */
export function stillIn(begun: string): string {
  const { add } = literals();
  const fails = `('${ANOTHER_TRANSACTION} ' || ${BEGUN_US})::boolean`;
  return `CASE ${BEGUN_US} WHEN ${add(begun, "bigint")} THEN true ELSE ${fails} END`;
}

/** True for the error of a statement that found itself in another transaction; a layer may quote the words, but no number behind them. */
export function isEndedInside(error: unknown): boolean {
  return isSaid(error, INVALID_TEXT, ENDED);
}

/** What such a statement says; a number follows. */
export const ANOTHER_TRANSACTION = "oncekey: another transaction";
const ENDED = new RegExp(`${ANOTHER_TRANSACTION} \\d`);

/** What a cast fails with. */
export const INVALID_TEXT = "22P02";
