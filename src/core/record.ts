/** Milliseconds since the Unix epoch, read off the store's clock and never off ours. */
export type Instant = number;

/** An instant as a write names it: `inMs` from the store's now, or one that the store gave before. */
export type Due = { readonly inMs: number } | { readonly at: Instant };

/** Whose key, for what: over HTTP the pair (principal, key), in `run` the operation belongs to it. They never meet. */
export type Identity =
  | { readonly kind: "http"; readonly principal: string; readonly key: string }
  | { readonly kind: "run"; readonly principal: string; readonly operation: string; readonly key: string };

/** Where the programmer said that effects are; `none` means that nothing was said. */
export type Effects = "transaction" | "declared" | "none";

/** A salted hash of the request: of its bytes, and of its value when the mode compares values. */
export interface Fingerprint {
  readonly version: string;
  readonly salt: Uint8Array;
  readonly raw: Uint8Array;
  /** 32 bytes; what follows them tells the members of the value apart, where a mismatch is to be explained by them. */
  readonly canonical: Uint8Array;
}

/** What a provider offers decides what its silence means (see the state machine page of the docs). */
export type ProviderKind = "repeatable" | "keyed" | "query" | "blind";

interface Mark<Time> {
  readonly provider: ProviderKind;
  /** Of the downstream key; moves on only when the previous one is proved dead. */
  readonly generation: number;
  readonly openedAt: Time;
  /** How long the provider deduplicates by our key (`repeatable`). */
  readonly keyTtlMs: number | null;
  /** After this the provider refuses the request (`query`); anchored on the claim's instant. */
  readonly validUntil: Time | null;
}

/** One external effect of an attempt: open before the call starts, and what became of it. */
export type StepOf<Time> =
  | (Mark<Time> & { readonly state: "open" })
  | (Mark<Time> & { readonly state: "finished" | "refused"; readonly result: Uint8Array })
  /** Proved not to have happened under any earlier generation. */
  | { readonly state: "clear"; readonly generation: number };

export type Step = StepOf<Instant>;

/** A kept answer. A `null` body was not kept: the work is done, its answer cannot be repeated. */
export interface Answer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array | null;
  /** The body, encrypted, in the place of a `body`: to whoever has not its key it was not kept. */
  readonly sealed?: Uint8Array;
}

/** Who ends an `unknown`: the reconciler, a person, or nobody until its retention ends. */
export type Disposition = "reconcile" | "review" | "hold";

/** Why an outcome is unknown, and what the provider said as far as it was heard. */
export interface Evidence {
  readonly reason: string;
  readonly result: Uint8Array | null;
}

interface Common<Time> {
  readonly identity: Identity;
  readonly operation: string;
  readonly effects: Effects;
  readonly fingerprint: Fingerprint;
  /** One execution under one claim; its id never repeats. */
  readonly owner: string;
  /** Names the write that made this version, so that a repeat of it can be recognised. */
  readonly writeId: string;
  readonly steps: ReadonlyMap<string, StepOf<Time>>;
  /** What `open` of an operation returned, encoded. */
  readonly reference: Uint8Array | null;
  readonly correlationId: string | null;
  readonly createdAt: Time;
  /** Of this attempt. */
  readonly claimedAt: Time;
}

type InProgressOf<Time> = Common<Time> & { readonly state: "in_progress"; readonly leaseUntil: Time };

type ReleasedOf<Time> = Common<Time> & { readonly state: "released"; readonly retainUntil: Time };

type UnknownOf<Time> = Common<Time> & {
  readonly state: "unknown";
  readonly evidence: Evidence;
  /** Answered looks of the reconciler; an unreachable provider spends none. */
  readonly looks: number;
  readonly nextLookAt: Time | null;
  readonly disposition: Disposition;
  /** Only a held one ends by time. */
  readonly retainUntil: Time | null;
};

interface Finished<Time> {
  /** Of a tombstone the status alone. */
  readonly answer: Answer;
  /** How long the answer is kept. */
  readonly retainUntil: Time;
  /** For how long after that a copy is still told that its key was used; `null` where not at all. */
  readonly tombstoneMs: number | null;
}

type CompletedOf<Time> = Common<Time> & Finished<Time> & { readonly state: "completed" };

type FailedPermanentOf<Time> = Common<Time> & Finished<Time> & { readonly state: "failed_permanent" };

type RecordOf<Time> =
  | InProgressOf<Time>
  | ReleasedOf<Time>
  | UnknownOf<Time>
  | CompletedOf<Time>
  | FailedPermanentOf<Time>;

interface Version {
  /** The fencing token: grows with every takeover, never repeats for an identity. */
  readonly attempt: number;
  /** Grows by one with every write of this row. */
  readonly revision: number;
  readonly updatedAt: Instant;
}

export type InProgress = InProgressOf<Instant> & Version;
export type Released = ReleasedOf<Instant> & Version;
export type Unknown = UnknownOf<Instant> & Version;
export type Completed = CompletedOf<Instant> & Version;
export type FailedPermanent = FailedPermanentOf<Instant> & Version;

/** What is kept for one identity. */
export type KeyRecord = InProgress | Released | Unknown | Completed | FailedPermanent;

export type RecordState = KeyRecord["state"];

/** True once the outcome is on record for good. */
export function isConcluded<R extends { readonly state: RecordState }>(
  record: R,
): record is R & { readonly state: "completed" | "failed_permanent" } {
  return record.state === "completed" || record.state === "failed_permanent";
}

/** What a store is asked to keep: the whole next version; the store adds the revision and its own now. */
export type RecordWrite = RecordOf<Due> & {
  /** `next` asks the store for a number that was never given before. */
  readonly attempt: number | "next";
};

/** What a compare-and-set compares: a renewed lease keeps its owner, so the owner alone is not enough. */
export interface Seen {
  readonly identity: Identity;
  readonly owner: string;
  readonly revision: number;
}

/** The version that `write` becomes when a store keeps it at `now`. */
export function stamp(write: RecordWrite, version: Version): KeyRecord {
  const { updatedAt } = version;
  const common = commonOf(write, version);
  switch (write.state) {
    case "in_progress":
      return Object.assign(common, {
        state: write.state,
        leaseUntil: instantOf(write.leaseUntil, updatedAt),
      });
    case "released":
      return Object.assign(common, {
        state: write.state,
        retainUntil: instantOf(write.retainUntil, updatedAt),
      });
    case "completed":
    case "failed_permanent":
      return Object.assign(common, {
        state: write.state,
        answer: write.answer,
        retainUntil: instantOf(write.retainUntil, updatedAt),
        tombstoneMs: write.tombstoneMs,
      });
    case "unknown":
      return Object.assign(common, {
        state: write.state,
        evidence: write.evidence,
        looks: write.looks,
        disposition: write.disposition,
        nextLookAt: write.nextLookAt && instantOf(write.nextLookAt, updatedAt),
        retainUntil: write.retainUntil && instantOf(write.retainUntil, updatedAt),
      });
  }
}

/** Every request comes through here, so that the members are named one by one: see `kept` of the transitions. */
function commonOf(write: RecordWrite, { attempt, revision, updatedAt }: Version) {
  return {
    identity: write.identity,
    operation: write.operation,
    effects: write.effects,
    fingerprint: write.fingerprint,
    owner: write.owner,
    writeId: write.writeId,
    reference: write.reference,
    correlationId: write.correlationId,
    attempt,
    revision,
    updatedAt,
    steps: stampSteps(write.steps, updatedAt),
    createdAt: instantOf(write.createdAt, updatedAt),
    claimedAt: instantOf(write.claimedAt, updatedAt),
  };
}

/** The instant that a time means in a write at `now`. */
export function instantOf(due: Due, now: Instant): Instant {
  return "at" in due ? due.at : now + due.inMs;
}

function stampSteps(steps: ReadonlyMap<string, StepOf<Due>>, now: Instant): ReadonlyMap<string, Step> {
  return new Map([...steps].map(([name, step]) => [name, stampStep(step, now)] as const));
}

function stampStep(step: StepOf<Due>, now: Instant): Step {
  if (step.state === "clear") return step;
  const validUntil = step.validUntil === null ? null : instantOf(step.validUntil, now);
  return { ...step, openedAt: instantOf(step.openedAt, now), validUntil };
}
