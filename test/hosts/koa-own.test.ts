import Koa, { type Context } from "koa";
import { afterAll, test } from "vitest";
import { NotPerformed } from "../../src/errors.ts";
import { protect } from "../../src/http/koa.ts";
import { engineOf, principal } from "./hono-app.ts";
import { listening } from "./hosts.ts";
import { assertReplay, keyed, problemOf } from "./laws/said.ts";
import { send, type WireAnswer } from "./wire.ts";

const open: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of open) await close();
});

async function served(handler: (context: Context) => unknown): Promise<() => Promise<WireAnswer>> {
  const app = new Koa();
  app.use(protect(engineOf().engine, { principal }, handler));
  const { port, close } = await listening(app.listen(0, "127.0.0.1"));
  open.push(close);
  return () => send(port, { target: "/charges", ...keyed("k") });
}

test("a handler that meant to answer by ctx.res, and did nothing instead, is answered for", async () => {
  const ask = await served((context: Context) => {
    context.respond = false;
    throw new NotPerformed("The bank was closed.");
  });
  problemOf(await ask(), "not_performed", { retryAfter: true });
});

test("a copy repeats an empty header value too", async () => {
  const ask = await served((context: Context) => {
    context.set("X-List", ["", "2"]);
    context.body = "made";
  });
  const first = await ask();
  assertReplay(first, await ask());
});
