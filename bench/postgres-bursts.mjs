import { NotRun } from "oncekey";
import { freshCall } from "./keyed.mjs";
import { burstsIn, inBurstsOf, timed } from "./load.mjs";
import { smallest } from "./postgres-domain.mjs";
import { median } from "./ratios.mjs";
import { answerOf, newKey, requestOf } from "./work.mjs";

/** Flows of so many calls at once: of one key, of as many different ones, and of plain reads. */
export function burstFlows({ engine, forms, select, size }) {
  return [readBursts(select, size), ...forms.flatMap((form) => burstsOf(engine, form, size))];
}

const READ = "burst: the median answer of a select";

function readBursts(select, size) {
  return {
    measures: [{ name: READ, against: [] }],
    effects: () => 0,
    run: async (ids) => {
      const { results } = await inBurstsOf(ids, size, (burst) => burst.map(() => timed(select())));
      return [median(results)];
    },
  };
}

function burstsOf(engine, { suffix, options }, size) {
  const different = `burst: different keys${suffix}`;
  const one = `burst: one key${suffix}`;
  return [
    {
      measures: [{ name: different, against: [] }],
      effects: (calls) => calls,
      run: async (ids) => {
        const call = (id) => freshCall(engine, { options }, (tx) => smallest(tx, id));
        return [(await inBurstsOf(ids, size, (burst) => burst.map(call))).ms];
      },
    },
    {
      measures: [
        { name: one, against: [different] },
        { name: `burst: the median answer of a loser${suffix}`, against: [READ] },
      ],
      effects: (calls) => burstsIn(calls, size),
      run: async (ids) => {
        const { ms, results } = await inBurstsOf(ids, size, (burst) => copies(engine, options, burst));
        const losses = results.filter((lossMs) => lossMs !== null);
        const winners = results.length - losses.length;
        if (winners !== burstsIn(ids.length, size))
          throw new Error(`${winners} calls ran, of one key in each burst.`);
        return [ms, median(losses)];
      },
    },
  ];
}

/** Calls of one key; each resolves to how long it took to learn that another one runs, or to null for the one that ran. */
function copies(engine, options, ids) {
  const request = { ...requestOf(newKey()), ...options };
  const others = answers(ids.length - 1);
  return ids.map(async (id) => {
    const startedMs = performance.now();
    try {
      await engine.runInTransaction(request, async (tx) => {
        const answer = answerOf(await smallest(tx, id));
        await others.all; // so that every other one meets it running, and none of them a finished one
        return answer;
      });
      return null;
    } catch (error) {
      if (error instanceof NotRun && error.code === "in_progress") return performance.now() - startedMs;
      throw error;
    } finally {
      others.one();
    }
  });
}

/** Resolves `all` once `one` was called so many times; rejects when that takes so long that they must be waiting for us. */
function answers(count) {
  let left = count;
  let resolve;
  let reject;
  const all = new Promise((resolved, rejected) => {
    resolve = resolved;
    reject = rejected;
  });
  all.catch(() => {}); // heard by the one that runs
  const timer = setTimeout(
    () => reject(new Error("Copies of a call waited for the one that ran.")),
    LONGEST_WAIT_MS,
  );
  const one = () => {
    left -= 1;
    if (left > 0) return;
    clearTimeout(timer);
    resolve();
  };
  if (count === 0) one();
  return { all, one };
}

const LONGEST_WAIT_MS = 10_000;
