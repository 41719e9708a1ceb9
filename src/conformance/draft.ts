import type { Fingerprint, Identity, InProgress, Instant, RecordWrite } from "../core/record.ts";
import type { Store } from "../stores/store.ts";
import type { StoreSubject } from "./subject.ts";

type Seeded = Pick<StoreSubject, "random">;

export type InProgressWrite = Extract<RecordWrite, { readonly state: "in_progress" }>;
export type ReleasedWrite = Extract<RecordWrite, { readonly state: "released" }>;
export type UnknownWrite = Extract<RecordWrite, { readonly state: "unknown" }>;
export type CompletedWrite = Extract<RecordWrite, { readonly state: "completed" }>;
export type FailedPermanentWrite = Extract<RecordWrite, { readonly state: "failed_permanent" }>;

/** A word that this subject has not used before. */
export function freshWord({ random }: Seeded): string {
  const letters = () => Math.floor(random() * 0x1_0000_0000).toString(36);
  return `${letters()}${letters()}${letters()}`;
}

/** An identity that nothing was kept for. */
export function freshIdentity(subject: Seeded): Identity {
  return { kind: "http", principal: `principal-${freshWord(subject)}`, key: `key-${freshWord(subject)}` };
}

/** Bytes that no encoding survives by chance. */
export function randomBytes({ random }: Seeded, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => Math.floor(random() * 256));
}

/** The claim of a new attempt, with a live lease; `change` says what matters to the law. */
export function inProgress(subject: Seeded, change: Partial<InProgressWrite> = {}): InProgressWrite {
  return { ...common(subject), state: "in_progress", leaseUntil: { inMs: 90_000 }, ...change };
}

/** Proved not to have happened; kept for a day. */
export function released(subject: Seeded, change: Partial<ReleasedWrite> = {}): ReleasedWrite {
  return { ...common(subject), state: "released", retainUntil: { inMs: DAY_MS }, ...change };
}

/** In doubt; to be reconciled in half a minute. */
export function unknown(subject: Seeded, change: Partial<UnknownWrite> = {}): UnknownWrite {
  return {
    ...common(subject),
    state: "unknown",
    evidence: { reason: "The reply was lost.", result: null },
    looks: 0,
    nextLookAt: { inMs: 30_000 },
    disposition: "reconcile",
    retainUntil: null,
    ...change,
  };
}

/** Finished with a small answer; kept for a day. */
export function completed(subject: Seeded, change: Partial<CompletedWrite> = {}): CompletedWrite {
  return { ...common(subject), state: "completed", ...KEPT, ...change };
}

/** Refused for good with a small answer; kept for a day. */
export function failedPermanent(
  subject: Seeded,
  change: Partial<FailedPermanentWrite> = {},
): FailedPermanentWrite {
  const answer = { ...ANSWER, status: 402 };
  return { ...common(subject), state: "failed_permanent", ...KEPT, answer, ...change };
}

/** The same attempt again, its lease a minute and a half from now. */
export function renewal(subject: Seeded, record: InProgress): InProgressWrite {
  const { identity, owner, attempt } = record;
  const [createdAt, claimedAt] = [{ at: record.createdAt }, { at: record.claimedAt }];
  return inProgress(subject, { identity, owner, attempt, createdAt, claimedAt });
}

/** The store's now, asked with a look at a record that is not there. */
export async function nowOf(store: Store, subject: Seeded): Promise<Instant> {
  return (await store.read(freshIdentity(subject))).now;
}

const DAY_MS = 86_400_000;
const ANSWER = {
  status: 201,
  headers: [["content-type", "application/json"]],
  body: new TextEncoder().encode('{"ok":true}'),
} as const;
const KEPT = { answer: ANSWER, retainUntil: { inMs: DAY_MS }, tombstoneMs: null } as const;

function common(subject: Seeded) {
  return {
    identity: freshIdentity(subject),
    operation: "POST /payments",
    effects: "none",
    fingerprint: fingerprint(subject),
    owner: `owner-${freshWord(subject)}`,
    writeId: `write-${freshWord(subject)}`,
    steps: new Map(),
    reference: null,
    correlationId: null,
    createdAt: { inMs: 0 },
    claimedAt: { inMs: 0 },
    attempt: "next",
  } as const;
}

function fingerprint(subject: Seeded): Fingerprint {
  const salt = randomBytes(subject, 16);
  return { version: "1", salt, raw: randomBytes(subject, 32), canonical: randomBytes(subject, 32) };
}
