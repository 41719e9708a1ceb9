import { NotRun } from "oncekey";
import { freshCall } from "./keyed.mjs";
import { burstsIn, inBurstsOf } from "./load.mjs";
import { smallest } from "./sqlite-domain.mjs";
import { answerOf, newKey, requestOf } from "./work.mjs";

/** Flows of so many calls at once: of one key, and of as many different ones. */
export function burstFlows(engine, { suffix, options }, size) {
  const different = `burst: different keys${suffix}`;
  const burst = async (ids, calls) => [(await inBurstsOf(ids, size, calls)).ms];
  const call = (id) => freshCall(engine, { options }, (tx) => smallest(tx, id));
  return [
    {
      measures: [{ name: different, against: [] }],
      effects: (calls) => calls,
      run: (ids) => burst(ids, (part) => part.map(call)),
    },
    {
      measures: [{ name: `burst: one key${suffix}`, against: [different] }],
      effects: (calls) => burstsIn(calls, size),
      run: (ids) => burst(ids, (part) => copies(engine, options, part)),
    },
  ];
}

/** Calls of one key: one of them runs, the others learn that it runs, or get its answer. */
function copies(engine, options, ids) {
  const request = { ...requestOf(newKey()), ...options };
  return ids.map(async (id) => {
    try {
      await engine.runInTransaction(request, (tx) => answerOf(smallest(tx, id)));
    } catch (error) {
      if (!(error instanceof NotRun) || error.code !== "in_progress") throw error;
    }
  });
}
