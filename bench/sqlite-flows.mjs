import { steadyFlows } from "./flows.mjs";
import { burstFlows } from "./sqlite-bursts.mjs";
import { inTransaction, smallest } from "./sqlite-domain.mjs";
import { naiveCall } from "./sqlite-naive.mjs";
import { transfer } from "./sqlite-transfer.mjs";

/**
 * Every flow on SQLite with so many calls in flight. What goes past the engine is synchronous, as the drivers are: of
 * those calls one at a time is under way, whatever the number says.
 */
export function sqliteFlows({ engine, raw, forms, select, inFlight }) {
  const ways = {
    unprotected: (effect, call) => effect(raw, call),
    bare: (effect, call) => inTransaction(raw, () => effect(raw, call)),
    naive: (effect, call) => naiveCall(raw, () => effect(raw, call)),
    select,
  };
  return [
    ...steadyFlows({ engine, inFlight, forms, ways, effects: { smallest, transfer } }),
    ...(inFlight > 1 ? forms.flatMap((form) => burstFlows(engine, form, inFlight)) : []),
  ];
}
