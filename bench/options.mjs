import { parseArgs } from "node:util";

/** What `--help` prints. */
export const USAGE = `npm run bench -- [options]

  --quick               one round of few calls: looks whether all of it works, its figures mean little
  --stores a,b          of postgres, sqlite, memory; all of them where nothing is said
  --flows a,b           only flows whose name holds one of these texts, and those they are compared with;
                        overhead is every flow that is told in µs besides
  --in-flight 1,64      how many calls are under way at once, a section of the report for each
  --calls 150,512       calls of each flow in a round, for each of --in-flight or one for all
  --rounds 9            rounds, besides the first, which warms up and is not counted
  --seconds 70          for each section of the report; one that is slower makes fewer rounds, though not fewer than 3
  --database URL        a PostgreSQL of your own: the bench makes a database there and drops it again
  --json FILE           writes the figures there as well; - prints them, and the table on standard error`;

const STORES = ["postgres", "sqlite", "memory"];

/** Reads the command line; refuses what it does not understand. */
export function readOptions(given) {
  const { values } = parseArgs({
    args: given,
    options: {
      help: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      stores: { type: "string", default: STORES.join(",") },
      flows: { type: "string" },
      "in-flight": { type: "string", default: "1,64" },
      calls: { type: "string" },
      rounds: { type: "string" },
      seconds: { type: "string", default: "70" },
      database: { type: "string" },
      json: { type: "string" },
    },
  });
  const { help, quick, database, json } = values;
  const calls = values.calls ?? (quick ? "15,64" : "150,512");
  return {
    ...{ help, database, json },
    stores: namesOf(values.stores, "--stores", STORES),
    flows: values.flows === undefined ? [""] : values.flows.split(","),
    loads: loadsOf(countsOf(values["in-flight"], "--in-flight"), countsOf(calls, "--calls")),
    rounds: countOf(values.rounds ?? (quick ? "1" : "9"), "--rounds"),
    longestMs: countOf(values.seconds, "--seconds") * 1_000,
  };
}

function loadsOf(inFlights, calls) {
  if (calls.length > 1 && inFlights.length > calls.length)
    throw new Error("--calls needs one number, or one for each number of --in-flight.");
  const loads = inFlights.map((inFlight, place) => ({ inFlight, calls: calls[place] ?? calls[0] }));
  const short = loads.find(({ inFlight, calls }) => calls < inFlight);
  if (short === undefined) return loads;
  throw new Error(`${short.calls} calls are never ${short.inFlight} in flight; raise --calls.`);
}

function namesOf(text, option, known) {
  const names = text.split(",");
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return names;
  throw new Error(`${option} knows ${known.join(", ")}, and not "${unknown}".`);
}

function countsOf(text, option) {
  return text.split(",").map((part) => countOf(part, option));
}

function countOf(text, option) {
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw new Error(`${option} needs whole numbers of at least 1, and not "${text}".`);
}
