// A provider in a process of its own that charges each idempotency key once: PORT=<port> node till.mjs
import { createServer } from "node:http";

const charges = new Map();
const asked = [];

/** POST /charges: with `x-mood: holds` it charges and never answers, with `declines` it refuses for good. GET tells what it did. */
const server = createServer(async (request, response) => {
  const answer = (status, body) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  };
  if (request.method === "GET") return answer(200, { charges: [...charges.values()], asked });
  const parts = [];
  for await (const part of request) parts.push(part);
  const key = request.headers["idempotency-key"];
  asked.push(key);
  if (request.headers["x-mood"] === "declines") return answer(402, { code: "card_declined" });
  const { amount } = JSON.parse(Buffer.concat(parts).toString());
  if (!charges.has(key)) charges.set(key, { id: `ch_${charges.size + 1}`, amount });
  if (request.headers["x-mood"] === "holds") return;
  answer(201, charges.get(key));
});
server.listen(Number(process.env.PORT), "127.0.0.1", () =>
  console.log(`till on http://127.0.0.1:${process.env.PORT}`),
);
