import { createEngine } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { inFlightOf } from "./load.mjs";
import { answerOf, newKey, requestOf } from "./work.mjs";

/**
 * The engine with a store that costs next to nothing: what is left is its own work. Processor time and no ratio, so it
 * compares two builds on one machine, and nothing else.
 */
export async function openMemory() {
  const effects = [];
  const flow = (name, effectsOf, keyed) => ({
    measures: [{ name, against: [] }],
    unit: "µs of CPU",
    effects: effectsOf,
    run: async (ids) => [await processorTime(effects, ids, keyed)],
  });
  return {
    store: "memory",
    about: { database: "memory", driver: "none", notes: "the engine alone, by `run`: no ratio" },
    loads: () => [{ inFlight: 1, calls: CALLS }],
    flows: () => [
      flow("engine alone: fresh", (calls) => calls, newKey),
      flow(
        "engine alone: replay",
        (calls) => Math.min(1, calls),
        () => "replayed",
      ),
    ],
    written: async (first) => effects.filter((id) => id >= first),
    close: async () => {},
  };
}

/** Enough for the clock of the processor, which counts in steps. */
const CALLS = 2_000;

/** Microseconds for each call, of all threads of this process; in a store of its own, so that no round finds it fuller. */
async function processorTime(effects, ids, keyOf) {
  const engine = createEngine({ store: memoryStore(), allowMemoryStore: true });
  const before = process.cpuUsage();
  await inFlightOf(ids, 1, (id) =>
    engine.run(requestOf(keyOf(id)), () => {
      effects.push(id);
      return answerOf(id);
    }),
  );
  const { user, system } = process.cpuUsage(before);
  return (user + system) / ids.length;
}
