import type { Due, Identity, KeyRecord, RecordWrite, Seen } from "../../core/record.ts";
import { OncekeyError, StoreContention } from "../../errors.ts";
import { recordId } from "../codec.ts";
import { type Row, stampWrite, toRow } from "../row.ts";
import type { Looked, Patience, Replaced, Standing } from "../store.ts";
import { answerOf, recordOf } from "./answer.ts";
import type { Ask, RawRow } from "./connector.ts";
import { insertStatement, readStatement, replaceStatement, tryClaimStatement } from "./sql.ts";
import type { Tables } from "./tables.ts";

/** The verbs on one record, wherever `ask` sends them: each in its own transaction, or all in the caller's. */
export interface Verbs {
  insert(write: RecordWrite): Promise<Standing>;
  replace(seen: Seen, write: RecordWrite, patience: Patience): Promise<Replaced>;
  read(identity: Identity): Promise<Looked>;
}

/**
 * What a record may hold: sent as text it is a third longer, a reading of it must fit into one string of JavaScript
 * (512 MiB) and into one row of PostgreSQL (1 GiB) with room to spare.
 */
export const MAX_RECORD_BYTES: number = 64 * 1024 * 1024;

export function verbs(ask: Ask, tables: Tables): Verbs {
  return {
    read: async (identity) => {
      const answer = answerOf(only(await ask(readStatement(tables, recordId(identity)))));
      return { record: recordOf(answer, identity), now: answer.now };
    },
    insert: async (write) => {
      const statement = insertStatement(tables, sizedRow(write), write.attempt);
      for (let look = 0; look < LOOKS; look += 1) {
        const answer = answerOf(only(await ask(statement)));
        const { now, number: attempt } = answer;
        if (attempt !== null)
          return { inserted: true, record: stampWrite(write, { attempt, revision: 1, now }), now };
        const record = recordOf(answer, write.identity);
        if (record !== null) return { inserted: false, record, now };
      }
      throw new StoreContention(
        `The record was made and removed ${LOOKS} times while it was looked for. Send it again.`,
      );
    },
    replace: async (seen, write, patience) => {
      const row = sizedRow(write);
      const statement = replaceStatement(tables, { seen, row, attempt: write.attempt, patience });
      const answer = answerOf(only(await ask(statement)));
      const { now, number: attempt } = answer;
      if (attempt === null)
        return judgeStanding({ record: recordOf(answer, seen.identity), now }, { seen, write, patience });
      const record = stampWrite(write, { attempt, revision: seen.revision + 1, now });
      return { kind: "replaced", record, now };
    },
  };
}

/** True when no other open transaction has asked the same for this identity. */
export async function tryClaim(ask: Ask, schema: string | null, identity: Identity): Promise<boolean> {
  return only(await ask(tryClaimStatement(schema, recordId(identity))))["claimed"] === "true";
}

/** The row of a statement that always returns one. */
export function only(rows: readonly RawRow[]): RawRow {
  const [row] = rows;
  if (row === undefined) throw new Error("PostgreSQL returned no row where there always is one.");
  return row;
}

/** Each look but the first means that a record was made or removed in that instant. */
const LOOKS = 5;

interface Tried {
  readonly seen: Seen;
  readonly write: RecordWrite;
  readonly patience: Patience;
}

/** What a compare-and-set that changed nothing met, as a look begun after it sees it. */
function judgeStanding({ record, now }: Looked, { seen, write, patience }: Tried): Replaced {
  if (record === null) return { kind: "stale", record, now };
  if (record.writeId === write.writeId) return { kind: "replaced", record, now };
  if (patience === "never" && isVersion(record, seen)) return { kind: "locked", record, now };
  return { kind: "stale", record, now };
}

export function isVersion(record: KeyRecord, seen: Seen): boolean {
  return record.owner === seen.owner && record.revision === seen.revision;
}

/** The row of a write, refused where it is more than the store keeps. */
export function sizedRow(write: RecordWrite): Row<Due> {
  const row = toRow(write);
  const bytes = Object.values(row).reduce<number>((sum, value) => sum + sizeOf(value), 0);
  if (bytes <= MAX_RECORD_BYTES) return row;
  throw new OncekeyError(
    "record_too_large",
    `The record has ${bytes} bytes, more than the ${MAX_RECORD_BYTES} that the store keeps. Nothing was written.`,
  );
}

function sizeOf(value: unknown): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  return value instanceof Uint8Array ? value.byteLength : 0;
}
