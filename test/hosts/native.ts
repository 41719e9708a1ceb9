import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { Settling } from "../../src/engine/returned.ts";
import type {
  BeginningContext,
  DeclaredContext,
  DeclaredOptions,
  RunContext,
  TransactionContext,
} from "../../src/http/route.ts";
import type { KeptAnswer } from "../../src/http/transaction-door.ts";
import type { Site } from "./harness.ts";
import type {
  BeginningRoute,
  DeclaredRoute,
  PlainRoute,
  RequestView,
  TransactionRoute,
  TransactionWork,
} from "./law.ts";

/** A request on Node's own server, as laws look at it. */
export function viewOf(request: IncomingMessage): RequestView {
  return {
    method: request.method ?? "",
    header: (name) => request.headers[name.toLowerCase()]?.toString(),
    text: () => text(request),
  };
}

/** Answers by the response itself: a head, before a body that is slow to begin, the body in its pieces, an end. */
export async function answered(response: ServerResponse, answer: Response): Promise<void> {
  response.statusCode = answer.status;
  for (const [name, value] of answer.headers) response.appendHeader(name, value);
  const slow = setTimeout(() => response.flushHeaders(), 50);
  try {
    for await (const chunk of answer.body ?? []) {
      clearTimeout(slow);
      response.write(chunk);
    }
  } finally {
    clearTimeout(slow);
  }
  response.end();
}

/** The handlers of a law's routes, for hosts that answer by Node's own response. */
export const handlers = {
  plain:
    <Tx, Settles extends Settling>(site: Site<Tx, Settles>, route: PlainRoute) =>
    async (request: RequestView, response: ServerResponse, context: RunContext): Promise<void> =>
      await answered(response, await route.handle(site.workOf(request, context))),

  transaction:
    <Tx, Settles extends Settling>(site: Site<Tx, Settles>, route: TransactionRoute) =>
    async (request: RequestView, response: ServerResponse, context: TransactionContext<Tx, Settles>) => {
      const returned = await transacted(site, route, request, context);
      return returned instanceof Response ? await answered(response, returned) : returned;
    },
};

/** What a law's handler with steps comes to. */
export async function stepped<Tx, Settles extends Settling>(
  site: Site<Tx, Settles>,
  route: DeclaredRoute,
  request: RequestView,
  context: DeclaredContext,
): Promise<Response> {
  const { effect: step, downstreamKey } = context;
  return await route.handle({ ...site.workOf(request, context), step, downstreamKey });
}

/** What a law's handler that says when it begins comes to. */
export async function begun<Tx, Settles extends Settling>(
  site: Site<Tx, Settles>,
  route: BeginningRoute,
  request: RequestView,
  context: BeginningContext,
): Promise<Response> {
  return await route.handle({ ...site.workOf(request, context), begin: context.effectsBegin });
}

/** The options of a route with steps, beside those that every route has. */
export function declaring({ steps }: DeclaredRoute): Pick<DeclaredOptions<never>, "effects" | "steps"> {
  return { effects: "declared", ...(steps === undefined ? {} : { steps }) };
}

/** What a law's handler with a transaction comes to. */
export async function transacted<Tx, Settles extends Settling>(
  site: Site<Tx, Settles>,
  route: TransactionRoute,
  request: RequestView,
  context: TransactionContext<Tx, Settles>,
): Promise<KeptAnswer | Response> {
  const commit: TransactionWork["commit"] = (answer) => context.transaction(site.unitOf(request, answer));
  return await route.handle({
    ...site.workOf(request, context),
    commit,
    get number() {
      return context.number;
    },
  });
}
