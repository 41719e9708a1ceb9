// What a key costs, as ratios in one run. `npm run bench -- --help` tells what can be chosen.
import { writeFileSync } from "node:fs";
import { circumstances, loadAverage } from "./circumstances.mjs";
import { callNumbers } from "./effects.mjs";
import { openMemory } from "./memory.mjs";
import { readOptions, USAGE } from "./options.mjs";
import { openPostgres } from "./postgres.mjs";
import { tableOf } from "./report.mjs";
import { measureRounds } from "./rounds.mjs";
import { chosen } from "./selection.mjs";
import { openSqlite } from "./sqlite.mjs";

const STORES = { postgres: openPostgres, sqlite: openSqlite, memory: openMemory };

/** Measures every section that was asked for, and tells of it on standard output or in files. */
async function main(given) {
  const options = readOptions(given);
  if (options.help) return console.log(USAGE);
  const interrupted = new AbortController();
  process.once("SIGINT", () => interrupted.abort(new Error("Interrupted; nothing is reported.")));
  const run = { options, numbers: callNumbers(), signal: interrupted.signal };
  const before = loadAverage();
  const sections = [];
  for (const store of options.stores) {
    sections.push(...(await sectionsOf(STORES[store], run)));
  }
  if (sections.length === 0) throw new Error("No flow has a name that holds any of the texts of --flows.");
  publish({ ...circumstances(), loadAverage: { before, after: loadAverage() }, sections }, options);
}

/**
 * Measures one store at each number of calls in flight; its flows are compared within a section only. Those with most in
 * flight are measured first, for they make the most calls: the few calls of the others would meet code that is not
 * compiled yet. They are told last.
 */
async function sectionsOf(open, { options, numbers, signal }) {
  const subject = await open(options);
  try {
    const sections = [];
    const loads = subject.loads(options.loads).toSorted((left, right) => right.inFlight - left.inFlight);
    for (const { inFlight, calls } of loads) {
      const flows = chosen(await subject.flows(inFlight), options.flows);
      if (flows.length === 0) continue;
      const { rounds: most, longestMs } = options;
      const onRound = (round) =>
        progress(`${subject.store}, ${inFlight} in flight: round ${round} of ${most}`);
      const toMeasure = { flows, rounds: most, longestMs, calls, numbers, written: subject.written, signal };
      const { rounds, rows } = await measureRounds({ ...toMeasure, onRound });
      sections.unshift({ store: subject.store, ...subject.about, inFlight, calls, rounds, rows });
    }
    return sections;
  } finally {
    await subject.close();
  }
}

/** The table is for people and the JSON for machines; both hold the same figures. */
function publish(report, { json }) {
  const document = JSON.stringify(report, null, 2);
  if (json === "-") {
    console.error(tableOf(report));
    return console.log(document);
  }
  console.log(tableOf(report));
  if (json !== undefined) writeFileSync(json, `${document}\n`);
}

function progress(line) {
  if (process.stderr.isTTY) console.error(line);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
