import type { RecordWrite } from "../../core/record.ts";
import { recordId } from "../codec.ts";
import { stampWrite } from "../row.ts";
import type { Awaitable, Fenced, FencedEnd, FencedWork, Ground, UnitBounds, UnitEnd } from "../store.ts";
import { sqlState } from "./classify.ts";
import { nowOf, numberIn } from "./columns.ts";
import { type Standing, standingOf } from "./fenced.ts";
import {
  claimableStatement,
  concludeStatement,
  holdStatement,
  isGroundLost,
  lockStatement,
} from "./fenced-sql.ts";
import { FAILED_TRANSACTION, idleSetting, notCommitted } from "./session.ts";
import { type Body, type Closing, type Say, type Through, unitThrough, XACT } from "./through-unit.ts";
import { only, sizedRow, verbs } from "./verbs.ts";

/** A unit in a transaction that a layer of the user's own opens and commits. */
export function transactThrough<Tx, T>(
  on: Through<Tx>,
  bounds: UnitBounds,
  work: (tx: Tx) => Awaitable<UnitEnd<T>>,
): Promise<T> {
  return unitThrough(on, bounds, async (tx, say) => {
    await say(
      `SELECT set_config('idle_in_transaction_session_timeout', '${idleSetting(bounds)}', true) AS idle`,
    );
    const end = await work(tx);
    if (end.kind === "rollback") return { kind: "left", after: async () => end.value };
    const raw = only(await last(say, `SELECT ${XACT}`));
    return { kind: "kept", value: end.value, proof: { xact: String(raw["xact"]), written: null } };
  });
}

/** A unit on its ground in such a transaction: its first statement holds the ground, its last writes in its place. */
export function fencedThrough<Tx, T>(
  on: Through<Tx>,
  { ground, work, bounds }: { ground: Ground; work: FencedWork<Tx, T>; bounds: UnitBounds },
): Promise<Fenced<T>> {
  const body: Body<Tx, Fenced<T>> = async (tx, say) => {
    const standing = await begin(on, say, ground, bounds);
    if (standing.kind !== "holds") return { kind: "left", after: async () => standing };
    const end = await work(tx, standing.number);
    if (end.kind === "commit") return await conclude(on, say, ground, end);
    return { kind: "left", after: async () => ({ kind: "rolled_back", value: end.value }) };
  };
  return unitThrough(on, bounds, body);
}

async function begin<Tx>(
  { tables, schema, ask }: Through<Tx>,
  say: Say,
  ground: Ground,
  bounds: UnitBounds,
): Promise<Standing> {
  const idleMs = idleSetting(bounds);
  if (ground.kind === "held") {
    const [held] = await say(holdStatement(tables, ground.seen, idleMs));
    if (held !== undefined) return { kind: "holds", number: null };
    return { kind: "refused", ...(await verbs(ask, tables).read(ground.seen.identity)) };
  }
  const claimable = { ...ground, schema, idleMs };
  const lock = only(await say(lockStatement(claimable)));
  const standing = standingOf(only(await say(claimableStatement(tables, claimable))), ground);
  // What stands is an answer whoever claims; only where nothing is in the way does the lock decide.
  return standing.kind === "holds" && lock["claimed"] !== "true" ? { kind: "busy" } : standing;
}

async function conclude<Tx, T>(
  { tables, ask }: Through<Tx>,
  say: Say,
  { seen }: Ground,
  { write, value }: Extract<FencedEnd<T>, { kind: "commit" }>,
): Promise<Closing<Fenced<T>>> {
  const { attempt, identity } = write;
  try {
    const statement = concludeStatement(tables, { seen, row: sizedRow(write), attempt, besides: XACT });
    const raw = only(await last(say, statement));
    const now = nowOf(raw);
    const version = { attempt: numberIn(raw, "attempt"), revision: (seen?.revision ?? 0) + 1, now };
    const record = stampWrite(write, version);
    const proof = { xact: String(raw["xact"]), written: writtenBy(write) };
    return { kind: "kept", value: { kind: "committed", record, now, value }, proof };
  } catch (error) {
    if (!isGroundLost(error)) throw error;
    const after = async () => ({ kind: "refused", ...(await verbs(ask, tables).read(identity)) }) as const;
    return { kind: "left", after };
  }
}

function writtenBy({ identity, writeId }: RecordWrite) {
  return { id: recordId(identity), writeId };
}

/** A unit whose earlier statement failed is over, whatever became of that error. */
async function last(say: Say, text: string) {
  try {
    return await say(text);
  } catch (error) {
    throw sqlState(error) === FAILED_TRANSACTION ? notCommitted() : error;
  }
}
