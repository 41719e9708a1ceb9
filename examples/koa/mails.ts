import { text } from "node:stream/consumers";
import Koa, { type Context } from "koa";
import type { Engine, Settling } from "oncekey";
import { protect } from "oncekey/koa";

/**
 * An app that sends a mail once, however often its request comes. Until `effectsBegin` nothing has happened, and the same
 * key may try again; what breaks off later is `outcome_unknown`, and nothing is sent a second time.
 */
export function createApp<Tx, Settles extends Settling>({ engine, tokens, send }: Parts<Tx, Settles>): Koa {
  const callerOf = (context: Context) => tokens.get(context.get("authorization").slice("Bearer ".length));
  const app = new Koa();
  app.use(async (context, next) => {
    if (callerOf(context) === undefined) context.throw(401);
    await next();
  });
  app.use(
    protect(
      engine,
      { principal: callerOf, operation: "send mail", effectsBegin: true },
      async (context: Context, _next, { effectsBegin }) => {
        const mail = await text(context.req);
        if (!mail.includes("@")) context.throw(400, "To whom?");
        await effectsBegin();
        context.status = 202;
        context.body = { id: await send(mail) };
      },
    ),
  );
  return app;
}

export interface Parts<Tx, Settles extends Settling> {
  readonly engine: Engine<Tx, Settles>;
  /** Principals by their tokens. */
  readonly tokens: ReadonlyMap<string, string>;
  readonly send: (mail: string) => Promise<string>;
}
