// Runs the laws of the hosts and writes what came of each into docs/reference/host-laws.md: node scripts/host-laws.mjs
// Needs PostgreSQL, as the tests find it. A law that fails fails this, too, and the page stays as it was.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");

/** Why a law says nothing of a host, for what it needs. */
const NEEDS = {
  transactions: "a store with transactions; this host is tried on the memory store, which has none",
  "waiting transactions":
    "a store whose transactions may wait, which the ones that this host is tried on do not",
  tables: "a store with tables to be without; this host is tried on the memory store",
  "error page": "a host whose own error page headers can be added to",
  "header lines": "a host that hands on repeated header lines apart",
  "returned answers": "a host whose handlers return their answer",
  "damaged paths": "a host whose router takes paths that are no text",
};

const told = toldBy(filesWithLaws());
writeFileSync(join(root, "docs/reference/host-laws.md"), pageOf(told));

function filesWithLaws() {
  return readdirSync(join(root, "test/hosts"))
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `test/hosts/${name}`)
    .filter((path) => readFileSync(join(root, path), "utf8").match(/^holdToLaws\(/m));
}

/** What each law came to on each store of each host, from a run. */
function toldBy(files) {
  const folder = mkdtempSync(join(tmpdir(), "oncekey-host-laws-"));
  const HOST_LAWS = join(folder, "told.jsonl");
  try {
    const only = ["-t", "^(?!.*has its column)"];
    const { status } = spawnSync("npx", ["--no-install", "vitest", "run", ...files, ...only], {
      cwd: root,
      stdio: "inherit",
      env: { ...process.env, HOST_LAWS },
    });
    if (status !== 0) throw new Error("A law failed; the page is left as it was.");
    return readFileSync(HOST_LAWS, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function pageOf(told) {
  const hosts = distinct(told.map(({ host }) => host)).toSorted();
  const laws = distinct(told.map(({ at }) => at)).toSorted((one, other) => one - other);
  const rows = laws.map((at) => {
    const ofLaw = told.filter((each) => each.at === at);
    const [{ id, promise }] = ofLaw;
    return [id, promise, ...hosts.map((host) => cellOf(ofLaw.filter((each) => each.host === host)))];
  });
  const stores = hosts.map((host) => [host, storesOf(told, host).join(", ")]);
  const used = distinct(told.map(({ needs }) => needs)).filter((need) => need !== null);
  return `${[
    "# The laws of the hosts",
    "",
    "Every host is held to the same laws, on real stores and over real sockets. This page is made of a run of them by",
    "`node scripts/host-laws.mjs`; a test fails where it does not list exactly the laws and the hosts that there are.",
    "",
    "**passed**: on every store that the host is tried on and that offers what the law needs. **–**: skipped, because the law needs",
    "something that this host, or every store that it is tried on, does not have:",
    "",
    ...used.map((need) => `- _${need}_: ${NEEDS[need] ?? unexplained(need)}`),
    "",
    "Hosts that answer by Node's own response do so through the same code as `node:http`, which is tried on every store; they",
    "themselves are tried on fewer.",
    "",
    ...table([["host", "tried on"], ...stores]),
    "",
    ...table([["law", "promise", ...hosts], ...rows]),
  ].join("\n")}\n`;
}

function unexplained(need) {
  throw new Error(`A law needs "${need}", and nobody has said here why a host may lack it.`);
}

function cellOf(ofHost) {
  if (ofHost.some(({ outcome }) => outcome === "passed")) return "passed";
  return `– _${ofHost[0].needs}_`;
}

function storesOf(told, host) {
  return distinct(told.filter((each) => each.host === host).map(({ store }) => store));
}

function distinct(values) {
  return [...new Set(values)];
}

function table([head, ...body]) {
  const widths = head.map((_, column) => Math.max(...[head, ...body].map((cells) => cells[column].length)));
  const line = (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...body.map(line)];
}
