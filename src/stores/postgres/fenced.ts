import type { Identity, KeyRecord, RecordWrite } from "../../core/record.ts";
import { recordId } from "../codec.ts";
import { stampWrite } from "../row.ts";
import type { Fenced, FencedEnd, FencedWork, Ground, UnitBounds } from "../store.ts";
import { type Answer, answerOf, recordOf } from "./answer.ts";
import type { PostgresResult } from "./client.ts";
import type { Connector, Link, RawRow } from "./connector.ts";
import { claimableStatement, concludeStatement, holdStatement, isGroundLost } from "./fenced-sql.ts";
import { keepsHead } from "./packed.ts";
import {
  BEGIN,
  closed,
  idleSetting,
  opened,
  perform,
  rollBack,
  type SessionBounds,
  working,
} from "./session.ts";
import { readStatement } from "./sql.ts";
import type { Tables } from "./tables.ts";
import { isVersion, only, sizedRow } from "./verbs.ts";

/** Where fenced units go. */
export interface FencedOn<Tx> {
  readonly connector: Connector<Tx>;
  readonly tables: Tables;
}

/**
 * A unit on its ground in three trips beside its own: BEGIN with the ground, then `work`, then its write with COMMIT. The
 * write fails where it finds another version than the ground, so that a COMMIT behind it in the same message is skipped.
 */
export function fenced<Tx, T>(
  { connector, tables }: FencedOn<Tx>,
  { ground, work, bounds }: { ground: Ground; work: FencedWork<Tx, T>; bounds: SessionBounds },
): Promise<Fenced<T>> {
  const carriedOut = async (link: Link<Tx>): Promise<Fenced<T>> => {
    const worked = await working(link, async (): Promise<Worked<T>> => {
      const standing = await begin(link, { tables, ground, schema: connector.schema, bounds });
      if (standing.kind !== "holds") return standing;
      const { begun } = standing;
      const end = await perform(link, (tx) => work(tx, standing.number));
      if (end.kind === "rollback") return { kind: "rolled_back", value: end.value };
      const { attempt } = end.write;
      const row = sizedRow(end.write);
      const written = { row, attempt, keepsHead: isHeadKept(ground, end.write) };
      return { ...end, script: concludeStatement(tables, { seen: ground.seen, begun, ...written }) };
    });
    if (worked.kind === "commit") return await conclude(link, tables, ground, worked);
    await rollBack(link);
    return worked;
  };
  return connector.lend(carriedOut, bounds.longestMs ?? null);
}

/** Whether a unit's write leaves the head as it was, where its ground is the version itself. */
export function isHeadKept(ground: Ground, write: RecordWrite): boolean {
  return ground.kind === "held" && ground.from !== undefined && keepsHead(write, ground.from);
}

/** How a unit ended before its commit. */
type Worked<T> =
  | (Extract<FencedEnd<T>, { kind: "commit" }> & { readonly script: string })
  | Exclude<Fenced<T>, { kind: "committed" }>;

export type Standing =
  | { readonly kind: "holds"; readonly number: number | null; readonly begun: string }
  | Extract<Fenced<never>, { kind: "busy" | "refused" }>;

interface Beginning {
  readonly tables: Tables;
  readonly ground: Ground;
  readonly schema: string | null;
  readonly bounds: UnitBounds;
}

async function begin<Tx>(link: Link<Tx>, { tables, ground, schema, bounds }: Beginning): Promise<Standing> {
  const idleMs = idleSetting(bounds);
  if (ground.kind === "held") {
    const [, held] = await opened(link, `${BEGIN}; ${holdStatement(tables, ground.seen, idleMs)}`);
    const raw = rowOf(held);
    if (raw["told"] !== null) return { kind: "holds", number: null, begun: answerOf(raw).begun };
    return { kind: "refused", ...(await readIn(link, tables, ground.seen.identity)) };
  }
  const claiming = claimableStatement(tables, { ...ground, schema, idleMs });
  const [, found] = await opened(link, `${BEGIN}; ${claiming}`);
  return standingOf(answerOf(rowOf(found)), ground);
}

/** What the answer to a `claimableStatement` says. */
export function standingOf(
  answer: Answer,
  { identity, seen }: Extract<Ground, { kind: "claimable" }>,
): Standing {
  const record = recordOf(answer, identity);
  const { now, number, begun } = answer;
  // What stands is an answer whoever claims; only where nothing is in the way does the lock decide.
  const free = seen === null ? record === null : record !== null && isVersion(record, seen);
  if (!free) return { kind: "refused", record, now };
  // Somebody else has the lock, or holds the row: whoever does is ending or claiming it.
  return number === null ? { kind: "busy" } : { kind: "holds", number, begun };
}

async function conclude<Tx, T>(
  link: Link<Tx>,
  tables: Tables,
  { seen }: Ground,
  { script, write, value }: Extract<Worked<T>, { kind: "commit" }>,
): Promise<Fenced<T>> {
  try {
    const [kept] = await closed(link, `${script}; COMMIT`);
    const record = recordKept(rowOf(kept), write, seen);
    return { kind: "committed", record, now: record.updatedAt, value };
  } catch (error) {
    if (!isGroundLost(error)) throw error;
    return { kind: "refused", ...(await readIn(link, tables, write.identity)) };
  }
}

/** The version that a `concludeStatement` wrote in the place of the one that was seen. */
export function recordKept(raw: RawRow, write: RecordWrite, seen: Ground["seen"]): KeyRecord {
  const { now, number } = answerOf(raw);
  if (number === null) throw new Error("PostgreSQL gave a version no number.");
  return stampWrite(write, { attempt: number, revision: (seen?.revision ?? 0) + 1, now });
}

async function readIn<Tx>(link: Link<Tx>, tables: Tables, identity: Identity) {
  const answer = answerOf(only(await link.ask(readStatement(tables, recordId(identity)))));
  return { record: recordOf(answer, identity), now: answer.now };
}

function rowOf(result: PostgresResult | undefined): RawRow {
  return only(result?.rows ?? []);
}
