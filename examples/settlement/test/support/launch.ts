import { fileURLToPath } from "node:url";
import { beforeAll, onTestFinished } from "vitest";
import { type StartedProcess, startProcess } from "../../../../test/support/processes.ts";
import { type DatabaseName, newPlace, type Place } from "./places.ts";

/** A service that answers, in a process of its own, on the ports that it printed. */
export interface Service extends StartedProcess {
  readonly url: string;
  readonly bankUrl: string;
}

/** How the service's own process is started. */
export const command: { readonly command: string; readonly args: readonly string[] } = {
  command: process.execPath,
  args: [fileURLToPath(new URL("../../dist/main.js", import.meta.url))],
};

type Variables = Readonly<Record<string, string | undefined>>;

/** One service for all tests of a suite; call it where the suite begins, and what it returns inside the tests. */
export function sharedService(
  { name, skip }: { readonly name: DatabaseName; readonly skip: boolean },
  environment: Variables,
): () => Service & Place {
  let shared: (Service & Place) | undefined;
  beforeAll(async () => {
    if (skip) return;
    const place = await newPlace(name);
    const service = await launch({ ...place.environment, ...environment });
    shared = { ...place, ...service };
    return async () => {
      service.kill("SIGKILL");
      await service.exited;
      await place.remove();
    };
  });
  return () => {
    if (shared === undefined) throw new Error("The suite's service is not running.");
    return shared;
  };
}

/** A service that is gone when the test is. */
export async function startService(environment: Variables): Promise<Service> {
  const service = await launch(environment);
  onTestFinished(async () => {
    service.kill("SIGKILL");
    await service.exited;
  });
  return service;
}

async function launch(environment: Variables): Promise<Service> {
  const env = { PORT: "0", NODE_ENV: "", ...environment };
  const started = await startProcess({ ...command, env, readyWhen: /^curl / });
  const urls = started.stdout.slice(0, 4).flatMap((line) => /http:\/\/[\w.:[\]]+/.exec(line)?.[0] ?? []);
  return { ...started, url: urls[0] ?? "", bankUrl: urls[1] ?? "" };
}
