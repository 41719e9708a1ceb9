import { NotRun } from "oncekey";
import { burstsIn, inBurstsOf, inFlightOf } from "./load.mjs";
import { effect, inTransaction } from "./sqlite-domain.mjs";
import { naiveCall } from "./sqlite-naive.mjs";
import { answerOf, newKey, requestOf } from "./work.mjs";

const UNPROTECTED = "unprotected insert";
const TRANSACTION = "insert in a transaction";
const NAIVE = "naive, five statements";
const SELECT = "select by primary key";

/**
 * Every flow on SQLite with so many calls in flight. What goes past the engine is synchronous, as the drivers are: of
 * those calls one at a time is under way, whatever the number says.
 */
export function sqliteFlows({ engine, raw, replayedKey, select, inFlight }) {
  const flow = (name, against, effects, call) => ({
    measures: [{ name, against }],
    effects,
    run: async (ids) => [await inFlightOf(ids, inFlight, call)],
  });
  return [
    flow(UNPROTECTED, [], all, (call) => effect(raw, call)),
    flow(TRANSACTION, [UNPROTECTED], all, (call) => inTransaction(raw, () => effect(raw, call))),
    flow(NAIVE, [TRANSACTION, UNPROTECTED], all, (call) => naiveCall(raw, call)),
    flow("fresh", [TRANSACTION, NAIVE, UNPROTECTED], all, (call) => engineCall(engine, newKey(), call)),
    flow(SELECT, [], none, select),
    flow("replay", [SELECT], none, (call) => replayCall(engine, replayedKey, call)),
    ...(inFlight > 1 ? burstFlows(engine, inFlight) : []),
  ];
}

const all = (calls) => calls;
const none = () => 0;

/** One call through the engine. */
export function engineCall(engine, key, call) {
  return engine.runInTransaction(requestOf(key), (tx) => answerOf(effect(tx, call)));
}

async function replayCall(engine, key, call) {
  const answer = await engineCall(engine, key, call);
  if (answer.status !== "booked")
    throw new Error(`The answer that was kept came back as ${JSON.stringify(answer)}.`);
}

function burstFlows(engine, size) {
  const different = "burst: different keys";
  const burst = async (ids, calls) => [(await inBurstsOf(ids, size, calls)).ms];
  return [
    {
      measures: [{ name: different, against: [] }],
      effects: all,
      run: (ids) => burst(ids, (part) => part.map((id) => engineCall(engine, newKey(), id))),
    },
    {
      measures: [{ name: "burst: one key", against: [different] }],
      effects: (calls) => burstsIn(calls, size),
      run: (ids) => burst(ids, (part) => copies(engine, part)),
    },
  ];
}

/** Calls of one key: one of them runs, the others learn that it runs, or get its answer. */
function copies(engine, ids) {
  const key = newKey();
  return ids.map(async (id) => {
    try {
      await engineCall(engine, key, id);
    } catch (error) {
      if (!(error instanceof NotRun) || error.code !== "in_progress") throw error;
    }
  });
}
