import type { Awaitable, Settling } from "../engine/returned.ts";
import { isKept } from "./handling.ts";
import { type Outgoing, SENT } from "./outgoing.ts";
import { outgoingOf, toResponse } from "./response.ts";
import type { AnswerEnded, Host, HostView, RouteContext } from "./route.ts";
import type { KeptAnswer } from "./transaction-door.ts";
import { noRecord } from "./unprotected.ts";

/** Serves a request on a host that answers with a `Response`; one that needs nothing of ours goes out as it is. */
export async function servedAsResponse<Tx, Settles extends Settling>(
  view: HostView,
  handler: (context: RouteContext<Tx, Settles>) => Awaitable<Response | KeptAnswer>,
  serve: (host: Host<Tx, Settles>) => Promise<Outgoing>,
): Promise<Response> {
  let own: Response | null = null;
  const asItIs = (response: Response) => {
    own = response;
    return SENT;
  };
  const answerOfError = (error: unknown) => {
    const response = view.answerOfError(error);
    return response === null ? null : outgoingOf(response);
  };
  const failed: Host<Tx, Settles>["failed"] = async (error, added) => asItIs(await view.failed(error, added));
  const host: Host<Tx, Settles> = {
    ...{ exchange: view.exchange, answerOfError, failed },
    run: async (context, handlerEnded) => {
      const returned: unknown = await handler(context);
      handlerEnded();
      if (isKept(returned)) return returned;
      if (returned instanceof Response) return outgoingOf(returned);
      throw new TypeError("The handler returned no Response.");
    },
    unprotected: async (context, added, ended) => {
      if (ended !== undefined) return asItIs(await told(bare(handler, context), view, ended));
      if (added.length === 0) return asItIs(await bare(handler, context));
      try {
        return { ...outgoingOf(await bare(handler, context)), added };
      } catch (error) {
        const answer = answerOfError(error);
        return answer === null ? await failed(error, added) : { ...answer, added };
      }
    },
  };
  const outgoing = await serve(host);
  return own !== null && outgoing === SENT ? own : toResponse(outgoing);
}

/** Tells the status of an answer, or of the one that its host makes of an error. */
async function told(
  running: Promise<Response>,
  { answerOfError }: HostView,
  ended: AnswerEnded,
): Promise<Response> {
  try {
    const response = await running;
    ended(response.status);
    return response;
  } catch (error) {
    ended(answerOfError(error)?.status ?? null);
    throw error;
  }
}

async function bare<Tx, Settles extends Settling>(
  handler: (context: RouteContext<Tx, Settles>) => Awaitable<Response | KeptAnswer>,
  context: RouteContext<Tx, Settles>,
): Promise<Response> {
  const returned = await handler(context);
  if (returned instanceof Response) return returned;
  throw noRecord();
}
