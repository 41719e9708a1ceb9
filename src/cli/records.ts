import { isRemembered } from "../core/decide.ts";
import type { Identity, Instant, KeyRecord } from "../core/record.ts";
import type { Audited } from "../stores/store.ts";

/** A record as a program reads it at the store's `now`; answers, results and references are told by their size only. */
export function documentOf(record: KeyRecord, now: Instant): Readonly<Record<string, unknown>> {
  const { identity, operation, effects, state, attempt, revision, correlationId, reference, steps } = record;
  return {
    ...{ identity, operation, effects, state, attempt, revision, correlationId },
    createdAt: timeOf(record.createdAt),
    claimedAt: timeOf(record.claimedAt),
    updatedAt: timeOf(record.updatedAt),
    referenceBytes: reference?.length ?? null,
    steps: Object.fromEntries([...steps].map(([name, step]) => [name, stepOf(step)])),
    ...ofItsState(record, now),
  };
}

function stepOf(step: KeyRecord["steps"] extends ReadonlyMap<string, infer Step> ? Step : never) {
  const { state, generation } = step;
  if (step.state === "clear") return { state, generation };
  const { provider, openedAt, keyTtlMs, validUntil } = step;
  return {
    state,
    generation,
    provider,
    openedAt: timeOf(openedAt),
    keyTtlMs,
    validUntil: timeOf(validUntil),
  };
}

function ofItsState(record: KeyRecord, now: Instant): Readonly<Record<string, unknown>> {
  switch (record.state) {
    case "in_progress":
      return { leaseUntil: timeOf(record.leaseUntil) };
    case "released":
      return { retainUntil: timeOf(record.retainUntil) };
    case "unknown": {
      const { disposition, looks, evidence } = record;
      const times = { nextLookAt: timeOf(record.nextLookAt), retainUntil: timeOf(record.retainUntil) };
      return {
        disposition,
        looks,
        reason: evidence.reason,
        resultBytes: evidence.result?.length ?? null,
        ...times,
      };
    }
    case "completed":
    case "failed_permanent": {
      const { status, headers, body, sealed } = record.answer;
      const bytes = { bodyBytes: body?.length ?? null, ...(sealed && { sealedBytes: sealed.length }) };
      const answer = { status, headers: headers.map(([name]) => name), ...bytes };
      const { retainUntil, tombstoneMs } = record;
      const tombstoneUntil = tombstoneMs === null ? null : timeOf(retainUntil + tombstoneMs);
      return { answer, retainUntil: timeOf(retainUntil), tombstoneUntil, expired: isRemembered(record, now) };
    }
  }
}

export function auditOf({
  at,
  ...entry
}: Audited): Readonly<Record<"at" | "actor" | "action" | "reason" | "before" | "after", string | null>> {
  const { actor, action, reason, before, after } = entry;
  return { at: timeOf(at), actor, action, reason, before, after };
}

/** Columns with what is widest in each; nothing in them can move the cursor or break a line. */
export function table(rows: readonly (readonly string[])[]): string {
  const shown = rows.map((row) => row.map(plain));
  const widths = (shown[0] ?? []).map((_, column) =>
    Math.max(...shown.map((row) => row[column]?.length ?? 0)),
  );
  return shown
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

export const HEADINGS: readonly string[] = [
  "STATE",
  "OPERATION",
  "PRINCIPAL",
  "KEY",
  "ATTEMPT",
  "CREATED",
  "CHANGED",
];

export function rowOf(record: KeyRecord, now: Instant): readonly string[] {
  const { identity, operation, attempt, createdAt, updatedAt } = record;
  const more = record.state === "unknown" ? record.disposition : isRemembered(record, now) ? "expired" : null;
  const state = more === null ? record.state : `${record.state} (${more})`;
  const whose = [operation, identity.principal, identity.key, String(attempt)];
  return [state, ...whose, timeOf(createdAt) ?? "", timeOf(updatedAt) ?? ""];
}

export function nameOf(identity: Identity): string {
  const { principal, key } = identity;
  return identity.kind === "run" ? `${identity.operation}, ${principal}, ${key}` : `${principal}, ${key}`;
}

/** Names come from clients: no control character of theirs reaches a terminal. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, (character) => JSON.stringify(character).slice(1, -1));
}

function timeOf(instant: number | null): string | null {
  return instant === null ? null : new Date(instant).toISOString();
}
