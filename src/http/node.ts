import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Engine } from "../engine/engine.ts";
import type { OperationRoute } from "../engine/operation.ts";
import type { Settling } from "../engine/returned.ts";
import { putAtHead } from "./node-head.ts";
import { statusOf } from "./node-host.ts";
import { exchangeOf, type NodeRequest } from "./node-request.ts";
import { createNodeRoute, sidesOf, untilEnded } from "./node-route.ts";
import { sendReply } from "./node-send.ts";
import { replied } from "./outgoing.ts";
import type {
  BeginningContext,
  BeginningOptions,
  DeclaredContext,
  DeclaredOptions,
  RouteOptions,
  RunContext,
  TransactionContext,
  TransactionOptions,
} from "./route.ts";
import type { Running } from "./route-options.ts";
import { unsupportedOn } from "./unsupported.ts";

export { keepBytes, type NodeRequest } from "./node-request.ts";

/** A listener of Node's own server. */
export type Listener<Request, Response> = (request: Request, response: Response) => Promise<void>;

/**
 * Makes a listener of `node:http` safe to send twice. The handler reads the request and answers by the response as it
 * always did. There is no error page here: what it throws is answered 500 and told to the engine's listeners.
 */
export function protect<
  Tx,
  Settles extends Settling,
  Request extends NodeRequest = NodeRequest,
  Response extends ServerResponse = ServerResponse,
>(
  engine: Engine<Tx, Settles>,
  options: TransactionOptions<Request>,
  handler: (request: Request, response: Response, context: TransactionContext<Tx, Settles>) => unknown,
): Listener<Request, Response>;
export function protect<
  Tx,
  Settles extends Settling,
  Request extends NodeRequest = NodeRequest,
  Response extends ServerResponse = ServerResponse,
>(
  engine: Engine<Tx, Settles>,
  options: DeclaredOptions<Request>,
  handler: (request: Request, response: Response, context: DeclaredContext) => unknown,
): Listener<Request, Response>;
export function protect<
  Tx,
  Settles extends Settling,
  Request extends NodeRequest = NodeRequest,
  Response extends ServerResponse = ServerResponse,
>(
  engine: Engine<Tx, Settles>,
  options: BeginningOptions<Request>,
  handler: (request: Request, response: Response, context: BeginningContext) => unknown,
): Listener<Request, Response>;
export function protect<
  Tx,
  Settles extends Settling,
  Request extends NodeRequest = NodeRequest,
  Response extends ServerResponse = ServerResponse,
>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<Request>,
  handler: OperationRoute<Request> | ((request: Request, response: Response, context: RunContext) => unknown),
): Listener<Request, Response>;
export function protect<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<NodeRequest> & Running,
  handler: OperationRoute<NodeRequest> | ((...given: never) => unknown),
): Listener<NodeRequest, ServerResponse> {
  const { run, operation } = sidesOf(handler);
  const serve = createNodeRoute(engine, options, operation);
  return async (request, response) => {
    const call = { exchange: exchangeOf(request, null), response, returns: false };
    const handover = await serve(request, call, (context, ended) =>
      untilEnded(
        ended,
        () => {},
        () => run(request, response, context),
      ),
    );
    switch (handover.kind) {
      case "done":
      case "returned":
        return;
      case "reply":
        return sendReply(response, handover.outgoing);
      case "threw":
        engine.context.emit({
          type: "failure",
          what: "answering a request",
          error: handover.error,
        });
        return sendError(response, handover.error);
    }
  };
}

/** For a listener that stands without `protect`: a request with a key is refused, or its answer says that it is `off`. */
export function unprotected<
  Tx,
  Settles extends Settling,
  Request extends NodeRequest = NodeRequest,
  Response extends ServerResponse = ServerResponse,
>(
  engine: Engine<Tx, Settles>,
  listener: (request: Request, response: Response) => unknown,
): (request: Request, response: Response) => unknown {
  const judge = unsupportedOn(engine);
  return (request, response) => {
    const judged = judge(request, exchangeOf(request, null));
    if (judged.kind === "refuse") return sendReply(response, judged.outgoing);
    if (judged.kind === "off") putAtHead(response, judged.added);
    return listener(request, response);
  };
}

/** In the words of an error that carries a status below 500, which are meant for the client; no other says anything. */
function sendError(response: ServerResponse, error: unknown): void {
  const status = statusOf(error) ?? 500;
  const said = status < 500 && error instanceof Error ? error.message : (STATUS_CODES[status] ?? "");
  const headers = [["content-type", "text/plain; charset=utf-8"]] as const;
  sendReply(response, replied({ status, headers, body: new TextEncoder().encode(said) }));
}
