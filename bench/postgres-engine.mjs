import { effect } from "./postgres-domain.mjs";
import { answerOf, newKey, PREPARING, requestOf } from "./work.mjs";

/** The forms of a request that this build of Oncekey knows, each with a key whose answer is kept. */
export async function preparedForms(engine) {
  const forms = [{ suffix: "", options: {} }];
  if (await commitsOne(engine)) forms.push({ suffix: ", commits one", options: { commits: "one" } });
  return Promise.all(
    forms.map(async (form) => {
      const replayed = { ...form, key: newKey() };
      await freshCall(engine, replayed, PREPARING);
      return replayed;
    }),
  );
}

/** One call through the engine: under the form's key where it has one, else under a new one. */
export function freshCall(engine, { options, key = newKey() }, call) {
  return engine.runInTransaction({ ...requestOf(key), ...options }, async (tx) =>
    answerOf(await effect(tx, call)),
  );
}

/** Asks the form's key again; the effect would be found by the count if it ran. */
export async function replayCall(engine, form, call) {
  const answer = await freshCall(engine, form, call);
  if (answer.status !== "booked")
    throw new Error(`The answer that was kept came back as ${JSON.stringify(answer)}.`);
}

/** With `commits: "one"` nobody sees a record while the work runs; a build that does not know it has committed a claim. */
async function commitsOne(engine) {
  const request = requestOf(newKey());
  const { operation, principal, key } = request;
  const { record } = await engine.runInTransaction({ ...request, commits: "one" }, async () => {
    const seen = await engine.store.read({ kind: "run", principal, operation, key });
    return { record: seen.record === null ? "hidden" : "seen" };
  });
  return record === "hidden";
}
