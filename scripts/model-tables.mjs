// The tables of models/README.md, made from what was explored.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const BEGIN = "<!-- explored: npm run models -- --write -->";
const END = "<!-- explored, end -->";
const VERSION = /Counted with spin (\S+)\./;

/** Writes the tables, or says what in them is not so. Another version of spin counts other states. */
export function tables({ root, found, version, write }) {
  const path = join(root, "models", "README.md");
  const text = readFileSync(path, "utf8");
  const [before, rest = ""] = text.split(BEGIN);
  const [stands = "", after = ""] = rest.split(END);
  const made = `\n\n${textOf(found, version)}\n\n`;
  if (write) {
    writeFileSync(path, `${before}${BEGIN}${made}${END}${after}`);
    return [];
  }
  if (VERSION.exec(stands)?.[1] !== version || counted(stands) === counted(made)) return [];
  return ["models/README.md says other numbers: npm run models -- --write"];
}

/** Times differ from run to run. */
function counted(text) {
  return text.replace(/\s+\d+\.\d s\s+/g, " ").replace(/ +|-{3,}/g, " ");
}

function textOf(found, version) {
  const sound = found.filter(({ mutant }) => mutant === null);
  const careless = found.filter(({ mutant }) => mutant !== null);
  const first = sound.map((one) => [boundsOf(one), one.states, one.depth, `${one.seconds.toFixed(1)} s`]);
  const second = careless.map((one) => {
    return [one.name, `\`${one.mutant}\``, boundsOf(one), promiseIn(one.broken ?? ""), one.states];
  });
  return [
    `Counted with spin ${version}. The time is of one configuration, its compilation included, with another one beside it.`,
    tableOf(["sound configuration", "states", "depth", "time"], first),
    "Each mutant breaks a promise, and pan leaves a trail of it:",
    tableOf(["mutant", "name", "where", "shows as", "states until then"], second),
  ].join("\n\n");
}

/** Which promise an assertion of the model is of. */
const PROMISES = [
  [/executions<=1/, "S2"],
  [/effects<=1/, "S1"],
  [/lapse/, "S11"],
  [/told==/, "S3"],
  [/fp==body/, "S5"],
  [/flightGen.*==3\)/, "a dead key is used"],
  [/writer==|^ *!/, "S6"],
  [/reached/, "L2"],
  [/disposition==2/, "L1"],
  [/st!=/, "S8"],
  [/st==4/, "S7"],
];

function promiseIn(broken) {
  return PROMISES.find(([pattern]) => pattern.test(broken))?.[1] ?? broken;
}

function boundsOf({ bounds }) {
  const { CLASS, STEPS, CLIENTS = 2, FAULTS, RECONCILERS = 1, ...others } = bounds;
  const more = Object.entries(others).map(([name, value]) => `${name.toLowerCase()} ${value}`);
  const kind = STEPS === 1 ? `${CLASS}, declared steps` : CLASS;
  return [kind, `${CLIENTS} clients`, `${FAULTS} faults`, `${RECONCILERS} reconcilers`, ...more].join(", ");
}

function tableOf(heads, rows) {
  const cells = [heads, heads.map(() => "---"), ...rows];
  return cells.map((row) => `| ${row.join(" | ")} |`).join("\n");
}
