import type { Identity, RecordWrite } from "../../core/record.ts";
import { recordId } from "../codec.ts";
import { stampWrite } from "../row.ts";
import type { Fenced, FencedEnd, FencedWork, Ground, UnitBounds } from "../store.ts";
import type { PostgresResult } from "./client.ts";
import { nowOf, numberIn, recordOf } from "./columns.ts";
import type { Connector, Link, RawRow } from "./connector.ts";
import {
  claimableStatement,
  concludeStatement,
  holdStatement,
  isGroundLost,
  lockStatement,
  unchanged,
} from "./fenced-sql.ts";
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
import { readStatement, type Tables } from "./sql.ts";
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
      const same = sameAs(ground, end.write);
      return {
        ...end,
        script: concludeStatement(tables, { seen: ground.seen, begun, row, attempt, ...same }),
      };
    });
    if (worked.kind === "commit") return await conclude(link, tables, ground, worked);
    await rollBack(link);
    return worked;
  };
  return connector.lend(carriedOut, bounds.longestMs ?? null);
}

/** What the write of a unit leaves as it was, where its ground is the version itself. */
export function sameAs(ground: Ground, write: RecordWrite): { readonly same?: ReadonlySet<string> } {
  return ground.kind === "held" && ground.from !== undefined ? { same: unchanged(write, ground.from) } : {};
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
    const [row] = held?.rows ?? [];
    if (row !== undefined) return { kind: "holds", number: null, begun: String(row["begun"]) };
    return { kind: "refused", ...(await readIn(link, tables, ground.seen.identity)) };
  }
  const claimable = { ...ground, schema, idleMs };
  const statements = [lockStatement(claimable), claimableStatement(tables, claimable)];
  const [, lock, found] = await opened(link, [BEGIN, ...statements].join("; "));
  return standingOf({ lock: rowOf(lock), found: rowOf(found) }, ground);
}

/** What the answers to `lockStatement` and `claimableStatement` say. */
export function standingOf(
  { lock, found }: { readonly lock: RawRow; readonly found: RawRow },
  { identity, seen }: Extract<Ground, { kind: "claimable" }>,
): Standing {
  const record = recordOf(found, identity);
  const free = seen === null ? record === null : record !== null && isVersion(record, seen);
  if (!free) return { kind: "refused", record, now: nowOf(found) };
  // A row that another transaction holds is skipped: whoever holds it is ending or claiming it.
  if (found["number"] === null) return { kind: "busy" };
  // What stands is an answer whoever claims; only where nothing is in the way does the lock decide.
  if (lock["claimed"] !== "true") return { kind: "busy" };
  return { kind: "holds", number: numberIn(found, "number"), begun: String(found["begun"]) };
}

async function conclude<Tx, T>(
  link: Link<Tx>,
  tables: Tables,
  { seen }: Ground,
  { script, write, value }: Extract<Worked<T>, { kind: "commit" }>,
): Promise<Fenced<T>> {
  try {
    const [kept] = await closed(link, `${script}; COMMIT`);
    const raw = rowOf(kept);
    const now = nowOf(raw);
    const revision = (seen?.revision ?? 0) + 1;
    const record = stampWrite(write, { attempt: numberIn(raw, "attempt"), revision, now });
    return { kind: "committed", record, now, value };
  } catch (error) {
    if (!isGroundLost(error)) throw error;
    return { kind: "refused", ...(await readIn(link, tables, write.identity)) };
  }
}

async function readIn<Tx>(link: Link<Tx>, tables: Tables, identity: Identity) {
  const raw = only(await link.ask(readStatement(tables, recordId(identity))));
  return { record: recordOf(raw, identity), now: nowOf(raw) };
}

function rowOf(result: PostgresResult | undefined): RawRow {
  return only(result?.rows ?? []);
}
