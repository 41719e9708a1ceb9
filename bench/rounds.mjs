import { checkWritten } from "./effects.mjs";
import { rowsOf } from "./ratios.mjs";

/** The first round meets cold caches and code that is not compiled yet. */
const WARM_UPS = 1;

/**
 * Measures every flow in turn, round by round, so that whatever slows the machine for a while slows them alike; every
 * other round backwards, so that none always follows the same one. Fails at the first round that lost an effect.
 *
 * A flow has `measures`, each a name and what it is compared with; `run`, which makes the calls of these numbers and
 * resolves to one cost for each measure; and `effects`, how many of so many calls write a row. `written` resolves to
 * the numbers of the calls, from one on, that wrote a row.
 */
export async function measureRounds({ flows, rounds, calls, numbers, written, signal, onRound }) {
  const costs = new Map(flows.flatMap(({ measures }) => measures.map(({ name }) => [name, []])));
  for (let round = 1 - WARM_UPS; round <= rounds; round += 1) {
    onRound(round);
    const made = [];
    for (const flow of round % 2 === 0 ? flows : flows.toReversed()) {
      signal.throwIfAborted();
      const ids = numbers.take(calls);
      const measured = await flow.run(ids);
      made.push({ flow, ids });
      if (round > 0) flow.measures.forEach(({ name }, place) => void costs.get(name).push(measured[place]));
    }
    checkWritten(await written(made[0].ids[0]), made);
  }
  return rowsOf(flows, costs);
}
