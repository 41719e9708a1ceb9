// Checks models/claim.pml: every sound configuration to its end, every careless one until a trail is found. Prints what was
// explored, and compares it with the table in models/README.md; `--write` writes that table.
import { execFile, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { MUTANTS, NEVER, SOUND } from "./model-runs.mjs";
import { tables } from "./model-tables.mjs";

const root = dirname(import.meta.dirname);
const run = promisify(execFile);
const AT_ONCE = 2;
/** Deeper than any path; pan says so when it is not, and that fails the run. */
const DEEPEST = 10_000;

const version = versionOfSpin();
if (version === null) {
  console.log(
    "The model was not checked: it needs spin and gcc (Debian: apt-get install spin gcc libc6-dev).",
  );
  process.exit(process.env["CI"] === "true" ? 1 : 0);
}
const home = mkdtempSync(join(tmpdir(), "oncekey-model-"));
try {
  process.exitCode = await check();
} finally {
  rmSync(home, { recursive: true, force: true });
}

function versionOfSpin() {
  const [spin, gcc] = [spawnSync("spin", ["-V"]), spawnSync("gcc", ["--version"])];
  if (spin.status !== 0 || gcc.status !== 0) return null;
  return /\d+\.\d+\.\d+/.exec(String(spin.stdout))?.[0] ?? "of an unknown version";
}

async function check() {
  const startedMs = performance.now();
  const jobs = [
    ...SOUND.map((bounds) => ({ name: "sound", mutant: null, bounds })),
    ...MUTANTS.map(({ mutant, bounds, what }) => ({ name: what, mutant, bounds })),
  ];
  const found = await inLanes(jobs, explored);
  const sound = found.filter(({ mutant }) => mutant === null);
  const faults = [...found.flatMap(faultsOf), ...neverReached(sound)];
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  const states = sound.reduce((sum, one) => sum + one.states, 0);
  console.log(`spin ${version}: ${states} states in ${sound.length} sound configurations, all to the end;`);
  console.log(`${found.length - sound.length} mutants; ${seconds} s.`);
  faults.push(...tables({ root, found, version, write: process.argv.includes("--write") }));
  for (const fault of faults) console.error(`failed: ${fault}`);
  return faults.length === 0 ? 0 : 1;
}

async function inLanes(jobs, work) {
  const results = new Array(jobs.length);
  let next = 0;
  const lane = async () => {
    for (let index = next++; index < jobs.length; index = next++)
      results[index] = await work(jobs[index], index);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return results;
}

/** What pan says of one configuration. */
async function explored(job, index) {
  const cwd = join(home, String(index));
  mkdirSync(cwd);
  cpSync(join(root, "models"), cwd, { recursive: true });
  const startedMs = performance.now();
  await run("spin", [...defined(job), "-a", "claim.pml"], { cwd });
  // What ends at a first trail is over sooner than an optimiser.
  const optimised = job.mutant === null ? "-O1" : "-O0";
  await run("gcc", [optimised, "-w", "-DSAFETY", "-o", "pan", "pan.c"], { cwd });
  const { stdout } = await run("./pan", ["-E", `-m${DEEPEST}`, "-w22"], { cwd, maxBuffer: 1 << 26 });
  const seconds = (performance.now() - startedMs) / 1_000;
  const result = { ...job, ...readFrom(stdout), seconds };
  console.log(lineOf(result));
  return result;
}

function defined({ mutant, bounds }) {
  const names = Object.entries(bounds).map(([name, value]) => `-D${name}=${value}`);
  return mutant === null ? names : [...names, `-D${mutant}`];
}

function readFrom(output) {
  const number = (pattern) => Number(pattern.exec(output)?.[1] ?? Number.NaN);
  return {
    states: number(/^\s*(\d+) states, stored/m),
    depth: number(/depth reached (\d+)/),
    errors: number(/errors: (\d+)/),
    broken: /assertion violated (.*) \(at depth/.exec(output)?.[1] ?? null,
    cut: /Search not completed|max search depth too small|out of memory|truncated/.test(output),
    unreached: unreachedIn(output),
  };
}

/** Statements that no path came to, as pan lists them: process, line and text. */
function unreachedIn(output) {
  const unreached = new Set();
  let process = "";
  for (const line of output.split("\n")) {
    process = /^unreached in (?:proctype |)(\S+)/.exec(line)?.[1] ?? process;
    const [, place, text] = /^\t(\S+:\d+), state \d+, "(.*)"$/.exec(line) ?? [];
    if (place !== undefined) unreached.add(`${process} ${place} ${text}`);
  }
  return unreached;
}

function lineOf({ mutant, bounds, states, depth, errors, seconds, broken }) {
  const what = Object.entries(bounds).map(([name, value]) => `${name}=${value}`);
  const end =
    mutant === null ? (errors === 0 ? "holds" : `BROKEN: ${broken}`) : errors > 0 ? "trail" : "NO TRAIL";
  return `${[mutant ?? "sound", ...what].join(" ")}: ${end}; ${states} states, depth ${depth}, ${seconds.toFixed(1)} s`;
}

function faultsOf(one) {
  const what = lineOf(one);
  // A bound of the model that is met shows no broken promise.
  const shown = one.errors > 0 && one.broken !== null && !/token<|gen<|mine</.test(one.broken);
  if (one.mutant !== null) return shown ? [] : [what];
  if (one.errors !== 0) return [what];
  return one.cut || !(one.states > 0) ? [`not explored to the end: ${what}`] : [];
}

/** Every statement of the model must be reached in one of its sound configurations, but where NEVER says why not. */
function neverReached(sound) {
  const [first, ...others] = sound.map(({ unreached }) => unreached);
  if (first === undefined) return ["there is no sound configuration"];
  const never = [...first].filter((statement) => others.every((unreached) => unreached.has(statement)));
  return never
    .filter((statement) => !isExplained(statement))
    .map((statement) => `never reached: ${statement}`);
}

function isExplained(statement) {
  return statement.includes("-end-") || NEVER.some(([pattern]) => pattern.test(statement));
}
