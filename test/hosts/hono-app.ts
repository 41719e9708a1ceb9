import { serve } from "@hono/node-server";
import { Hono } from "hono";
import type { KeyRecord } from "../../src/core/record.ts";
import { createEngine, type Engine } from "../../src/engine/engine.ts";
import type { EngineEvent } from "../../src/engine/events.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { listening } from "./hosts.ts";
import { keyed } from "./laws/said.ts";
import { send, type WireAnswer, type WireRequest } from "./wire.ts";

export const principal = (): string => "alice";

/** An app on a port of its own, and what may be seen of it. */
export interface ServedApp {
  /** Sends a request under the one key that all requests share. */
  readonly sent: (request?: Partial<WireRequest>) => Promise<WireAnswer>;
  readonly events: readonly EngineEvent[];
  readonly record: () => Promise<KeyRecord | null>;
}

const open: (() => Promise<void>)[] = [];

export async function served(build: (app: Hono, engine: Engine) => void): Promise<ServedApp> {
  const { engine, events } = engineOf();
  const app = new Hono();
  build(app, engine);
  const { port, close } = await listening(serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }));
  open.push(close);
  const sent = ({ headers = [], ...request }: Partial<WireRequest> = {}) =>
    send(port, { target: "/charges", ...request, ...keyed("k", headers) });
  return { sent, events, record: async () => (await engine.store.read(IDENTITY)).record };
}

/** Ends what `served` started since it was last called. */
export async function closeApps(): Promise<void> {
  for (const close of open.splice(0)) await close();
}

export function engineOf(): { readonly engine: Engine; readonly events: readonly EngineEvent[] } {
  const events: EngineEvent[] = [];
  const engine: Engine = createEngine({ store: memoryStore(), listeners: [(event) => events.push(event)] });
  return { engine, events };
}

const IDENTITY = { kind: "http", principal: "alice", key: "k" } as const;
