import { isDeepStrictEqual } from "node:util";
import {
  type InProgress,
  type KeyRecord,
  type RecordWrite,
  type Released,
  type Step,
  stamp,
  type Unknown,
} from "../../src/core/record.ts";
import type { Claim } from "../../src/core/transition.ts";

/** When the standing versions were written. */
const EARLIER = 1_800_000_000_000;

/** When the next version is written. */
export const NOW = EARLIER + 60_000;

/** What every next version changes. */
export const WRITE = { writeId: "the next write" };
export const ANSWER = { status: 201, headers: [["x-a", "b"]], body: Uint8Array.of(1, 2) } as const;
const MARK = {
  provider: "repeatable",
  openedAt: EARLIER - 9_000,
  keyTtlMs: 86_400_000,
  validUntil: null,
} as const;
export const OPEN = { ...MARK, state: "open", generation: 2 } as const;
export const FINISHED = {
  ...MARK,
  state: "finished",
  generation: 1,
  result: Uint8Array.of(3),
  validUntil: EARLIER,
} as const;
export const REFUSED = { ...MARK, state: "refused", generation: 4, result: Uint8Array.of(5) } as const;
export const CLEAR = { state: "clear", generation: 6 } as const;

/** Steps of every state. */
export const STEPS: ReadonlyMap<string, Step> = stepsOf({
  open: OPEN,
  done: FINISHED,
  refused: REFUSED,
  clear: CLEAR,
});

/** What a new attempt brings. */
export function request(change: Partial<Claim> = {}): Claim {
  const bytes = new Uint8Array(32).fill(7);
  return {
    identity: { kind: "http", principal: "alice", key: "k" },
    operation: "POST /payments",
    effects: "declared",
    fingerprint: { version: "2", salt: bytes, raw: bytes, canonical: bytes },
    owner: "the next owner",
    writeId: "the next write",
    correlationId: "the next trace",
    leaseMs: 90_000,
    steps: new Map(),
    ...change,
  };
}

export function stepsOf(steps: Readonly<Record<string, Step>>): ReadonlyMap<string, Step> {
  return new Map(Object.entries(steps));
}

/** A mark as a claim brings it: it knows nothing of earlier generations. */
export function opening() {
  const times = { openedAt: { inMs: 0 }, validUntil: { inMs: 5_000 } };
  return { state: "open", provider: "repeatable", generation: 0, keyTtlMs: 86_400_000, ...times } as const;
}

/** The record that a store makes of a write. */
export function standing(write: RecordWrite): KeyRecord {
  const attempt = write.attempt === "next" ? 8 : write.attempt;
  return stamp(write, { attempt, revision: 8, updatedAt: NOW });
}

function common() {
  const { leaseMs: _, ...asked } = request();
  return {
    ...asked,
    ...{ operation: "POST /orders", owner: "an owner", writeId: "a write", correlationId: "a trace" },
    ...{
      steps: STEPS,
      reference: Uint8Array.of(8),
      createdAt: EARLIER - 20_000,
      claimedAt: EARLIER - 10_000,
    },
    ...{ attempt: 7, revision: 7, updatedAt: EARLIER },
  };
}

/** A record in progress. */
export function running(): InProgress {
  return { ...common(), state: "in_progress", leaseUntil: EARLIER + 5_000 };
}

/** A released record. */
export function released(): Released {
  return { ...common(), state: "released", retainUntil: EARLIER + 5_000 };
}

/** An unknown record, to be reconciled. */
export function doubted(): Unknown {
  const evidence = { reason: "The reply was lost.", result: Uint8Array.of(6) };
  const doubt = { evidence, looks: 2, nextLookAt: EARLIER + 5_000, disposition: "reconcile" } as const;
  return { ...common(), state: "unknown", ...doubt, retainUntil: null };
}

/** What became another, besides what every write changes. */
export function changes(before: KeyRecord, after: KeyRecord): object {
  const earlier = new Map<string, unknown>(Object.entries(before));
  const counted = new Set(["revision", "updatedAt"]);
  const gone = [...earlier.keys()].filter((name) => !(name in after)).map((name) => [name, undefined]);
  const changed = Object.entries(after).filter(
    ([name, value]) => !counted.has(name) && !isDeepStrictEqual(value, earlier.get(name)),
  );
  return Object.fromEntries([...changed, ...gone]);
}
