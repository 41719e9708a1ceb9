import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import type { Engine, Settling } from "oncekey";
import { protect } from "oncekey/node";

/**
 * A server that charges a card once. The call to the till is a step: its mark is kept before the call and its result after
 * it, so that the next attempt calls again under the same key, or does not need to.
 */
export function createCharges<Tx, Settles extends Settling>({
  engine,
  tokens,
  charge,
}: Parts<Tx, Settles>): Server {
  const callerOf = ({ headers }: IncomingMessage) =>
    tokens.get(headers.authorization?.slice("Bearer ".length) ?? "");
  const serve = protect(
    engine,
    { principal: callerOf, operation: "charge", effects: "declared" },
    async (request: IncomingMessage, response: ServerResponse, { effect }) => {
      const order = await json(request);
      const till = { provider: "repeatable", keyTtl: "24h" } as const;
      const paid = await effect("charge", till, (key) => charge(order, key));
      response.writeHead(201, { "content-type": "application/json" });
      response.end(JSON.stringify(paid));
    },
  );
  return createServer((request, response) => {
    if (callerOf(request) === undefined) response.writeHead(401).end();
    else if (request.url === "/charges" && request.method === "POST") void serve(request, response);
    else response.writeHead(404).end();
  });
}

export interface Parts<Tx, Settles extends Settling> {
  readonly engine: Engine<Tx, Settles>;
  /** Principals by their tokens. */
  readonly tokens: ReadonlyMap<string, string>;
  readonly charge: (order: unknown, idempotencyKey: string) => Promise<{ readonly id: string }>;
}
