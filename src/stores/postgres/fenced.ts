import type { Identity } from "../../core/record.ts";
import { fromRow, recordId, stampRow } from "../row.ts";
import type { Fenced, FencedEnd, FencedWork, Ground, UnitBounds } from "../store.ts";
import type { PostgresResult } from "./client.ts";
import { nowOf, numberIn, recordOf } from "./columns.ts";
import type { Connector, Link, RawRow } from "./connector.ts";
import {
  claimableStatement,
  concludeStatement,
  GROUND_LOST,
  holdStatement,
  lockStatement,
} from "./fenced-sql.ts";
import { inlined } from "./literal.ts";
import { BEGIN, closed, idleSetting, opened, perform, rollBack } from "./session.ts";
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
  { ground, work, bounds }: { ground: Ground; work: FencedWork<Tx, T>; bounds: UnitBounds },
): Promise<Fenced<T>> {
  return connector.lend(async (link) => {
    const standing = await begin(link, { tables, ground, schema: connector.schema, bounds });
    if (standing.kind === "busy" || standing.kind === "refused") {
      await rollBack(link);
      return standing;
    }
    const end = await perform(link, (tx) => work(tx, standing.number));
    if (end.kind === "commit") return await conclude(link, tables, ground, end);
    await rollBack(link);
    return { kind: "rolled_back", value: end.value };
  });
}

type Standing =
  | { readonly kind: "holds"; readonly number: number | null }
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
    const [, held] = await opened(link, `${BEGIN}; ${inlined(holdStatement(tables, ground.seen, idleMs))}`);
    if (held?.rows[0] !== undefined) return { kind: "holds", number: null };
    return { kind: "refused", ...(await readIn(link, tables, ground.seen.identity)) };
  }
  const claimable = { ...ground, schema, idleMs };
  const statements = [lockStatement(claimable), claimableStatement(tables, claimable)].map(inlined);
  const [, lock, found] = await opened(link, [BEGIN, ...statements].join("; "));
  if (rowOf(lock)["claimed"] !== "true") return { kind: "busy" };
  return standingOf(rowOf(found), ground);
}

function standingOf(found: RawRow, { identity, seen }: Extract<Ground, { kind: "claimable" }>): Standing {
  const record = recordOf(found, identity);
  const free = seen === null ? record === null : record !== null && isVersion(record, seen);
  if (!free) return { kind: "refused", record, now: nowOf(found) };
  // A row that another transaction holds is skipped: whoever holds it is ending or claiming it.
  return found["number"] === null ? { kind: "busy" } : { kind: "holds", number: numberIn(found, "number") };
}

async function conclude<Tx, T>(
  link: Link<Tx>,
  tables: Tables,
  ground: Ground,
  { write, value }: Extract<FencedEnd<T>, { kind: "commit" }>,
): Promise<Fenced<T>> {
  const row = sizedRow(write);
  const statement = concludeStatement(tables, { seen: ground.seen, row, attempt: write.attempt });
  try {
    const [kept] = await closed(link, `${inlined(statement)}; COMMIT`);
    const raw = rowOf(kept);
    const now = nowOf(raw);
    const revision = (ground.seen?.revision ?? 0) + 1;
    const record = fromRow(stampRow(row, { attempt: numberIn(raw, "attempt"), revision, now }));
    return { kind: "committed", record, now, value };
  } catch (error) {
    if (!(error instanceof Error && error.message.includes(GROUND_LOST))) throw error;
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
