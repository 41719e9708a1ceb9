// A bank that does not deduplicate: BANK_URL=<of the simulator> PORT=<port> node front-bank.mjs. It hands every order on
// under a key of its own, finds a payment by any of them, and cannot cancel. It refuses what comes after the time that
// stands behind the @ of a key.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";

const { BANK_URL, PORT } = process.env;

createServer((incoming, outgoing) => {
  answerTo(incoming).then(
    async (answer) => {
      const body = Buffer.from(await answer.arrayBuffer());
      outgoing.writeHead(answer.status, { "content-type": "application/json" }).end(body);
    },
    () => incoming.socket.destroy(), // as the bank did with us
  );
}).listen(Number(PORT), "127.0.0.1", () => console.log(`a bank on http://127.0.0.1:${PORT}`));

async function answerTo(incoming) {
  const { method, headers } = incoming;
  const url = new URL(incoming.url, BANK_URL);
  if (method === "GET") return await find(url.searchParams.get("key"));
  const body = await buffer(incoming);
  const [asked, validUntil = "Infinity"] = headers["idempotency-key"].split("@");
  if (Date.now() > Number(validUntil)) return Response.json({ code: "too_late" }, { status: 409 });
  const key = `${asked}~${randomUUID()}`;
  const signal = AbortSignal.timeout(10_000); // what was ordered stays ordered when whoever ordered it is gone
  const own = { "content-type": "application/json", "idempotency-key": key };
  return await fetch(url, { method, headers: own, body, signal });
}

async function find(key) {
  const ledger = await (await fetch(`${BANK_URL}/ledger`)).json();
  const payment = ledger.find((each) => each.key.startsWith(`${key}~`));
  return payment === undefined
    ? Response.json({ code: "payment_not_found" }, { status: 404 })
    : Response.json(payment);
}
