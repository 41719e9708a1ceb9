// A server with one declared effect that kills itself at a point: FORM DATABASE_URL PORT TILL_URL DIES_AT node declared-server.mjs
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { createEngine } from "oncekey";
import { protect } from "oncekey/hono";
import { forms } from "./forms.mjs";

const { FORM, DATABASE_URL, PORT, TILL_URL, DIES_AT } = process.env;
const { store } = await forms[FORM](DATABASE_URL);

/** Short enough that what a killed process left is taken over within the test. */
const engine = createEngine({ store: dyingOnceKept(store), requestTimeout: "3s", lease: "4s" });

const app = new Hono();
app.post(
  "/orders",
  protect(engine, { principal: () => "alice", effects: "declared" }, async (c, { effect }) => {
    const { amount } = await c.req.json();
    dieAt("before the mark");
    const charge = await effect("charge", { provider: "repeatable", keyTtl: "24h" }, async (key) => {
      dieAt("after the mark, before the call");
      const mood = DIES_AT === "after the provider has committed, before it replies" ? "holds" : "answers";
      const made = await chargedUnder(key, { amount }, mood);
      dieAt("after the reply, before the result is kept");
      return made;
    });
    dieAt("after the result is kept, before the answer is kept");
    return c.json({ charge: charge.id }, 201);
  }),
);

/** Three effects, one after the other. */
app.post(
  "/carts",
  protect(engine, { principal: () => "alice", effects: "declared" }, async (c, { effect }) => {
    const made = [];
    for (const step of ["charge", "order", "enqueue"]) {
      const call = async (key) => (await chargedUnder(key, { amount: made.length })).id;
      made.push(await effect(step, { provider: "blind" }, call));
      dieAt(`after ${step}`);
    }
    return c.json({ made }, 201);
  }),
);

async function chargedUnder(key, charge, mood = "answers") {
  const headers = { "idempotency-key": key, "x-mood": mood };
  const reply = await fetch(TILL_URL, { method: "POST", headers, body: JSON.stringify(charge) });
  return await reply.json();
}

createServer(getRequestListener(app.fetch)).listen(Number(PORT), "127.0.0.1", () => {
  console.log(`${FORM} on http://127.0.0.1:${PORT}`);
});

function dyingOnceKept(real) {
  const replace = async (seen, write, patience) => {
    const replaced = await real.replace(seen, write, patience);
    if (write.state === "completed") dieAt("after the answer is kept, before it is sent");
    return replaced;
  };
  return { ...real, replace };
}

function dieAt(point) {
  if (point !== DIES_AT) return;
  process.kill(process.pid, "SIGKILL");
  for (;;); // the signal is on its way
}
