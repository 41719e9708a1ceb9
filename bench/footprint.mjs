// That memory stays flat under many requests with keys, and that one without a key costs no copy of its body.
// npm run bench:footprint -- [--requests 10000] [--kilobytes 100] [--megabytes 50]
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { parseArgs } from "node:util";
import { circumstances } from "./circumstances.mjs";
import { callNumbers } from "./effects.mjs";
import { inFlightOf } from "./load.mjs";

const CONNECTIONS = 4;
/** Code is compiled, caches and connections are as large as they get. */
const WARM_UPS = 300;
const PORTIONS = 5;
/** However many requests there are: less than a hundredth of what ten thousand bodies of 100 KB are. */
const MOST_BYTES_GROWN = 8 * 1_048_576;
/** What is on its way between a socket and a reader, with room to spare; a copy would be all of it. */
const MOST_BYTES_A_STREAM = 8 * 1_048_576;

async function main(given) {
  const { requests, kilobytes, megabytes } = optionsOf(given);
  const folder = mkdtempSync(join(tmpdir(), "oncekey-footprint-"));
  const child = fork(new URL("footprint-process.mjs", import.meta.url), [join(folder, "records.db")], {
    execArgv: ["--expose-gc"],
  });
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  try {
    const [{ port }] = await once(child, "message");
    const to = { agent, port, host: "127.0.0.1", method: "POST", path: "/" };
    const keyed = await footprintOfKeyed(child, to, { requests, kilobytes });
    const keyless = await footprintOfKeyless(child, to, megabytes);
    console.log(
      JSON.stringify({ ...circumstances(), requests, kilobytes, megabytes, ...keyed, ...keyless }, null, 2),
    );
    refuse({ ...keyed, ...keyless });
  } finally {
    agent.destroy();
    const gone = once(child, "exit");
    child.disconnect();
    await gone;
    rmSync(folder, { recursive: true, force: true });
  }
}

function optionsOf(given) {
  const text = { type: "string" };
  const { values } = parseArgs({
    args: given,
    options: { requests: text, kilobytes: text, megabytes: text },
  });
  const defaults = { requests: 10_000, kilobytes: 100, megabytes: 50 };
  return Object.fromEntries(
    Object.entries(defaults).map(([name, otherwise]) => {
      const number = Number(values[name] ?? otherwise);
      if (Number.isInteger(number) && number >= 1) return [name, number];
      throw new Error(`--${name} needs a whole number of at least 1.`);
    }),
  );
}

/** Every request has a key of its own, and every tenth is sent twice. */
async function footprintOfKeyed(child, to, { requests, kilobytes }) {
  const numbers = callNumbers();
  const note = "r".repeat(kilobytes * 1_000);
  const call = async (id) => {
    const sent = { body: JSON.stringify({ id, note }), type: "application/json", key: randomUUID() };
    const first = await asked(to, sent);
    if (id % 10 === 0 && (await asked(to, sent)) !== first) throw new Error("A copy got another answer.");
  };
  await inFlightOf(numbers.take(WARM_UPS), CONNECTIONS, call);
  const heldBytes = [(await toldBy(child)).held];
  for (let portion = 0; portion < PORTIONS; portion += 1) {
    await inFlightOf(numbers.take(Math.ceil(requests / PORTIONS)), CONNECTIONS, call);
    heldBytes.push((await toldBy(child)).held);
  }
  const grownBytes = heldBytes.at(-1) - heldBytes[0];
  return { heldBytes, grownBytes, bytesARequest: Math.round(grownBytes / requests) };
}

async function footprintOfKeyless(child, to, megabytes) {
  const piece = Buffer.alloc(65_536, "x");
  const pieces = Array.from({ length: megabytes * 16 }, () => piece);
  const answer = await asked(to, { body: Readable.from(pieces), type: "application/octet-stream" });
  if (answer !== String(pieces.length * piece.length)) throw new Error(`The handler read ${answer} bytes.`);
  return { mostBytesInAStream: (await toldBy(child)).most };
}

async function toldBy(child) {
  child.send("held");
  const [told] = await once(child, "message");
  return told;
}

async function asked(to, { body, type, key }) {
  const headers = { "content-type": type, ...(key === undefined ? {} : { "idempotency-key": key }) };
  const sent = request({ ...to, headers });
  if (typeof body === "string") sent.end(body);
  else body.pipe(sent);
  const [answer] = await once(sent, "response");
  const text = (await answer.toArray()).join("");
  if (answer.statusCode !== 200) throw new Error(`It answered ${answer.statusCode}: ${text}`);
  return text;
}

function refuse({ grownBytes, mostBytesInAStream }) {
  if (grownBytes > MOST_BYTES_GROWN) throw new Error(`Memory grew by ${grownBytes} bytes.`);
  if (mostBytesInAStream > MOST_BYTES_A_STREAM)
    throw new Error(`A request without a key held ${mostBytesInAStream} bytes of its body.`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
