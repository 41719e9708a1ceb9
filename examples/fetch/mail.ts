import type { Engine, Settling } from "oncekey";
import { protect } from "oncekey/fetch";

/**
 * A handler for Next, Bun, Deno or a worker that sends a mail once, however often its request comes. Nothing is declared
 * of the effect: where sending fails nobody can know whether the mail is out, so the key is answered `outcome_unknown`
 * and nothing is sent a second time.
 */
export function createHandler<Tx, Settles extends Settling>({
  engine,
  send,
}: Parts<Tx, Settles>): (request: Request) => Promise<Response> {
  const principal = (request: Request) => request.headers.get("x-caller"); // set by the gateway, behind authentication
  return protect(engine, { principal, operation: "send mail" }, async (request, { signal }) => {
    const id = await send(await request.text(), signal);
    return Response.json({ id }, { status: 202 });
  });
}

export interface Parts<Tx, Settles extends Settling> {
  readonly engine: Engine<Tx, Settles>;
  readonly send: (mail: string, signal: AbortSignal) => Promise<string>;
}
