import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { Header } from "./exchange.ts";
import { byName } from "./node-head.ts";
import type { NodeRequest } from "./node-request.ts";
import type { Outgoing } from "./outgoing.ts";

/** What of Fastify's request a route is told by. */
export interface FastifyRequest {
  readonly raw: NodeRequest;
  readonly routeOptions: { readonly url?: string | undefined };
}

/** What of Fastify's reply a route is answered by. */
export interface FastifyReply {
  readonly raw: ServerResponse;
  readonly code: (status: number) => unknown;
  readonly header: (name: string, value: string | string[]) => unknown;
  readonly getHeaders: () => Readonly<Record<string, unknown>>;
  readonly removeHeader: (name: string) => unknown;
  readonly send: (payload?: unknown) => unknown;
}

/** The headers that Fastify has been given so far, which it sets on the response no sooner than it sends. */
export function linesOf(reply: FastifyReply): readonly Header[] {
  return Object.entries(reply.getHeaders()).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((each): Header => [name, String(each)]),
  );
}

/** Whoever waits for a reply waits for its last byte, which is held until the handler has ended. */
export function waitFor(reply: FastifyReply, ended: Promise<void>): void {
  // biome-ignore lint/suspicious/noThenProperty: Fastify's reply has one of its own, in whose place this stands.
  Object.assign(reply, { then: (fulfilled: () => unknown) => void ended.then(fulfilled) });
}

/** By the reply, so that hooks still have their say. */
export function answerBy(reply: FastifyReply, before: readonly Header[], outgoing: Outgoing): FastifyReply {
  for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name);
  const { status, headers, body, added } = outgoing;
  const own = [...headers, ...added];
  const kept = before.filter(([name]) => !own.some(([each]) => each === name));
  for (const { name, values } of byName([...kept, ...own]).values()) {
    const [only = ""] = values;
    reply.header(name, values.length === 1 ? only : [...values]);
  }
  reply.code(status);
  if (!(body instanceof Uint8Array) || body.length === 0) reply.send();
  else if (reply.getHeaders()["content-type"] !== undefined) reply.send(Buffer.from(body));
  else {
    // Bytes without a type are given one; a stream is not.
    reply.header("content-length", String(body.length));
    reply.send(Readable.from([Buffer.from(body)]));
  }
  return reply;
}
