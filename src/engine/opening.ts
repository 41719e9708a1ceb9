import type { InProgress } from "../core/record.ts";
import { claim, refer, seen } from "../core/transition.ts";
import { StoreUnavailable } from "../errors.ts";
import type { Awaitable, UnitEnd } from "../stores/store.ts";
import {
  type Asked,
  type Claimed,
  changedHands,
  found,
  locked,
  type Moved,
  ROUNDS,
  react,
  whileBusy,
} from "./claim.ts";
import {
  call,
  insert,
  read,
  replace,
  type TransactionFlow,
  transaction,
  tryClaim,
  type Unit,
} from "./command.ts";
import { type Budget, persist } from "./retry.ts";

/** What opening an operation needs beside the claim. */
export interface Opening<Tx> {
  readonly asked: Asked;
  /** Writes the domain's pending row and returns the encoded reference. */
  readonly open: (tx: Tx, record: InProgress) => Awaitable<Uint8Array>;
  readonly withinMs: number;
}

type Attempted =
  | Claimed
  /** Another transaction is claiming this key just now: nobody waits for it. */
  | { readonly kind: "busy" }
  /** The record changed under our hands; look again. */
  | { readonly kind: "again" };

/**
 * Claims the key, writes the open mark and the domain's pending row in one commit. A duplicate is answered by a look
 * first; the claim itself rests on the insert. When the commit's reply is lost the same opening is asked for again and
 * finds its own claim.
 */
export function* openingFlow<Tx>(opening: Opening<Tx>, budget: Budget): TransactionFlow<Claimed, Tx> {
  const { asked } = opening;
  for (let round = 0; round < ROUNDS; round++) {
    const looked = yield* persist(budget, () => read(asked.claim.identity));
    if (looked.record !== null) {
      const reaction = react(asked, { record: looked.record, now: looked.now });
      if (reaction.kind !== "write") return { ...reaction, moved: [] };
    }
    let unheard: StoreUnavailable | null = null;
    const onUnheard = (error: StoreUnavailable) => {
      unheard = error;
    };
    const attempted = yield* persist(budget, () => heard(opening, onUnheard));
    if (attempted.kind === "claimed") return attempted;
    // What is in the way may be our own transaction, whose reply was lost: then nobody would run under its claim.
    const inTheWay =
      attempted.kind === "busy" || (attempted.kind === "final" && attempted.decision.kind === "in_progress");
    if (inTheWay && unheard !== null) throw unheard;
    if (attempted.kind === "final") return attempted;
    if (attempted.kind === "busy")
      return { kind: "final", decision: yield* whileBusy(asked, budget), moved: [] };
  }
  throw changedHands();
}

function* heard<Tx>(
  opening: Opening<Tx>,
  onUnheard: (error: StoreUnavailable) => void,
): TransactionFlow<Attempted, Tx> {
  try {
    return yield* transaction(opening.withinMs, (tx: Tx) => claimAndOpen(tx, opening));
  } catch (error) {
    if (error instanceof StoreUnavailable) onUnheard(error);
    throw error;
  }
}

function* claimAndOpen<Tx>(tx: Tx, { asked, open }: Opening<Tx>): Unit<UnitEnd<Attempted>> {
  const { identity } = asked.claim;
  if (!(yield* tryClaim(identity))) return { kind: "rollback", value: { kind: "busy" } };
  const standing = yield* insert(claim(asked.claim));
  let reaction = react(asked, standing);
  if (reaction.kind === "claimed" && !standing.inserted) {
    return { kind: "rollback", value: { ...reaction, moved: [] } }; // our own commit, whose reply was lost
  }
  const moved: Moved[] = [];
  while (reaction.kind === "write") {
    const { record, write } = reaction;
    const replaced = yield* replace(seen(record), write, "never");
    if (replaced.kind === "locked")
      return { kind: "rollback", value: { kind: "final", decision: locked(replaced.record), moved: [] } };
    const stands = found(replaced);
    if (replaced.kind !== "replaced" || stands === null)
      return { kind: "rollback", value: { kind: "again" } };
    moved.push({ from: record.state, to: replaced.record });
    reaction = react(asked, stands);
  }
  if (reaction.kind === "final") return { kind: "commit", value: { ...reaction, moved } };
  const { record } = reaction;
  const reference = yield* call(`open ${record.operation}`, () => open(tx, record));
  const referred = yield* replace(seen(record), refer(record, { writeId: asked.newId(), reference }), "wait");
  if (referred.kind !== "replaced" || referred.record.state !== "in_progress") {
    return { kind: "rollback", value: { kind: "again" } };
  }
  return { kind: "commit", value: { kind: "claimed", record: referred.record, moved } };
}
