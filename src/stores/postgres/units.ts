import type { Identity } from "../../core/record.ts";
import { ownRecordId } from "../codec.ts";
import type { TransactionalStore, UnitBounds } from "../store.ts";
import type { Ask, Connector } from "./connector.ts";
import { fenced } from "./fenced.ts";
import { inlined } from "./literal.ts";
import { type SessionBounds, transact } from "./session.ts";
import type { Tables } from "./tables.ts";
import { fencedThrough, transactThrough } from "./through.ts";
import { sayIn, type Through } from "./through-unit.ts";
import { tryClaim, verbs } from "./verbs.ts";

/** The part of a store in which units run. */
export type Units<Tx> = Pick<
  TransactionalStore<Tx, "async">,
  "transaction" | "fenced" | "within" | "recordId"
>;

/** What a caller asks for, as far as the user's own cap allows. */
export type Capped = (bounds?: UnitBounds) => UnitBounds;

/** Units on connections of the store's own. */
export function ownUnits<Tx>(connector: Connector<Tx>, tables: Tables, capped: Capped): Units<Tx> {
  const bounded = (bounds?: UnitBounds) => boundedBy(capped, bounds);
  return {
    transaction: (work, bounds) => transact(connector, bounded(bounds), work),
    fenced: (ground, work, bounds) =>
      fenced({ connector, tables }, { ground, work, bounds: bounded(bounds) }),
    within: (tx) => verbsInside(connector.inside(tx), tables, connector.schema),
    recordId: ownRecordId,
  };
}

/** Units in transactions that a layer of the user's opens. */
export function unitsThrough<Tx>(on: Through<Tx>, capped: Capped): Units<Tx> {
  return {
    transaction: (work, bounds) => transactThrough(on, boundedBy(capped, bounds), work),
    fenced: (ground, work, bounds) => fencedThrough(on, { ground, work, bounds: boundedBy(capped, bounds) }),
    within: (tx) => {
      const say = sayIn(on, tx);
      return verbsInside((statement) => say(inlined(statement)), on.tables, on.schema);
    },
    recordId: ownRecordId,
  };
}

function boundedBy(capped: Capped, bounds?: UnitBounds): SessionBounds {
  return { ...capped(bounds), longestMs: bounds === undefined ? null : bounds.idleMs + CLOSING_MS };
}

/** What the end of a transaction may take once its attempt's time is up; nobody waits for it by then. */
const CLOSING_MS = 5_000;

function verbsInside(ask: Ask, tables: Tables, schema: string | null) {
  return {
    ...verbs(ask, tables),
    tryClaim: (identity: Identity) => tryClaim(ask, schema, identity),
  };
}
