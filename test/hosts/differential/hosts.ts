import { expressHosts } from "./on-express.ts";
import { fastifyHosts } from "./on-fastify.ts";
import { fetchHosts } from "./on-fetch.ts";
import { koaHosts } from "./on-koa.ts";
import { nodeHost } from "./on-node.ts";
import type { DifferentialHost } from "./site.ts";

/** Every host whose answers are held to those of its bare self. */
export const differentialHosts: readonly DifferentialHost[] = [
  nodeHost,
  ...expressHosts(),
  ...koaHosts(),
  ...fastifyHosts(),
  ...fetchHosts(),
];
