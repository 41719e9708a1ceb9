import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import express from "express";
import { afterAll, describe, expect, test } from "vitest";
import { createEngine } from "../../src/engine/engine.ts";
import { protect as protectExpress } from "../../src/http/express.ts";
import { protect as protectNode } from "../../src/http/node.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { principal } from "./hono-app.ts";
import { listening } from "./hosts.ts";
import { assertReplay, keyed } from "./laws/said.ts";
import { NATIVE_WAYS, type Way } from "./ways.ts";
import { send, type WireAnswer } from "./wire.ts";

const open: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of open) await close();
});

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

async function served(listener: Listener): Promise<() => Promise<WireAnswer>> {
  const { port, close } = await listening(createServer(listener).listen(0, "127.0.0.1"));
  open.push(close);
  return () => send(port, { target: "/charges", ...keyed("k") });
}

const engineOf = () => createEngine({ store: memoryStore() });

/** A listener with its handler bare, and one with it behind the host's `protect`. */
const hosts: readonly (readonly [string, (way: Way) => readonly [bare: Listener, kept: Listener]])[] = [
  [
    "node:http",
    ({ answer }) => [
      (_request, response) => void answer(response),
      protectNode(engineOf(), { principal }, (_request, response) => answer(response)),
    ],
  ],
  [
    "Express",
    ({ answer }) => {
      const bare = express().post("/charges", (_request, response) => void answer(response));
      const kept = express().post(
        "/charges",
        protectExpress(engineOf(), { principal }, (_request, response) => answer(response)),
      );
      return [bare, kept];
    },
  ],
];

describe.each(hosts)("%s: an answer is the bare host's own, and is kept", (_, listenersOf) => {
  test.each(NATIVE_WAYS.map((way) => [way.name, way] as const))("%s", async (_name, way) => {
    const [bare, kept] = listenersOf(way);
    const expected = await (await served(bare))();
    const ask = await served(kept);
    const first = await ask();
    expect(withoutOurs(first)).toEqual(withoutOurs(expected));
    assertReplay(first, await ask());
  });
});

/** A date is each answer's own, and what we say of the key no bare host says. */
function withoutOurs({ headers, ...answer }: WireAnswer) {
  return {
    ...answer,
    headers: headers.filter(([name]) => name !== "date" && !name.startsWith("idempotency-")),
  };
}
