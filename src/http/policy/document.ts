import type { Engine } from "../../engine/engine.ts";
import type { Settling } from "../../engine/returned.ts";
import { ConfigurationError } from "../../errors.ts";
import { isSafe } from "../exchange.ts";
import { type OpenApiFragment, openApiOf } from "./openapi.ts";
import { pageOf } from "./page.ts";
import type { PolicyRoute } from "./rules.ts";

/** What an API has to publish about its keys. */
export interface PolicyDocument {
  /** A fragment of an OpenAPI 3.1 description: the key's header, our headers, our problems. */
  readonly openapi: OpenApiFragment;
  /** The same for people, in Markdown. */
  readonly page: string;
}

/**
 * Makes, from the configuration itself, the policy that a server must publish by the IETF draft "The Idempotency-Key HTTP
 * Header Field" (section 2): key rules, retention, what makes a request the same, which answers are kept, and the errors.
 * Throws `ConfigurationError` for a route that cannot be one.
 */
export function policyDocument<Tx, Settles extends Settling>(
  { policy }: Pick<Engine<Tx, Settles>, "policy">,
  {
    title = "Requests that are safe to send twice",
    routes,
  }: {
    readonly title?: string;
    readonly routes: readonly PolicyRoute[];
  },
): PolicyDocument {
  if (!Array.isArray(routes) || routes.length === 0)
    throw new ConfigurationError("routes", "must name at least one protected route");
  const seen = new Set<string>();
  for (const { method, path, options } of routes) {
    const name = `${String(method).toUpperCase()} ${path}`;
    if (!/^[A-Za-z]+$/.test(String(method)) || isSafe(String(method)))
      throw new ConfigurationError(
        "routes",
        `has ${name}, whose method asks for no change and is not protected`,
      );
    if (options.observe === true)
      throw new ConfigurationError(
        "routes",
        `has ${name}, which is observed only: nothing of it is protected yet`,
      );
    if (!String(path).startsWith("/"))
      throw new ConfigurationError("routes", `has ${name}, whose path must begin with a slash`);
    if (seen.has(name)) throw new ConfigurationError("routes", `has ${name} twice`);
    seen.add(name);
  }
  const shown = routes.map((route) => ({ ...route, method: route.method.toUpperCase() }));
  return { openapi: openApiOf(shown), page: pageOf(title, policy, shown) };
}
