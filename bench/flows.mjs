import { freshCall, replayCall } from "./keyed.mjs";
import { inFlightOf } from "./load.mjs";

const UNPROTECTED = "unprotected insert";
const TRANSACTION = "insert in a transaction";
const NAIVE = "naive, five statements";
const SELECT = "select by primary key";
const TRANSFER = "transfer in a transaction";

/**
 * The flows that every store has, with so many calls in flight. `ways` says how a store makes a call past the engine:
 * `unprotected`, `bare` and `naive` with an effect, `select` without. `effects` are the store's own `smallest` and
 * `transfer`.
 */
export function steadyFlows({ engine, inFlight, forms, ways, effects }) {
  const { unprotected, bare, naive, select } = ways;
  const { smallest, transfer } = effects;
  const flow = (name, { against = [], over, writes = all }, call) => ({
    measures: [{ name, against, over }],
    effects: writes,
    run: async (ids) => [await inFlightOf(ids, inFlight, call)],
  });
  const fresh = (form, effect) => (call) => freshCall(engine, form, (tx) => effect(tx, call));
  const replay = (form) => (call) => replayCall(engine, form, (tx) => smallest(tx, call));
  const overSmallest = { over: TRANSACTION, against: [TRANSACTION, NAIVE, UNPROTECTED] };
  const overTransfer = { over: TRANSFER, against: [TRANSFER] };
  const overSelect = { over: SELECT, against: [SELECT], writes: none };
  return [
    flow(UNPROTECTED, {}, (call) => unprotected(smallest, call)),
    flow(TRANSACTION, { against: [UNPROTECTED] }, (call) => bare(smallest, call)),
    flow(NAIVE, { over: TRANSACTION, against: [TRANSACTION, UNPROTECTED] }, (call) => naive(smallest, call)),
    ...forms.map((form) => flow(`fresh${form.suffix}`, overSmallest, fresh(form, smallest))),
    flow(TRANSFER, {}, (call) => bare(transfer, call)),
    flow("transfer, naive", overTransfer, (call) => naive(transfer, call)),
    ...forms.map((form) => flow(`transfer, fresh${form.suffix}`, overTransfer, fresh(form, transfer))),
    flow(SELECT, { writes: none }, select),
    ...forms.map((form) => flow(`replay${form.suffix}`, overSelect, replay(form))),
  ];
}

const all = (calls) => calls;
const none = () => 0;
