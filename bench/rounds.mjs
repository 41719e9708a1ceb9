import { checkWritten } from "./effects.mjs";
import { rowsOf } from "./ratios.mjs";

/** The first round meets cold caches and code that is not compiled yet. */
const WARM_UPS = 1;

/** Fewer have no middle. */
const LEAST_ROUNDS = 3;

/**
 * Measures every flow in turn, round by round, so that whatever slows the machine for a while slows them alike; every
 * other round backwards, so that none always follows the same one. Fails at the first round that lost an effect; begins
 * none that would end after `longestMs`. Resolves to how many rounds it measured, and the rows that came of them.
 *
 * A flow has `measures`, each a name and what it is compared with, one of which it may be laid `over`; `run`, which makes
 * the calls of these numbers and resolves to one cost for each measure; and `effects`, how many of so many calls write a
 * row. `written` resolves to the numbers of the calls, from one on, that wrote a row, and rejects where one is not whole.
 */
export async function measureRounds({ rounds, longestMs, onRound, ...subject }) {
  const { flows } = subject;
  const costs = new Map(flows.flatMap(({ measures }) => measures.map(({ name }) => [name, []])));
  const startedMs = performance.now();
  for (let made = 0; made < WARM_UPS + rounds; made += 1) {
    const counted = made - WARM_UPS;
    const spentMs = performance.now() - startedMs;
    if (counted >= LEAST_ROUNDS && spentMs + spentMs / made > longestMs)
      return { rounds: counted, rows: rowsOf(flows, costs) };
    onRound(counted + 1);
    const measured = await measureRound(subject, made % 2 === 0);
    if (counted < 0) continue;
    for (const [name, cost] of measured) costs.get(name).push(cost);
  }
  return { rounds, rows: rowsOf(flows, costs) };
}

/** Resolves to the name of each measure with its cost in this round. */
async function measureRound({ flows, calls, numbers, written, signal }, forwards) {
  const measured = [];
  const made = [];
  for (const flow of forwards ? flows : flows.toReversed()) {
    signal.throwIfAborted();
    const ids = numbers.take(calls);
    const costs = await flow.run(ids);
    made.push({ flow, ids });
    flow.measures.forEach(({ name }, place) => void measured.push([name, costs[place]]));
  }
  checkWritten(await written(made[0].ids[0]), made);
  return measured;
}
