import type { Keep } from "../core/policy.ts";
import { isConcluded, type KeyRecord, type RecordWrite } from "../core/record.ts";
import { claim, concludeClaim, seen, takeOver } from "../core/transition.ts";
import { StoreUnavailable } from "../errors.ts";
import type { Awaitable, Fenced, FencedEnd, Replaced } from "../stores/store.ts";
import {
  type Asked,
  changedHands,
  type Final,
  found,
  locked,
  type Moved,
  patiently,
  type Reaction,
  ROUNDS,
  react,
  renewed,
  whileBusy,
} from "./claim.ts";
import { call, fencedUntil, replace, type TransactionFlow, type Unit } from "./command.ts";
import { type Budget, persist } from "./retry.ts";
import type { Worked } from "./transaction.ts";

/** How a claim inside the effect's own transaction ended. */
export type OneCommit<T> =
  | { readonly kind: "committed"; readonly record: KeyRecord; readonly value: T | null }
  | { readonly kind: "undone"; readonly value: T }
  /** An earlier commit of the same attempt stands, which nobody had heard of. */
  | { readonly kind: "lost"; readonly record: KeyRecord }
  /** The key was not this request's to run. */
  | { readonly kind: "answered"; readonly answered: Final };

/** What is to be committed together with its own claim. */
export interface Claiming<Tx, T> {
  readonly asked: Asked;
  readonly run: (tx: Tx, number: number) => Awaitable<Worked<T>>;
  /** Names this commit, whichever of its tries is applied, among those of its attempt. */
  readonly writeId: string;
  readonly keep: Keep;
  /** On our own monotonic clock. */
  readonly untilMs: number;
  /** Called when a try was not heard of: it may still be applied, whatever becomes of those after it. */
  readonly onUnheard: () => void;
}

/** The end, and the records that were moved on the way. */
export interface OneCommitted<T> {
  readonly end: OneCommit<T>;
  readonly moved: readonly Moved[];
}

/** The version that a unit may take the place of, `null` where there is none, and the claim that it makes. */
interface Place {
  readonly standing: KeyRecord | null;
  readonly claimed: () => RecordWrite;
}

/**
 * Claims, runs and concludes in one commit. Nobody is waited for: who meets another claim, or a record that stands, is
 * answered. What decides is the write at the end; where its reply was lost the unit is asked for again, and finds its own
 * committed record.
 */
export function* oneCommitFlow<Tx, T>(
  claiming: Claiming<Tx, T>,
  budget: () => Budget,
): TransactionFlow<OneCommitted<T>, Tx> {
  const moved: Moved[] = [];
  const end = yield* committedOn<Tx, T>(claiming, budget, moved);
  return { end, moved };
}

function* committedOn<Tx, T>(
  claiming: Claiming<Tx, T>,
  budget: () => Budget,
  moved: Moved[],
): TransactionFlow<OneCommit<T>, Tx> {
  const { asked } = claiming;
  let place: Place = { standing: null, claimed: () => claim(asked.claim) };
  for (let round = 0; round < ROUNDS; round++) {
    const on = place;
    const hearing: Hearing = { onUnheard: claiming.onUnheard, unheard: null };
    const end = yield* persist(
      budget,
      (): TransactionFlow<Fenced<Worked<T>>, Tx> => heard(tryOn<Tx, T>(claiming, on), hearing),
    );
    switch (end.kind) {
      case "committed":
        moved.push(...takenOver(on, end.record));
        return { kind: "committed", record: end.record, value: end.value.value };
      case "rolled_back":
        return { kind: "undone", value: end.value.value };
      case "busy":
        return { kind: "answered", answered: yield* whileBusy(asked, budget) };
      case "refused": {
        const met = yield* meet(claiming, { ...end, kind: "stale" }, budget, moved);
        if (met.kind === "committed") moved.push(...takenOver(on, met.record));
        if (met.kind !== "place") return met;
        place = met.place;
      }
    }
  }
  throw changedHands();
}

function takenOver({ standing }: Place, record: KeyRecord): readonly Moved[] {
  return standing === null ? [] : [{ from: standing.state, to: record }];
}

function tryOn<Tx, T>(claiming: Claiming<Tx, T>, { standing, claimed }: Place) {
  const { identity } = claiming.asked.claim;
  const ground = { kind: "claimable", identity, seen: standing === null ? null : seen(standing) } as const;
  return fencedUntil(claiming.untilMs, ground, (tx: Tx, number) =>
    claimingUnit(claiming, claimed, tx, number),
  );
}

function* claimingUnit<Tx, T>(
  { asked, run, writeId, keep }: Claiming<Tx, T>,
  claimed: () => RecordWrite,
  tx: Tx,
  number: number | null,
): Unit<FencedEnd<Worked<T>>> {
  if (number === null) throw new Error("A store gave a claim no number.");
  const worked = yield* call(asked.claim.operation, () => run(tx, number));
  if (worked.kind === "undo") return { kind: "rollback", value: worked };
  const { state, answer } = worked;
  const change = { writeId, state, attempt: number, answer, keep };
  return { kind: "commit", write: concludeClaim(claimed(), change), value: worked };
}

/** What the tries of one place share. */
interface Hearing {
  readonly onUnheard: () => void;
  unheard: StoreUnavailable | null;
}

/** What is in the way of a repeat may be its own first copy, whose reply was lost: then it is not heard yet. */
function* heard<C, T>(
  attempt: Generator<C, Fenced<T>, void>,
  hearing: Hearing,
): Generator<C, Fenced<T>, void> {
  try {
    const end = yield* attempt;
    if (end.kind === "busy" && hearing.unheard !== null) throw hearing.unheard;
    return end;
  } catch (error) {
    if (error instanceof StoreUnavailable) {
      hearing.unheard = error;
      hearing.onUnheard();
    }
    throw error;
  }
}

type Met = Exclude<OneCommit<never>, { kind: "undone" }> | { readonly kind: "place"; readonly place: Place };

/** What follows from the record that stood in the way. */
function* meet<Tx, T>(
  { asked, writeId }: Claiming<Tx, T>,
  met: Extract<Replaced, { kind: "stale" }>,
  budget: () => Budget,
  moved: Moved[],
): TransactionFlow<Met, Tx> {
  let standing = found(met);
  for (let round = 0; standing !== null; round++) {
    if (round >= ROUNDS) throw changedHands();
    const { record } = standing;
    if (record.owner === asked.claim.owner && isConcluded(record))
      return record.writeId === writeId
        ? { kind: "committed", record, value: null }
        : { kind: "lost", record };
    const reaction: Reaction = react(asked, standing);
    if (reaction.kind === "final") return { kind: "answered", answered: reaction.decision };
    // A claim of our own stands where one was made to keep a late commit out, and could not be let go of.
    const write = reaction.kind === "claimed" ? takeOver(reaction.record, renewed(asked)) : reaction.write;
    if (write.state === "in_progress")
      return { kind: "place", place: { standing: record, claimed: () => write } };
    const replaced: Replaced = yield* persist(
      budget,
      patiently((patience) => replace(seen(record), write, patience)),
    );
    if (replaced.kind === "locked") return { kind: "answered", answered: locked(replaced.record) };
    if (replaced.kind === "replaced") moved.push({ from: record.state, to: replaced.record });
    standing = found(replaced);
  }
  return { kind: "place", place: { standing: null, claimed: () => claim(asked.claim) } };
}
