import { inFlightOf } from "./load.mjs";
import { burstFlows } from "./postgres-bursts.mjs";
import { effect, inTransaction } from "./postgres-domain.mjs";
import { freshCall, replayCall } from "./postgres-engine.mjs";
import { naiveCall } from "./postgres-naive.mjs";

const UNPROTECTED = "unprotected insert";
const TRANSACTION = "insert in a transaction";
const NAIVE = "naive, five statements";
const SELECT = "select by primary key";

/** Every flow on PostgreSQL with so many calls in flight. */
export function postgresFlows({ engine, pool, forms, select, inFlight }) {
  const flow = (name, against, effects, call) => ({
    measures: [{ name, against }],
    effects,
    run: async (ids) => [await inFlightOf(ids, inFlight, call)],
  });
  return [
    flow(UNPROTECTED, [], all, (call) => effect(pool, call)),
    flow(TRANSACTION, [UNPROTECTED], all, (call) => inTransaction(pool, (client) => effect(client, call))),
    flow(NAIVE, [TRANSACTION, UNPROTECTED], all, (call) => naiveCall(pool, call)),
    ...forms.map(({ suffix, options }) =>
      flow(`fresh${suffix}`, [TRANSACTION, NAIVE, UNPROTECTED], all, (call) =>
        freshCall(engine, { options }, call),
      ),
    ),
    flow(SELECT, [], none, select),
    ...forms.map((form) =>
      flow(`replay${form.suffix}`, [SELECT], none, (call) => replayCall(engine, form, call)),
    ),
    ...(inFlight > 1 ? burstFlows({ engine, forms, select, size: inFlight }) : []),
  ];
}

const all = (calls) => calls;
const none = () => 0;
