// What a key costs a request on each host, in processor time of the server and beside the same route without a key.
// npm run bench:hosts -- [--quick] [--hosts Koa,Hono] [--calls 1000] [--rounds 7] [--json FILE]
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { parseArgs } from "node:util";
import { circumstances, loadAverage } from "./circumstances.mjs";
import { callNumbers } from "./effects.mjs";
import { HOSTS } from "./host-servers.mjs";
import { inFlightOf } from "./load.mjs";
import { aligned, shown } from "./report.mjs";
import { measureRounds } from "./rounds.mjs";

const CONNECTIONS = 8;

async function main(given) {
  const { hosts, calls, rounds, json } = optionsOf(given);
  const before = loadAverage();
  const sections = [];
  for (const host of hosts) sections.push({ host, ...(await measured(host, { calls, rounds })) });
  const report = { ...circumstances(), loadAverage: { before, after: loadAverage() }, calls, sections };
  console.log(tableOf(report));
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, null, 2)}\n`);
}

function optionsOf(given) {
  const text = { type: "string" };
  const options = { quick: { type: "boolean" }, hosts: text, calls: text, rounds: text, json: text };
  const { values } = parseArgs({ args: given, options });
  const known = Object.keys(HOSTS);
  const hosts = values.hosts?.split(",") ?? known;
  const unknown = hosts.find((host) => !known.includes(host));
  if (unknown !== undefined) throw new Error(`--hosts knows ${known.join(", ")}, and not "${unknown}".`);
  const [calls, rounds] = [
    ["calls", values.quick ? 100 : 1_000],
    ["rounds", values.quick ? 1 : 7],
  ].map(([name, otherwise]) => {
    const number = Number(values[name] ?? otherwise);
    if (Number.isInteger(number) && number >= 1) return number;
    throw new Error(`--${name} needs a whole number of at least 1.`);
  });
  return { hosts, calls, rounds, json: values.json };
}

/** The four ways to ask one host, in turn; each answer is looked at, for a wrong one costs nothing to compare. */
async function measured(host, { calls, rounds }) {
  const child = fork(new URL("host-process.mjs", import.meta.url), [host], {
    env: { ...process.env, NODE_ENV: "production" },
  });
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  try {
    const [{ port }] = await once(child, "message");
    const flow = (name, path, headersOf, replayed) => ({
      measures: [{ name, ...(name === BARE ? { against: [] } : { against: [BARE], over: BARE }) }],
      unit: "ms of CPU",
      effects: () => 0,
      run: async (ids) => {
        const ask = (id) => asked({ agent, port, path, id, headers: headersOf(id), replayed });
        if (replayed) await ask(ids[0]); // the first of them is no replay where the server is new
        return [await processorTime(child, ids, ask)];
      },
    });
    const flows = [
      flow(BARE, "/bare", () => ({}), false),
      flow("fresh", "/kept", () => ({ "idempotency-key": randomUUID() }), false),
      flow("replay", "/kept", () => ({ "idempotency-key": "replayed" }), true),
      flow("without a key, behind the mount", "/mounted", () => ({}), false),
    ];
    const subject = {
      flows,
      rounds,
      calls,
      longestMs: 120_000,
      numbers: callNumbers(),
      written: async () => [],
    };
    return await measureRounds({ ...subject, signal: new AbortController().signal, onRound: () => {} });
  } finally {
    agent.destroy();
    child.disconnect();
  }
}

const BARE = "bare";

/** Milliseconds of the server's processor time for each call. */
async function processorTime(child, ids, ask) {
  const before = await cpuUsOf(child);
  await inFlightOf(ids, CONNECTIONS, ask);
  return ((await cpuUsOf(child)) - before) / 1_000 / ids.length;
}

async function cpuUsOf(child) {
  child.send("cpu");
  const [{ cpuUs }] = await once(child, "message");
  return cpuUs;
}

/** One POST of a kilobyte of JSON; a replay is always of the same one. */
async function asked({ agent, port, path, id, headers, replayed }) {
  const body = JSON.stringify({ id: replayed ? 0 : id, amount: "12.50", reference: "r".repeat(960) });
  const type = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const sent = request({
    agent,
    port,
    path,
    host: "127.0.0.1",
    method: "POST",
    headers: { ...type, ...headers },
  });
  sent.end(body);
  const [answer] = await once(sent, "response");
  answer.resume();
  await once(answer, "end");
  if (answer.statusCode !== 201) throw new Error(`${path} answered ${answer.statusCode}.`);
  if (path === "/kept" && !replayed && answer.headers["idempotent-replayed"] !== undefined)
    throw new Error(`${path} answered a fresh request with a replay.`);
}

function tableOf({ node, oncekey, platform, cpus, cpuModel, loadAverage, takenAt, calls, sections }) {
  const lines = sections.flatMap(({ host, rows }) =>
    rows.map(({ name, cost, ratios, overhead }) => [
      name === BARE ? host : "",
      name,
      shown(inUs(cost)),
      overhead === undefined ? "" : shown(overhead),
      ratios.length === 0 ? "" : shown(ratios[0]),
    ]),
  );
  return [
    `Node ${node}, oncekey ${oncekey}, ${platform}, ${cpus} × ${cpuModel}`,
    `Load average ${loadAverage.before} before and ${loadAverage.after} after; taken at ${takenAt}`,
    `Processor time of the server for a POST of 1 KB of JSON, ${CONNECTIONS} connections, ${calls} calls of each in a round;`,
    "medians over the rounds, with the least and the greatest. The ratio is bare to this: 0.5 takes twice as much.",
    "",
    ...aligned([
      ["host", "request", "µs of CPU", "more than bare, µs, ON THIS MACHINE ONLY", "ratio"],
      ...lines,
    ]),
  ].join("\n");
}

const inUs = ({ median, min, max }) => ({ median: median * 1_000, min: min * 1_000, max: max * 1_000 });

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
