// A server that tells what memory it holds, and what it saw of a request. Forked by footprint.mjs with --expose-gc.
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { DatabaseSync } from "@photostructure/sqlite";
import { createEngine } from "oncekey";
import { protect } from "oncekey/node";
import { migrate, sqliteStore } from "oncekey/sqlite";

const [path] = process.argv.slice(2);
const connect = () => new DatabaseSync(path);
const own = connect();
await migrate(own);
own.close();
const store = sqliteStore({ connect });
const engine = createEngine({ store });
const options = { principal: () => "bench", required: false };
let most = 0;

/** Reads what it is sent as a whole, or, where it is not JSON, piece by piece without keeping any. */
const kept = protect(engine, options, async (request, response) => {
  if (request.headers["content-type"] === "application/json") {
    const { id } = JSON.parse(await text(request));
    response.setHeader("content-type", "application/json");
    return response.end(JSON.stringify({ id, note: "n".repeat(1_000) }));
  }
  const before = held();
  most = 0;
  let bytes = 0;
  for await (const piece of request) {
    bytes += piece.length;
    if (bytes % 4_194_304 < piece.length) most = Math.max(most, held() - before);
  }
  response.end(String(bytes));
});

/** What is in use once everything that is out of reach is gone. */
function held() {
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const server = createServer((request, response) => void kept(request, response));
await once(server.listen(0, "127.0.0.1"), "listening");
process.send({ port: server.address().port });
process.on("message", async () => {
  const seen = [];
  // Buffers go a turn of the loop after what they belonged to.
  for (let time = 0; time < 4; time += 1) {
    seen.push(held());
    await pause(20);
  }
  process.send({ held: Math.min(...seen), most });
});
process.once("disconnect", async () => {
  server.closeAllConnections();
  await store.close();
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
  process.exit();
});
