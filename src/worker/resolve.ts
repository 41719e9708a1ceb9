import { seize } from "../core/override.ts";
import { keepOf } from "../core/policy.ts";
import type { Answer, Identity, InProgress, KeyRecord, RecordWrite, Unknown } from "../core/record.ts";
import { holdsSealed } from "../core/sealed.ts";
import { conclude, release as released, seen } from "../core/transition.ts";
import { type AnswerInit, toAnswer } from "../engine/answer.ts";
import { codec } from "../engine/codec.ts";
import { read, replace, type TransactionFlow } from "../engine/command.ts";
import type { Context } from "../engine/context.ts";
import { type Held, type Written, writeFlow } from "../engine/ending.ts";
import type { Engine } from "../engine/engine.ts";
import { type Budget, persist } from "../engine/retry.ts";
import type { Settler } from "../engine/settler.ts";
import { abandonFlow, finishFlow } from "../engine/settling.ts";
import { ConfigurationError } from "../errors.ts";
import type { Settling } from "../stores/store.ts";

/** What a person found out about an effect in doubt. */
export type PersonsVerdict =
  /** It happened; every copy of the request gets this answer. An operation's own rows are left as they are. */
  | { readonly kind: "completed"; readonly answer: AnswerInit }
  /** It was refused, and had no effect; every copy gets this answer (4xx). */
  | { readonly kind: "failed"; readonly answer: AnswerInit }
  /** Nothing happened, and nothing will: the same key may run again. */
  | { readonly kind: "not_happened" }
  /** It happened, and this is what the provider says: the operation finishes with it, rows and answer. */
  | { readonly kind: "found"; readonly result: unknown };

/** Who decides, and why; both are kept in the log. */
export interface Deciding {
  readonly actor: string;
  readonly reason: string;
}

/** What a person's verdict came to. */
export type Resolved =
  | { readonly kind: "resolved"; readonly record: KeyRecord }
  | { readonly kind: "absent" }
  /** Its attempt is alive: only it knows. */
  | { readonly kind: "running"; readonly record: InProgress; readonly leaseLeftMs: number }
  /** It has ended already, or somebody else was quicker: this is what stands. */
  | { readonly kind: "ended"; readonly record: KeyRecord }
  /** A request or a worker has taken it over meanwhile. */
  | { readonly kind: "taken"; readonly record: KeyRecord | null }
  /** The operation's rows could not be finished; the result is kept, and the reconciler finishes. */
  | { readonly kind: "kept_for_later"; readonly record: KeyRecord }
  /** Its rows are the operation's to finish, or to abandon, which this engine does not know. */
  | { readonly kind: "operation_unknown"; readonly record: KeyRecord }
  /** The same, and what the operation needs for it is sealed by a key that this process has not. */
  | { readonly kind: "sealed"; readonly record: KeyRecord };

/**
 * Ends an effect in doubt by a person's word. It may race the request, a late result and the reconciler: each move is a
 * compare-and-set, one wins, and the other learns what stands. The log is written before and after.
 */
export async function resolve<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  identity: Identity,
  verdict: PersonsVerdict,
  deciding: Deciding,
): Promise<Resolved> {
  refuseUnreasoned(deciding);
  const answer = answerIn(verdict);
  const result = verdict.kind === "found" ? codec<unknown>("the result").encode(verdict.result) : null;
  const { context, settlers, store } = engine;
  const looked = await context.driver.drive(persist(budgetOf(context), () => read(identity)));
  const standing = undecided(looked.record, looked.now);
  if ("kind" in standing) return standing;
  const settler = settlers.get(standing.operation) ?? null;
  if (needsOperation(verdict, standing)) {
    if (settler === null) return { kind: "operation_unknown", record: standing };
    if (holdsSealed(standing)) return { kind: "sealed", record: standing };
  }
  const act = { identity, action: `resolve ${verdict.kind}`, before: standing.state, ...deciding };
  await store.audit({ ...act, after: null });
  const person = { context, settler, verdict, answer, result, reason: deciding.reason };
  const resolved = await context.driver.drive(resolveFlow(person, standing));
  if (resolved.kind !== "resolved") return resolved;
  await store.audit({ ...act, after: resolved.record.state });
  const { operation, attempt, state: to } = resolved.record;
  const move = { operation, identity, attempt, from: standing.state, to, reason: deciding.reason };
  context.emit({ type: "transition", by: "person", ...move });
  return resolved;
}

/** Its own rows are finished, or marked as abandoned, by nobody else. */
function needsOperation({ kind }: PersonsVerdict, { reference }: Held): boolean {
  return kind === "found" || (kind === "not_happened" && reference !== null);
}

interface Person<Tx> {
  readonly context: Context<Tx>;
  readonly settler: Settler<Tx> | null;
  readonly verdict: PersonsVerdict;
  /** Of a verdict that says one. */
  readonly answer: Answer | null;
  readonly result: Uint8Array | null;
  readonly reason: string;
}

function refuseUnreasoned({ actor, reason }: Deciding): void {
  if (typeof actor !== "string" || actor.trim() === "")
    throw new ConfigurationError("actor", "must say who decides");
  if (typeof reason !== "string" || reason.trim() === "")
    throw new ConfigurationError("reason", "must say why: it is kept in the log");
}

function answerIn(verdict: PersonsVerdict): Answer | null {
  if (verdict.kind === "found" || verdict.kind === "not_happened") return null;
  const answer = toAnswer(verdict.answer);
  const refusal = answer.status >= 400 && answer.status < 500;
  if (verdict.kind === "failed" && !refusal)
    throw new ConfigurationError(
      "answer",
      `of a refusal must have a status of 400 to 499; got ${answer.status}`,
    );
  if (answer.status >= 500)
    throw new ConfigurationError(
      "answer",
      `cannot be kept with a status of 500 or above; got ${answer.status}`,
    );
  return answer;
}

/** What a person may decide about, or why not. */
export function undecided(
  record: KeyRecord | null,
  now: number,
): Held | Exclude<Resolved, { kind: "resolved" }> {
  if (record === null) return { kind: "absent" };
  switch (record.state) {
    case "completed":
    case "failed_permanent":
    case "released":
      return { kind: "ended", record };
    case "in_progress":
      return record.leaseUntil > now
        ? { kind: "running", record, leaseLeftMs: record.leaseUntil - now }
        : record;
    case "unknown":
      return record;
  }
}

/** So often somebody may be quicker before the person is told. */
const ROUNDS = 3;

function* resolveFlow<Tx>(person: Person<Tx>, standing: Held): TransactionFlow<Resolved, Tx> {
  const { context, reason } = person;
  const { runtime, policy } = context;
  let current = standing;
  for (let round = 0; round < ROUNDS; round++) {
    const change = { writeId: runtime.newId(), owner: runtime.newId(), leaseMs: policy.leaseMs, reason };
    const write = seize(current, change);
    const taken = yield* persist(budgetOf(context), () => replace(seen(current), write, "wait"));
    if (taken.kind === "replaced" && taken.record.state === "unknown")
      return yield* endedBy(person, taken.record);
    const stands = undecided(taken.record, taken.now);
    if ("kind" in stands) return stands;
    current = stands;
  }
  return { kind: "taken", record: current };
}

function* endedBy<Tx>(person: Person<Tx>, record: Unknown): TransactionFlow<Resolved, Tx> {
  const written = yield* verdictFlow(person, record);
  const stands = written.record;
  if (written.kind === "written") {
    if (written.record.state === "unknown") return { kind: "kept_for_later", record: written.record };
    return { kind: "resolved", record: written.record };
  }
  if (stands === null || stands.state === "in_progress" || stands.state === "unknown")
    return { kind: "taken", record: stands };
  return { kind: "ended", record: stands };
}

function* verdictFlow<Tx>(person: Person<Tx>, record: Unknown): TransactionFlow<Written, Tx> {
  const { context, settler, verdict, answer, result } = person;
  const { runtime, policy } = context;
  const write = (next: (held: Held) => RecordWrite) => writeFlow(record, next, budgetOf(context));
  switch (verdict.kind) {
    case "completed":
    case "failed": {
      if (answer === null) throw new Error("A verdict with an answer has one.");
      const state = verdict.kind === "completed" ? "completed" : "failed_permanent";
      const change = { state, answer, keep: keepOf(policy) } as const;
      return yield* write((held) => conclude(held, { ...change, writeId: runtime.newId() }));
    }
    case "not_happened": {
      if (settler !== null && record.reference !== null)
        return yield* abandonFlow(context, settler, record, "not_found");
      const retainMs = policy.releasedRetentionMs;
      return yield* write((held) => released(held, { writeId: runtime.newId(), retainMs }));
    }
    case "found": {
      if (settler === null || result === null)
        throw new Error("Only a known operation finishes, with a result.");
      return yield* finishFlow(context, settler, record, { result });
    }
  }
}

function budgetOf<Tx>({ runtime, policy }: Context<Tx>): Budget {
  return { untilMs: runtime.monotonicMs() + 5 * policy.storeTimeoutMs, tries: Number.POSITIVE_INFINITY };
}
