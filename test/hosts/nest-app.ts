import type { DynamicModule, INestApplication, ModuleMetadata } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import { createEngine, type Engine } from "../../src/engine/engine.ts";
import type { EngineEvent } from "../../src/engine/events.ts";
import { OncekeyModule } from "../../src/http/nest.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { principal } from "./hono-app.ts";
import { listening } from "./hosts.ts";
import { json } from "./laws/said.ts";
import { type HeaderLine, send, type WireAnswer } from "./wire.ts";

export const PLATFORMS = ["express", "fastify"] as const;
export type PlatformName = (typeof PLATFORMS)[number];

export interface NestParts extends ModuleMetadata {
  readonly rawBody?: boolean;
  readonly set?: (app: INestApplication, engine: Engine) => void;
  /** Without the module, where nothing is said. */
  readonly shared?: readonly DynamicModule[];
}

/** An application on a port of its own, and what may be seen of it. */
export interface NestApp {
  /** Sends a JSON document under the one key that all requests share. */
  readonly sent: (body?: unknown, headers?: readonly HeaderLine[], method?: string) => Promise<WireAnswer>;
  readonly port: number;
  readonly state: () => Promise<string | undefined>;
  readonly events: readonly EngineEvent[];
  /** What Fastify complained of. */
  readonly complaints: readonly string[];
}

const open: (() => Promise<unknown>)[] = [];

/** Starts Nest on a platform, with an engine on the memory store. */
export async function startNest(platform: PlatformName, parts: NestParts): Promise<NestApp> {
  const events: EngineEvent[] = [];
  const engine: Engine = createEngine({ store: memoryStore(), listeners: [(event) => events.push(event)] });
  const { rawBody = true, set, shared = [OncekeyModule.forRoot({ engine, principal })], ...metadata } = parts;
  class Application {}
  const root = { module: Application, ...metadata, imports: [...(metadata.imports ?? []), ...shared] };
  const complaints: string[] = [];
  const logger = { level: "warn", stream: { write: (line: string) => void complaints.push(line) } };
  const adapter = platform === "express" ? new ExpressAdapter() : new FastifyAdapter({ logger });
  const options = { rawBody, logger: false, forceCloseConnections: true, abortOnError: false } as const;
  const app = await NestFactory.create(root, adapter, options);
  set?.(app, engine);
  await app.listen(0, "127.0.0.1");
  open.push(() => app.close());
  const { port } = await listening(app.getHttpServer());
  const identity = { kind: "http", principal: "alice", key: "k" } as const;
  return {
    ...{ port, events, complaints },
    sent: (body = { a: 1 }, headers = [], method = "POST") =>
      send(port, { method, target: "/charges", ...json("k", body, headers) }),
    state: async () => (await engine.store.read(identity)).record?.state,
  };
}

/** Ends what `startNest` started since it was last called. */
export async function closeNest(): Promise<void> {
  for (const close of open.splice(0)) await close();
}
