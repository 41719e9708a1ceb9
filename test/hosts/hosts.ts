import { once } from "node:events";
import { appendFileSync, readFileSync } from "node:fs";
import type { ServerType } from "@hono/node-server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Settling } from "../../src/engine/returned.ts";
import type { Protect } from "../../src/http/route.ts";
import type { HostUnderTest, Listening, Site, Trial } from "./harness.ts";
import type { HostLaw, RequestView, Route, TransactionWork } from "./law.ts";
import { hostLaws } from "./laws.ts";
import { storesUnderHosts } from "./stores.ts";

/** Holds a host to every law on every store; those that answer as `node:http` does, on the memory store and the one they name. */
export function holdToLaws(host: HostUnderTest): void {
  const stores = storesUnderHosts.filter(
    ({ name }) => host.standsOnNode !== true || name === "memory" || name === host.alsoOn,
  );
  describe.each(stores)(`${host.name} on $name`, ({ name, isHere, lacks, open }) => {
    let trial: Trial;
    beforeAll(async () => {
      if (isHere()) trial = await open(host);
    });
    afterAll(() => trial?.close());

    const missing = [...lacks, ...host.lacks];
    const applies = ({ needs }: HostLaw) => needs === undefined || !missing.includes(needs);
    const laws = hostLaws.filter(applies);
    tell(
      host,
      name,
      hostLaws.filter((law) => !applies(law)),
      "skipped",
    );
    test.skipIf(!isHere()).each(laws.map((law) => [law.id, law.promise, law] as const))(
      "%s: %s",
      async (_id, _promise, law) => {
        await expect(trial.check(law)).resolves.toBeUndefined();
        tell(host, name, [law], "passed");
      },
    );
  });

  test(`${host.name} has its column on the page of the host laws`, () => {
    const page = readFileSync(new URL("../../docs/reference/host-laws.md", import.meta.url), "utf8");
    expect(hostsOf(page), "node scripts/host-laws.mjs writes the page anew").toContain(host.name);
  });
}

/** The hosts that have a column on the page of the docs, which is made of a run of the laws. */
export function hostsOf(page: string): readonly string[] {
  const [, , ...hosts] = cellsOf(page.split("\n").find((line) => line.startsWith("| law ")) ?? "");
  return hosts;
}

/** The cells of a row of Markdown. */
export function cellsOf(row: string): readonly string[] {
  return row
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

/** Tells `scripts/host-laws.mjs`, where that has asked for it, what came of laws. */
function tell(
  host: HostUnderTest,
  store: string,
  laws: readonly HostLaw[],
  outcome: "passed" | "skipped",
): void {
  const { HOST_LAWS } = process.env;
  if (HOST_LAWS === undefined) return;
  for (const law of laws) {
    const { id, promise, needs = null } = law;
    const told = { host: host.name, store, outcome, at: hostLaws.indexOf(law), id, promise, needs };
    appendFileSync(HOST_LAWS, `${JSON.stringify(told)}\n`);
  }
}

export async function listening(server: ServerType): Promise<Listening> {
  if (!server.listening) await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  const close = async () => {
    const closed = once(server, "close");
    server.close();
    if ("closeAllConnections" in server) server.closeAllConnections();
    await closed;
  };
  return { port: address.port, close };
}

/** What of a path a route's pattern matches, on hosts that have no router. */
export const patternOf = (path: string): RegExp => new RegExp(`^${path.replace(/:\w+|\*/g, ".+")}$`);

/** Mounts the routes of laws by a host's `protect`. */
export function mountedBy<HostRequest>(
  protect: Protect<HostRequest>,
  viewOf: (request: HostRequest) => RequestView,
) {
  return <Tx, Settles extends Settling>(site: Site<Tx, Settles>, route: Route) => {
    const principal = (request: HostRequest) => site.principalOf(route, viewOf(request));
    const options = { ...route.settings, principal };
    switch (route.effects) {
      case undefined:
        return protect(site.engine, options, (request, attempt) =>
          route.handle(site.workOf(viewOf(request), attempt)),
        );
      case "declared": {
        const { steps } = route;
        const declared = {
          ...options,
          effects: "declared",
          ...(steps === undefined ? {} : { steps }),
        } as const;
        return protect(site.engine, declared, (request, attempt) => {
          const { effect: step, downstreamKey } = attempt;
          return route.handle({ ...site.workOf(viewOf(request), attempt), step, downstreamKey });
        });
      }
      case "begin":
        return protect(site.engine, { ...options, effectsBegin: true }, (request, attempt) =>
          route.handle({ ...site.workOf(viewOf(request), attempt), begin: attempt.effectsBegin }),
        );
      case "operation":
        return protect(site.engine, options, site.operationOf(route, viewOf));
      case "transaction": {
        const { commits = "two" } = route;
        return protect(site.engine, { ...options, effects: "transaction", commits }, (host, attempt) => {
          const request = viewOf(host);
          const commit: TransactionWork["commit"] = (answer) =>
            attempt.transaction(site.unitOf(request, answer));
          return route.handle({
            ...site.workOf(request, attempt),
            commit,
            get number() {
              return attempt.number;
            },
          });
        });
      }
    }
  };
}
