// One server process: FORM=<form> DATABASE_URL=<url> PORT=<port> node server.mjs. Says so once it answers.
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { createEngine, sweep } from "oncekey";
import { protect } from "oncekey/hono";
import { forms } from "./forms.mjs";

const { FORM, DATABASE_URL, PORT } = process.env;
const { store, insert, route = {} } = await forms[FORM](DATABASE_URL);

/** Short enough that what a killed process left is judged within the test, long enough for a machine that is busy. */
const times = { requestTimeout: "3s", lease: "4s", sweepGrace: "200ms" };
const engine = createEngine({ store, ...times, listeners: [tellFailure] });

const app = new Hono();
app.post(
  "/effects",
  protect(engine, { ...route, principal: () => "alice", effects: "transaction" }, async (c, attempt) => {
    const { note } = await c.req.json();
    const key = c.req.header("idempotency-key");
    const answer = (id) => ({ status: 201, json: { id: String(id) } });
    return attempt.transaction((tx) => {
      const inserted = insert(tx, { key, attempt: attempt.number, note });
      return inserted instanceof Promise ? inserted.then(answer) : answer(inserted);
    });
  }),
);

createServer(getRequestListener(app.fetch)).listen(Number(PORT), "127.0.0.1", () => {
  console.log(`${FORM} on http://127.0.0.1:${PORT}`);
});

for (;;) {
  await sleep(200);
  await sweep(engine).catch((error) => tellFailure({ type: "failure", what: "sweeping", error }));
}

function tellFailure(event) {
  if (event.type === "failure") console.log(`While ${event.what}: ${event.error}`);
}
