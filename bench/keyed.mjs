import { ConfigurationError } from "oncekey";
import { answerOf, newKey, PREPARING, requestOf } from "./work.mjs";

/** The forms of a request that this build of Oncekey knows, each with a key whose answer is kept. */
export async function preparedForms(engine, effect) {
  const forms = [{ suffix: "", options: {} }];
  if (await knowsCommits(engine)) forms.push({ suffix: ", commits one", options: { commits: "one" } });
  return Promise.all(
    forms.map(async ({ suffix, options }) => {
      const replayedKey = newKey();
      await callUnder(engine, { options, key: replayedKey }, (tx) => effect(tx, PREPARING));
      return { suffix, options, replayedKey };
    }),
  );
}

/** One call through the engine under a new key; `effect` is given the transaction. */
export function freshCall(engine, { options }, effect) {
  return callUnder(engine, { options, key: newKey() }, effect);
}

/** Asks for the form's kept answer; the effect would be found by the count if it ran. */
export async function replayCall(engine, { options, replayedKey }, effect) {
  const answer = await callUnder(engine, { options, key: replayedKey }, effect);
  if (answer.status !== "booked")
    throw new Error(`The answer that was kept came back as ${JSON.stringify(answer)}.`);
}

/** The effect answers at once on SQLite, where a transaction must not wait, and with a promise elsewhere. */
function callUnder(engine, { options, key }, effect) {
  return engine.runInTransaction({ ...requestOf(key), ...options }, (tx) => {
    const row = effect(tx);
    return row instanceof Promise ? row.then(answerOf) : answerOf(row);
  });
}

/** A build that knows `commits` refuses what it cannot be; another one does not look at it. */
async function knowsCommits(engine) {
  try {
    await engine.runInTransaction({ ...requestOf(newKey()), commits: "neither" }, () => null);
    return false;
  } catch (error) {
    if (error instanceof ConfigurationError) return true;
    throw error;
  }
}
