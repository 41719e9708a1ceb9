import {
  type Answer,
  type Disposition,
  type Due,
  type Effects,
  type Identity,
  type Instant,
  instantOf,
  type KeyRecord,
  type RecordState,
  type RecordWrite,
  stamp,
} from "../core/record.ts";
import { isSealed } from "../core/sealed.ts";
import { OncekeyError, RecordCorrupt } from "../errors.ts";
import {
  type AnswerForm,
  answerDigest,
  bytes,
  decodeEvidence,
  decodeHeaders,
  decodeSteps,
  encodeEvidence,
  encodeHeaders,
  encodeSteps,
  identityText,
  integer,
  oneOf,
  orNull,
  recordId,
  storable,
  storableMs,
  storableWrite,
  text,
} from "./codec.ts";

/** What a write says, one property a column; the same columns in every SQL store. */
export interface Row<Time> {
  readonly id: Uint8Array;
  readonly kind: Identity["kind"];
  readonly principal: string;
  /** Of the identity (`run`); the record's own `operation` may be another after a takeover. */
  readonly identity_operation: string | null;
  readonly key: string;
  readonly operation: string;
  readonly effects: Effects;
  readonly state: RecordState;
  readonly owner: string;
  readonly write_id: string;
  readonly fingerprint_version: string;
  readonly fingerprint_salt: Uint8Array;
  readonly fingerprint_raw: Uint8Array;
  readonly fingerprint_canonical: Uint8Array;
  readonly steps: Uint8Array;
  readonly reference: Uint8Array | null;
  readonly correlation_id: string | null;
  readonly evidence: Uint8Array | null;
  readonly looks: number | null;
  readonly disposition: Disposition | null;
  readonly answer_status: number | null;
  readonly answer_headers: Uint8Array | null;
  readonly answer_body: Uint8Array | null;
  /** Left out, with headers and body, of a tombstone. */
  readonly answer_digest: Uint8Array | null;
  /** How long the tombstone stands. Until then `retain_until` is the end of the answer; of a tombstone it is its own. */
  readonly tombstone_ms: number | null;
  readonly created_at: Time;
  readonly claimed_at: Time;
  readonly lease_until: Time | null;
  readonly next_look_at: Time | null;
  readonly retain_until: Time | null;
}

/** A row as it stands: what the write said, and what the store added. */
export interface StoredRow extends Row<Instant> {
  readonly attempt: number;
  readonly revision: number;
  readonly updated_at: Instant;
}

/** The row of a write, its times still as the write named them; refuses text that some database would alter. */
export function toRow(write: RecordWrite): Row<Due> {
  const { identity, fingerprint } = write;
  return {
    id: recordId(identity),
    kind: identity.kind,
    principal: exact(identity.principal, "principal"),
    identity_operation: identity.kind === "run" ? exact(identity.operation, "operation") : null,
    key: exact(identity.key, "key"),
    operation: exact(write.operation, "operation"),
    effects: write.effects,
    state: write.state,
    owner: exact(write.owner, "owner"),
    write_id: exact(write.writeId, "write id"),
    fingerprint_version: exact(fingerprint.version, "fingerprint version"),
    fingerprint_salt: fingerprint.salt,
    fingerprint_raw: fingerprint.raw,
    fingerprint_canonical: fingerprint.canonical,
    steps: encodeSteps(write.steps),
    reference: write.reference,
    correlation_id: write.correlationId === null ? null : exact(write.correlationId, "correlation id"),
    created_at: storable(write.createdAt),
    claimed_at: storable(write.claimedAt),
    ...columnsOfState(write),
  };
}

/** The row that stands once a store has kept it at `now`; for stores that learn their now before they write. */
export function stampRow(
  row: Row<Due>,
  version: { readonly attempt: number; readonly revision: number; readonly now: Instant },
): StoredRow {
  const { attempt, revision, now } = version;
  const instantOrNull = (due: Due | null) => (due === null ? null : instantOf(due, now));
  return {
    ...row,
    ...{ attempt, revision, updated_at: now },
    created_at: instantOf(row.created_at, now),
    claimed_at: instantOf(row.claimed_at, now),
    lease_until: instantOrNull(row.lease_until),
    next_look_at: instantOrNull(row.next_look_at),
    retain_until: instantOrNull(row.retain_until),
  };
}

/** The version that a write becomes once a store has kept it; the same that `fromRow` would read. */
export function stampWrite(
  write: RecordWrite,
  version: { readonly attempt: number; readonly revision: number; readonly now: Instant },
): KeyRecord {
  const { attempt, revision, now } = version;
  return stamp(storableWrite(write), { attempt, revision, updatedAt: now });
}

/** The record that a row holds; `RecordCorrupt` when we cannot have written it, or when it is not the one `asked` for. */
export function fromRow(stored: object, asked?: Identity): KeyRecord {
  const row = stored as Stored;
  const state = oneOf(row.state, "state", STATES);
  refuseColumnsOfOtherStates(row, state);
  const common = commonOf(row, asked);
  switch (state) {
    case "in_progress":
      return { ...common, state, leaseUntil: integer(row.lease_until, "lease_until") };
    case "released":
      return { ...common, state, retainUntil: integer(row.retain_until, "retain_until") };
    case "unknown":
      return { ...common, state, ...doubtOf(row) };
    case "completed":
    case "failed_permanent":
      return { ...common, state, ...outcomeOf(row) };
  }
}

/** What a driver handed back: nothing is known about its values. */
type Stored = { readonly [Column in keyof StoredRow]?: unknown };

const STATES = ["in_progress", "released", "unknown", "completed", "failed_permanent"] as const;
const EFFECTS = ["transaction", "declared", "none"] as const;
const DISPOSITIONS = ["reconcile", "review", "hold"] as const;

const NOTHING_OF_A_STATE = {
  ...{ lease_until: null, next_look_at: null, retain_until: null },
  ...{ evidence: null, looks: null, disposition: null, tombstone_ms: null },
  ...{ answer_status: null, answer_headers: null, answer_body: null, answer_digest: null },
};

const ANSWERED = ["answer_status", "answer_headers", "answer_body", "answer_digest", "retain_until"] as const;
/** Without `tombstone_ms`, which the release before leaves behind where it claims a row anew. */
const COLUMNS_OF: Readonly<Record<RecordState, readonly (keyof Stored)[]>> = {
  in_progress: ["lease_until"],
  released: ["retain_until"],
  unknown: ["evidence", "looks", "disposition", "next_look_at", "retain_until"],
  completed: ANSWERED,
  failed_permanent: ANSWERED,
};
const COLUMNS_OF_ANY: ReadonlySet<keyof Stored> = new Set(Object.values(COLUMNS_OF).flat());

function exact(value: string, name: string): string {
  if (!/\p{Surrogate}/u.test(value) && !value.includes("\0")) return value;
  const reason = "holds NUL or half of a surrogate pair, which not every database hands back unaltered";
  throw new OncekeyError("value_unsupported", `The ${name} ${reason}. Nothing was written; encode it first.`);
}

function columnsOfState(write: RecordWrite) {
  switch (write.state) {
    case "in_progress":
      return { ...NOTHING_OF_A_STATE, lease_until: storable(write.leaseUntil) };
    case "released":
      return { ...NOTHING_OF_A_STATE, retain_until: storable(write.retainUntil) };
    case "unknown": {
      const { looks, disposition, nextLookAt, retainUntil } = write;
      return {
        ...NOTHING_OF_A_STATE,
        ...{ looks, disposition, evidence: encodeEvidence(write.evidence) },
        next_look_at: nextLookAt === null ? null : storable(nextLookAt),
        retain_until: retainUntil === null ? null : storable(retainUntil),
      };
    }
    case "completed":
    case "failed_permanent": {
      const { status, headers, body, sealed } = write.answer;
      const answer_headers = encodeHeaders(headers);
      const answer_body = sealed ?? body;
      const form = sealed === undefined ? "plain" : "sealed";
      return {
        ...{ ...NOTHING_OF_A_STATE, answer_status: status, answer_headers, answer_body },
        answer_digest: answerDigest({ status, form }, answer_headers, answer_body),
        retain_until: storable(write.retainUntil),
        tombstone_ms: storableMs(write.tombstoneMs),
      };
    }
  }
}

function commonOf(row: Stored, asked: Identity | undefined) {
  const updatedAt = integer(row.updated_at, "updated_at");
  return {
    identity: identityOf(row, asked),
    operation: text(row.operation, "operation"),
    effects: oneOf(row.effects, "effects", EFFECTS),
    fingerprint: {
      version: text(row.fingerprint_version, "fingerprint_version"),
      salt: bytes(row.fingerprint_salt, "fingerprint_salt"),
      raw: bytes(row.fingerprint_raw, "fingerprint_raw"),
      canonical: bytes(row.fingerprint_canonical, "fingerprint_canonical"),
    },
    owner: text(row.owner, "owner"),
    writeId: text(row.write_id, "write_id"),
    steps: decodeSteps(bytes(row.steps, "steps"), updatedAt),
    reference: orNull(row.reference, "reference", bytes),
    correlationId: orNull(row.correlation_id, "correlation_id", text),
    createdAt: integer(row.created_at, "created_at"),
    claimedAt: integer(row.claimed_at, "claimed_at"),
    attempt: integer(row.attempt, "attempt"),
    revision: integer(row.revision, "revision"),
    updatedAt,
  };
}

function identityOf(row: Stored, asked: Identity | undefined): Identity {
  const kind = oneOf(row.kind, "kind", ["http", "run"]);
  const principal = text(row.principal, "principal");
  const key = text(row.key, "key");
  const operation = orNull(row.identity_operation, "identity_operation", text);
  if ((kind === "run") !== (operation !== null))
    throw new RecordCorrupt("identity_operation does not fit the kind");
  const identity: Identity =
    kind === "run" && operation !== null
      ? { kind, principal, operation, key }
      : { kind: "http", principal, key };
  const isAsked = asked !== undefined && identityText(asked) === identityText(identity);
  const known = isAsked ? asked : identity; // its id is known already
  if (Buffer.compare(recordId(known), bytes(row.id, "id")) !== 0)
    throw new RecordCorrupt("id is of another key");
  if (asked !== undefined && !isAsked) throw new RecordCorrupt("it is the record of another key");
  return known;
}

function refuseColumnsOfOtherStates(row: Stored, state: RecordState): void {
  for (const column of COLUMNS_OF_ANY) {
    if (row[column] !== null && !COLUMNS_OF[state].includes(column)) {
      throw new RecordCorrupt(`${column} is there in state ${state}`);
    }
  }
}

function doubtOf(row: Stored) {
  return {
    evidence: decodeEvidence(bytes(row.evidence, "evidence")),
    looks: integer(row.looks, "looks"),
    nextLookAt: orNull(row.next_look_at, "next_look_at", integer),
    disposition: oneOf(row.disposition, "disposition", DISPOSITIONS),
    retainUntil: orNull(row.retain_until, "retain_until", integer),
  };
}

function outcomeOf(row: Stored) {
  const tombstoneMs = orNull(row.tombstone_ms, "tombstone_ms", integer);
  const until = integer(row.retain_until, "retain_until");
  const isTombstone = [row.answer_headers, row.answer_body, row.answer_digest].every((part) => part === null);
  if (tombstoneMs === null || !isTombstone) return { answer: answerOf(row), retainUntil: until, tombstoneMs };
  const answer = { status: integer(row.answer_status, "answer_status"), headers: [], body: null };
  return { answer, retainUntil: until - tombstoneMs, tombstoneMs };
}

function answerOf(row: Stored): Answer {
  if (row.answer_status === null) throw new RecordCorrupt("its answer is missing");
  const status = integer(row.answer_status, "answer_status");
  const headers = bytes(row.answer_headers, "answer_headers");
  const body = orNull(row.answer_body, "answer_body", bytes);
  const digest = bytes(row.answer_digest, "answer_digest");
  const is = (form: AnswerForm) =>
    Buffer.compare(answerDigest({ status, form }, headers, body), digest) === 0;
  if (body !== null && isSealed(body) && is("sealed"))
    return { status, headers: decodeHeaders(headers), body: null, sealed: body };
  if (is("plain")) return { status, headers: decodeHeaders(headers), body };
  throw new RecordCorrupt("its answer is not the one that was kept: it was cut or altered");
}
