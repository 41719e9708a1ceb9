import { type Identity, isConcluded, type RecordWrite } from "../../core/record.ts";
import { recordId } from "../codec.ts";
import { endedInside } from "../lent.ts";
import type { Awaitable, Fenced, FencedEnd, FencedWork, Ground, UnitEnd } from "../store.ts";
import { answerOf } from "./answer.ts";
import { sqlState } from "./classify.ts";
import { isHeadKept, recordKept, type Standing, standingOf } from "./fenced.ts";
import { claimableStatement, concludeStatement, holdStatement, isGroundLost } from "./fenced-sql.ts";
import { BEGUN, idleBound, isEndedInside, stillIn } from "./same-transaction.ts";
import { FAILED_TRANSACTION, idleSetting, notCommitted, type SessionBounds } from "./session.ts";
import {
  type Body,
  type Closing,
  type Say,
  type Through,
  unitThrough,
  type Written,
  XACT,
} from "./through-unit.ts";
import { only, sizedRow, verbs } from "./verbs.ts";

/** A unit in a transaction that a layer of the user's own opens and commits. */
export function transactThrough<Tx, T>(
  on: Through<Tx>,
  bounds: SessionBounds,
  work: (tx: Tx) => Awaitable<UnitEnd<T>>,
): Promise<T> {
  return unitThrough(on, bounds, async (tx, say) => {
    const first = only(await say(`SELECT ${BEGUN}, ${idleBound(idleSetting(bounds))}`));
    const begun = String(first["begun"]);
    const end = await work(tx);
    if (end.kind === "rollback") return { kind: "left", after: async () => end.value };
    const raw = only(await last(say, `SELECT ${XACT} WHERE ${stillIn(begun)}`));
    return { kind: "kept", value: end.value, proof: { xact: String(raw["xact"]), written: null } };
  });
}

/** A unit on its ground in such a transaction: its first statement holds the ground, its last writes in its place. */
export function fencedThrough<Tx, T>(
  on: Through<Tx>,
  { ground, work, bounds }: { ground: Ground; work: FencedWork<Tx, T>; bounds: SessionBounds },
): Promise<Fenced<T>> {
  const body: Body<Tx, Fenced<T>> = async (tx, say) => {
    const standing = await begin(on, say, ground, bounds);
    if (standing.kind === "gone") return refused(on, standing.identity);
    if (standing.kind !== "holds") return { kind: "left", after: async () => standing };
    const end = await work(tx, standing.number);
    if (end.kind === "commit") return await conclude(on, say, { ...standing, ground }, end);
    return { kind: "left", after: async () => ({ kind: "rolled_back", value: end.value }) };
  };
  return unitThrough(on, bounds, body);
}

/** Another version stands than the one to be held. */
interface Gone {
  readonly kind: "gone";
  readonly identity: Identity;
}

/**
 * What stands instead is read once the layer has its connection back: the store's pool may be the layer's, and whoever
 * holds one of its connections while waiting for another can wait for himself.
 */
function refused<Tx>(
  { ask, tables }: Through<Tx>,
  identity: Identity,
): Extract<Closing<Fenced<never>>, { kind: "left" }> {
  return {
    kind: "left",
    after: async () => ({ kind: "refused", ...(await verbs(ask, tables).read(identity)) }),
  };
}

async function begin<Tx>(
  { tables, schema }: Through<Tx>,
  say: Say,
  ground: Ground,
  bounds: SessionBounds,
): Promise<Standing | Gone> {
  const idleMs = idleSetting(bounds);
  if (ground.kind === "held") {
    const held = only(await say(holdStatement(tables, ground.seen, idleMs)));
    if (held["told"] !== null) return { kind: "holds", number: null, begun: answerOf(held).begun };
    return { kind: "gone", identity: ground.seen.identity };
  }
  const found = only(await say(claimableStatement(tables, { ...ground, schema, idleMs })));
  return standingOf(answerOf(found), ground);
}

async function conclude<Tx, T>(
  on: Through<Tx>,
  say: Say,
  { ground, begun }: { readonly ground: Ground; readonly begun: string },
  { write, value }: Extract<FencedEnd<T>, { kind: "commit" }>,
): Promise<Closing<Fenced<T>>> {
  const { seen } = ground;
  const { attempt } = write;
  try {
    const concluding = {
      seen,
      begun,
      row: sizedRow(write),
      attempt,
      besides: XACT,
      keepsHead: isHeadKept(ground, write),
    };
    const statement = concludeStatement(on.tables, concluding);
    const raw = only(await last(say, statement));
    const record = recordKept(raw, write, seen);
    const proof = { xact: String(raw["xact"]), written: writtenBy(write, ground) };
    return { kind: "kept", value: { kind: "committed", record, now: record.updatedAt, value }, proof };
  } catch (error) {
    if (!isGroundLost(error)) throw error;
    return refused(on, write.identity);
  }
}

/** Where the unit held the version before, a version of a third owner can only have come over the one that it wrote. */
function writtenBy(write: RecordWrite, ground: Ground): Written {
  const { identity, writeId, owner } = write;
  const owners = isConcluded(write) || ground.kind !== "held" ? null : [owner, ground.seen.owner];
  return { id: recordId(identity), writeId, owners };
}

/** A unit whose earlier statement failed is over, whatever became of that error. */
async function last(say: Say, text: string) {
  try {
    return await say(text);
  } catch (error) {
    if (isEndedInside(error)) throw endedInside();
    throw sqlState(error) === FAILED_TRANSACTION ? notCommitted() : error;
  }
}
