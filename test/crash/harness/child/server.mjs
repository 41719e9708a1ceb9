// One process: DATABASE_URL=<url> BANK_URL=<url> FRONT_URL=<url> PORT=<port> SEED=<n> MUTANT=<name> ROLE=server|worker
// SETTINGS=<json> node server.mjs. Says so once it answers.
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { createEngine, purge, reconcile, sweep } from "oncekey";
import { protect } from "oncekey/hono";
import { openDatabase, sweeping } from "./database.mjs";
import { arm, isArmed, reached } from "./failpoints.mjs";
import { mutants } from "./mutants.mjs";
import { purchases } from "./purchase.mjs";
import { fractionsFrom, nowMs, serving, tell, tellEvent, tellRun } from "./telling.mjs";
import { openBank, payments, transfer } from "./work.mjs";

const { DATABASE_URL, BANK_URL, FRONT_URL, PORT, SEED, MUTANT, ROLE, SETTINGS } = process.env;
const settings = JSON.parse(SETTINGS);
const mutant = mutants[MUTANT];
const chance = fractionsFrom(Number(SEED));
const { store: sound, run } = await openDatabase(DATABASE_URL, {
  storeTimeoutMs: settings.engine.storeTimeout,
});
const store = mutant.store?.(sound) ?? sound;
const engine = createEngine({ store, namespace: "harness", ...settings.engine, listeners: [tellEvent] });
const principal = (c) => c.req.header("authorization").slice("Bearer ".length);

const app = new Hono();
app.post("*", async (_c, next) => {
  reached("before claim");
  await next();
});
for (const [path, commits] of Object.entries({ transfer: "two", one: "one" })) {
  const options = { principal, effects: "transaction", commits };
  const handle = protect(engine, options, async (c, attempt) => {
    const whose = { principal: principal(c), key: c.req.header("idempotency-key") };
    const body = await c.req.json();
    // With one commit this code may run for a duplicate, too.
    if (commits === "two") tellRun(whose, attempt.number);
    return await attempt.transaction((tx) => run(tx, transfer({ ...whose, attempt: attempt.number, body })));
  });
  app.post(`/${path}`, handle);
}
const inputOf = async (c) => ({
  principal: principal(c),
  key: c.req.header("idempotency-key"),
  body: await c.req.json(),
});
for (const provider of ["keyed", "query", "blind"]) {
  const bankUrl = provider === "keyed" ? BANK_URL : FRONT_URL;
  const bank = openBank({ bankUrl, provider, mutant, chance, settings });
  const pay = payments(engine, { bank, provider, run });
  app.post(`/${provider}`, protect(engine, { principal }, pay.route(inputOf)));
}
const { steps, handle } = purchases({ bankUrl: BANK_URL, frontUrl: FRONT_URL, mutant, chance, settings });
const declared = { principal, operation: "POST /declared", effects: "declared", steps };
app.post("/declared", protect(engine, declared, handle(inputOf)));
app.onError((error, c) => {
  tell({ kind: "failure", what: c.req.path, error: String(error) });
  return c.text("Internal Server Error", 500);
});
app.put("/points", async (c) => {
  arm(await c.req.json());
  return c.body(null, 204);
});

const listener = getRequestListener(app.fetch);
createServer((incoming, outgoing) => {
  if (incoming.method === "POST") watchAnswer(outgoing);
  serving.run({ arrivedMs: nowMs() }, () => listener(incoming, outgoing));
}).listen(Number(PORT), "127.0.0.1", () => {
  console.log(`${ROLE} on http://127.0.0.1:${PORT}, by whose clock it is ${Date.now()}`);
});

for (const [tick, everyMs] of Object.entries(settings.ticks)) repeat(tick, everyMs);

/** Worker ticks, as often as only a test would have them. */
async function repeat(tick, everyMs) {
  const ticks = { sweep: (on) => sweeping(() => (mutant.sweep ?? sweep)(on)), reconcile, purge };
  for (;;) {
    await sleep(everyMs);
    await ticks[tick](engine).catch((error) => tell({ kind: "failure", what: tick, error: String(error) }));
  }
}

/** Points at which an answer has half left, and has left whole. */
function watchAnswer(outgoing) {
  const { end } = outgoing;
  outgoing.end = function (chunk, ...rest) {
    if (!isArmed("answer half written") || chunk === undefined || chunk.length < 2)
      return end.call(this, chunk, ...rest);
    this.write(chunk.slice(0, chunk.length / 2), () => reached("answer half written"));
    return this;
  };
  outgoing.once("finish", () => reached("answer written"));
}
