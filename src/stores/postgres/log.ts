import type { Identity, RecordState } from "../../core/record.ts";
import { RecordCorrupt } from "../../errors.ts";
import { recordId } from "../codec.ts";
import type { AuditEntry, Audited, Beat, WorkerName } from "../store.ts";
import { numberIn } from "./columns.ts";
import type { Ask, RawRow } from "./connector.ts";
import { parameters } from "./sql.ts";
import type { Tables } from "./tables.ts";

/** Appends to the log of what people and policies overrode. */
export async function audit(ask: Ask, { audit }: Tables, entry: AuditEntry): Promise<void> {
  const { identity } = entry;
  const { values, add } = parameters();
  const columns = [
    ["record_id", add(recordId(identity), "bytea")],
    ["kind", add(identity.kind, "text")],
    ["principal", add(identity.principal, "text")],
    ["identity_operation", add(identity.kind === "run" ? identity.operation : null, "text")],
    ["key", add(identity.key, "text")],
    ["actor", add(entry.actor, "text")],
    ["action", add(entry.action, "text")],
    ["reason", add(entry.reason, "text")],
    ["state_before", add(entry.before, "text")],
    ["state_after", add(entry.after, "text")],
  ] as const;
  const text = `INSERT INTO ${audit} (at, ${columns.map(([column]) => column).join(", ")})
    VALUES (${NOW}, ${columns.map(([, value]) => value).join(", ")})`;
  await ask({ text, values });
}

/** What the log says of one identity, oldest first. */
export async function audits(ask: Ask, { audit }: Tables, identity: Identity): Promise<readonly Audited[]> {
  const text = `SELECT ${inMs("at")} AS at, actor, action, reason, state_before, state_after
    FROM ${audit} WHERE record_id = $1::bytea ORDER BY id`;
  const rows = await ask({ text, values: [recordId(identity)] });
  return rows.map((raw) => ({
    identity,
    at: numberIn(raw, "at"),
    actor: String(raw["actor"]),
    action: String(raw["action"]),
    reason: String(raw["reason"]),
    before: stateOf(raw, "state_before"),
    after: stateOf(raw, "state_after"),
  }));
}

/** Says that a worker is alive. */
export async function beat(ask: Ask, { beats }: Tables, worker: WorkerName): Promise<void> {
  const text = `INSERT INTO ${beats} (worker, beaten_at) VALUES ($1::text, ${NOW})
    ON CONFLICT (worker) DO UPDATE SET beaten_at = excluded.beaten_at`;
  await ask({ text, values: [worker] });
}

/** When each worker that ever ran was last heard of. */
export async function beats(ask: Ask, { beats }: Tables): Promise<readonly Beat[]> {
  const age = `round(date_part('epoch', ${NOW} - beaten_at) * 1000)::bigint::text`;
  const text = `SELECT worker, ${inMs("beaten_at")} AS beaten_at, ${age} AS age FROM ${beats} ORDER BY worker`;
  const rows = await ask({ text, values: [] });
  return WORKERS.flatMap((worker) =>
    rows
      .filter((raw) => raw["worker"] === worker)
      .map((raw) => ({ worker, beatenAt: numberIn(raw, "beaten_at"), ageMs: numberIn(raw, "age") })),
  );
}

/** The database's now in the milliseconds that people are shown. */
const NOW = "date_trunc('milliseconds', clock_timestamp())";

function inMs(instant: string): string {
  return `round(date_part('epoch', ${instant}) * 1000)::bigint::text`;
}

const WORKERS: readonly WorkerName[] = ["purge", "reconciler", "sweeper"];
const STATES: readonly RecordState[] = [
  "in_progress",
  "released",
  "unknown",
  "completed",
  "failed_permanent",
];

function stateOf(raw: RawRow, column: string): RecordState | null {
  const value = raw[column];
  if (value === null) return null;
  const state = STATES.find((known) => known === value);
  if (state === undefined) throw new RecordCorrupt(`${column} of the audit log is no state`);
  return state;
}
