import { steadyFlows } from "./flows.mjs";
import { burstFlows } from "./postgres-bursts.mjs";
import { inTransaction, smallest } from "./postgres-domain.mjs";
import { naiveCall } from "./postgres-naive.mjs";
import { transfer } from "./postgres-transfer.mjs";

/** Every flow on PostgreSQL with so many calls in flight. */
export function postgresFlows({ engine, pool, forms, select, inFlight }) {
  const ways = {
    unprotected: (effect, call) => effect(pool, call),
    bare: (effect, call) => inTransaction(pool, (client) => effect(client, call)),
    naive: (effect, call) => naiveCall(pool, (client) => effect(client, call)),
    select,
  };
  return [
    ...steadyFlows({ engine, inFlight, forms, ways, effects: { smallest, transfer } }),
    ...(inFlight > 1 ? burstFlows({ engine, forms, select, size: inFlight }) : []),
  ];
}
